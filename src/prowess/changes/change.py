"""A change that is prepared: what it would do, the files that it names in their state of now, and how to do it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.errors import Issue

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Change(Generic[T]):
    """What a change would do. Nothing of it is done yet. ``T`` is what making it returns."""

    steps: Sequence[str] = ()
    """What is going to be done, a sentence each; empty where there is nothing to do."""
    apply: Callable[[], T]
    """Makes the change."""
    describe: Callable[[T], Sequence[str]] = lambda _: ()
    """Returns what was done, a sentence each."""
    issues: Callable[[], Sequence[Issue]] = tuple
    """Returns what was noticed so far."""
    states: Mapping[str, str] = field(default_factory=dict)
    """What ``read_states`` returned before the steps were found out: the plan holds for these states alone."""
    read_states: Callable[[], Mapping[str, str]] = dict
    """Returns the state of now of every file that the plan names, by what people call it."""
    open_block: Callable[[], AbstractContextManager[object]] = nullcontext
    """Returns the block that reads the states again and makes the change."""
    choose: Callable[[Any], Change[T]] | None = None
    """Where a person has to choose something first: returns the change for what was chosen."""
    details: Any = None
    """What is shown beside the steps; each kind of change has its own."""
    idle_text: str = "Nothing to do."
    """What is reported without any step."""

    def without_work(self) -> Change[Any]:
        """Return what of this change is worth remembering: without the functions, which hold on to all of its files."""
        return idle_change(steps=self.steps, states=self.states, details=self.details, idle_text=self.idle_text)


def idle_change(**fields: Any) -> Change[Sequence[str]]:
    """Return a change that does nothing, with these fields."""
    return Change(**{"apply": tuple, **fields})

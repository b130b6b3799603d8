"""A skill that is active: what activating it gives, and what a session remembers of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.errors import Issue
    from prowess.library.body import LoadedSkill
    from prowess.library.skill import Skill
    from prowess.spec.commands import Leave, Span

ALREADY = "it was active already"
CHANGED = "it has changed since it was loaded before"
ALLOWED_OTHERWISE = "what it may run has changed since it was loaded before"
_GONE = "the skill no longer exists; this is what was loaded before"


@dataclass(frozen=True, slots=True)
class Activation:
    """A skill that is active now, its instructions, and the tools that it brings.

    ``note`` says what the caller should know: that it was active already, has vanished, or has changed since.
    """

    skill: Skill
    instructions: str
    added_tools: tuple[str, ...]
    note: str = ""
    outputs: tuple[Span, ...] = ()
    """Where the instructions hold what a command printed: data, never looked at again."""
    issues: tuple[Issue, ...] = ()
    """Commands that did not run, or failed."""


class Standing(NamedTuple):
    """By what the commands of a skill ran, or that they did not; and the grants as they were then."""

    leave: Leave
    digest: str
    grants: object
    """A mark of them."""


class Active(NamedTuple):
    """What a session remembers of an active skill."""

    loaded: LoadedSkill
    tools: tuple[str, ...]
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    preloaded: bool = False
    stale: bool = False
    gone: bool = False
    unrun: bool = False
    """Its commands were left for whoever reads the text."""
    standing: Standing | None = None
    """``None`` without commands."""

    @property
    def is_ready(self) -> bool:
        """Whether activating again gives what is here."""
        return not self.stale and not self.unrun


def again(entry: Active) -> Activation:
    """What activating an active skill gives: what was loaded the first time."""
    note = _GONE if entry.gone else ALREADY
    loaded = entry.loaded
    return Activation(loaded.skill, loaded.instructions, entry.tools, note, entry.outputs, entry.issues)


def tools_of(entries: Iterable[Active]) -> set[str]:
    """The tools that active skills bring."""
    return {tool for entry in entries for tool in entry.tools}

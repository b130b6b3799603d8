"""A change that is prepared: what it would do, the files that it names in their state of now, and how to do it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.conversation.acting.trust import Trust
    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.lockfile.scopes import InstallScope, ScopeName
    from prowess.web.library import Library


class Fields:
    """The fields of a form, of which each may stand in it several times."""

    def __init__(self, values: Mapping[str, Sequence[str]]) -> None:
        self._values = {name: tuple(texts) for name, texts in values.items()}

    def get(self, name: str) -> str:
        """Return the first value of a field without blanks around it; ``""`` where the form has none."""
        return next(iter(self._values.get(name, ())), "").strip()

    def get_all(self, name: str) -> tuple[str, ...]:
        """Return every value of a field, each once, without empty ones."""
        return tuple(dict.fromkeys(filter(None, map(str.strip, self._values.get(name, ())))))

    def is_set(self, name: str) -> bool:
        """Return whether a box of the form is ticked."""
        return bool(self.get(name))

    def items(self) -> list[tuple[str, str]]:
        """Return every field with each of its values, for a form that asks for the change once more."""
        return [(name, text) for name, texts in self._values.items() for text in texts]


@dataclass(frozen=True, kw_only=True)
class PreparedChange:
    """What a change would do. Nothing of it is done yet."""

    steps: Sequence[str] = ()
    """What is going to be done, a sentence each; empty where there is nothing to do."""
    read_states: Callable[[], Mapping[str, str]] = dict
    """Returns the state of now of every file that the plan names, by what people call it."""
    states: Mapping[str, str]
    """What ``read_states`` returned before the steps were found out: the plan holds for these states alone."""
    apply: Callable[[], Sequence[str]] = tuple
    """Makes the change, and returns what was done, a sentence each."""
    open_block: Callable[[], AbstractContextManager[object]] = nullcontext
    """Returns the block in which the states are read again and the change is made."""
    choose: Callable[[Fields], PreparedChange] | None = None
    """Where a person has to choose something first: returns the change for the form with the choice."""
    details: object = None
    """What the page shows beside the steps; each kind has its own."""
    issues: Callable[[], Sequence[Issue]] = tuple
    """Returns what was noticed so far."""
    idle_text: str = "Nothing to do."
    """What is said where there are no steps."""

    def without_work(self) -> PreparedChange:
        """Return what of this change is worth remembering: without the functions, which hold on to all of its files."""
        return PreparedChange(steps=self.steps, states=self.states, details=self.details, idle_text=self.idle_text)


def require_installer(library: Library) -> Installer:
    """Return the installer of a library; raise ``SkillError`` for a library without installs."""
    if library.installer is None:
        raise SkillError("this library has no installs that could be changed", code="bad-argument")
    return library.installer


def require_trust(library: Library) -> Trust:
    """Return the grants of a library; raise ``SkillError`` for a library without them."""
    if library.trust is None:
        raise SkillError("this library has no grants", code="bad-argument")
    return library.trust


def is_project(fields: Fields) -> bool:
    """Return whether a form names the project, and not the user; raise ``SkillError`` where it names neither."""
    scope = fields.get("scope")
    if scope not in {"project", "user"}:
        raise SkillError(f"the scope is 'project' or 'user', not {scope[:40]!r}", code="bad-argument")
    return scope == "project"


def find_location(installer: Installer, fields: Fields) -> ScopeName:
    """Return whose installs a form means: those that it names, or else those that the command line would mean."""
    if not fields.get("scope"):
        return installer.default_location
    return "project" if is_project(fields) else "user"


def choose_scope(installer: Installer, fields: Fields) -> InstallScope:
    """Return the scope that a form names."""
    return installer.project if is_project(fields) else installer.user

"""The fields of a form that asks for a change, and whose skills they mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.conversation.acting.trust import Trust
    from prowess.install.installer import Installer
    from prowess.installed.scopes import InstallScope, ScopeName
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

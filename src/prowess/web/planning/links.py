"""The links of installs: made for further agents, or removed for some."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.links import prepare_links
from prowess.errors import SkillError
from prowess.installed.scopes import find_install, select_scopes
from prowess.web.planning.fields import Fields, find_location, require_installer

if TYPE_CHECKING:
    from prowess.changes.change import Change
    from prowess.installed.scopes import InstallScope
    from prowess.web.library import Library


def prepare_link(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that links installs for agents. Raises ``NotInstalledError`` for one that is not installed."""
    return _prepare_links(library, fields, adds=True)


def prepare_unlink(library: Library, fields: Fields) -> Change[list[str]]:
    """Return the change that removes the links of installs for agents."""
    return _prepare_links(library, fields, adds=False)


def _prepare_links(library: Library, fields: Fields, *, adds: bool) -> Change[list[str]]:
    installer = require_installer(library)
    agents, names = fields.get_all("agent"), fields.get_all("install")
    if not agents or not names:
        raise SkillError("name an install and an agent", code="bad-argument")
    # A form with installs of both scopes names none.
    scopes = (installer.project, installer.user)
    meant = select_scopes(scopes, find_location(installer, fields)) if fields.get("scope") else scopes
    refs: dict[InstallScope, list[str]] = {}
    for name in names:
        ref = f"@{name.removeprefix('@')}"
        refs.setdefault(find_install(SkillRef.parse(ref), meant)[0], []).append(ref)
    return prepare_links(installer, refs, agents, adds=adds, limits=library.limits)

"""The links of installs: made for further agents, or removed for some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import get_agent
from prowess.errors import NotInstalledError, SkillError
from prowess.files.paths import shorten_path
from prowess.install.agent_links import LinkFolders
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.lockfile.scopes import find_install, select_scopes
from prowess.spec.skill_ref import SkillRef, link_name
from prowess.web.planning.file_states import list_scope_files, read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, find_location, require_installer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.install.installer import Installer
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.web.library import Library


class _Install(NamedTuple):
    ref: str
    scope: InstallScope
    entry: LockEntry


class _LinkChange(NamedTuple):
    """The links of some installs for some agents: to make if ``adds`` is True, to remove otherwise."""

    installs: list[_Install]
    agents: tuple[str, ...]
    links: list[str]
    """The paths of the links."""
    adds: bool

    @property
    def scopes(self) -> list[InstallScope]:
        """The scopes of the installs, each once."""
        return [*dict.fromkeys(install.scope for install in self.installs)]

    def describe_steps(self) -> list[str]:
        """Return what is going to be done, a sentence each; nothing where there is no link to make or to remove."""
        verb = "make" if self.adds else "remove"
        word = "copy" if any(install.entry.is_copied for install in self.installs) else "link"
        steps = [f"{verb} the {word} {shorten_path(path)}" for path in self.links]
        records = [f"record it in {shorten_path(os.path.join(scope.lock_folder, LOCK_FILE))}" for scope in self.scopes]
        return [*steps, *records] if steps else []

    def carry_out(self, installer: Installer) -> list[str]:
        """Make or remove the links, and return what was done, a sentence each."""
        change, done = (installer.link, "Made") if self.adds else (installer.unlink, "Removed")
        lines: list[str] = []
        for scope in self.scopes:
            refs = [install.ref for install in self.installs if install.scope == scope]
            lines += [f"{done} {path}" for path in change(refs, self.agents, location=scope.location)]
        return lines

    def describe_idle(self) -> str:
        """Return what is said where there is no link to make or to remove."""
        titles = ", ".join(get_agent(agent).title for agent in self.agents)
        if self.adds:
            return f"Nothing to do: every link for {titles} is recorded already. Sync puts back one that is missing."
        return (
            f"Nothing to do: {titles} looks in the shared folder, whose links stay because other agents use them too."
        )


def prepare_link(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that links installs for agents. Raises ``NotInstalledError`` for one that is not installed."""
    return _prepare_links(library, fields, adds=True)


def prepare_unlink(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that removes the links of installs for agents."""
    return _prepare_links(library, fields, adds=False)


def _prepare_links(library: Library, fields: Fields, *, adds: bool) -> PreparedChange:
    installer = require_installer(library)
    agents = tuple(get_agent(agent).id for agent in fields.get_all("agent"))
    names = fields.get_all("install")
    if not agents or not names:
        raise SkillError("name an install and an agent", code="bad-argument")
    # Before the lock files are read, so that no change between the two goes unnoticed.
    scopes = (installer.project, installer.user)
    before = read_file_states(_list_files(scopes), library.limits)
    # A form with installs of both scopes names none.
    meant = select_scopes(scopes, find_location(installer, fields)) if fields.get("scope") else scopes
    installs = [_find_install(meant, name, library.limits) for name in names]
    links = [path for install in installs for path in _find_links(install, agents, adds=adds)]
    change = _LinkChange(installs, agents, links, adds)
    states = {path: before[path] for path in _list_files(change.scopes)}
    states |= read_file_states(links, library.limits)
    return PreparedChange(
        steps=change.describe_steps(),
        read_states=lambda: read_file_states(states, library.limits),
        states=states,
        apply=lambda: change.carry_out(installer),
        issues=lambda: installer.issues,
        idle_text=change.describe_idle(),
    )


def _list_files(scopes: Iterable[InstallScope]) -> list[str]:
    return [path for scope in scopes for path in list_scope_files(scope)]


def _find_install(scopes: Sequence[InstallScope], name: str, limits: Limits) -> _Install:
    ref = SkillRef.parse(f"@{name.removeprefix('@')}")
    scope, _ = find_install(ref, scopes)
    entry = read_lock(scope.lock_folder, limits=limits).get(ref.full_name)
    if entry is None:
        raise NotInstalledError(f"{ref.full_name} is in no lock file, so its links are not known")
    return _Install(f"@{ref.full_name}", scope, entry)


def _find_links(install: _Install, agents: tuple[str, ...], *, adds: bool) -> Iterator[str]:
    """Yield the path of each link that would be made, or removed."""
    folders = LinkFolders(install.scope)
    for folder in folders.folders_for(agents):
        for skill in install.entry.skills:
            path = os.path.join(folder, link_name(skill))
            is_recorded = folders.to_lock_path(path) in install.entry.links
            # Many agents look in the shared folder, so a link there is not one agent's to give up.
            is_removable = is_recorded and folder != folders.shared
            if link_name(skill) and (not is_recorded if adds else is_removable):
                yield path

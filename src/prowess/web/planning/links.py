"""The links of installs: made for further agents, or removed for some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import get_agent
from prowess.errors import NotInstalledError, SkillError
from prowess.files.paths import shorten_path
from prowess.install.agent_links import LinkFolders
from prowess.lockfile.read import read_lock
from prowess.lockfile.scopes import find_install
from prowess.spec.skill_ref import SkillRef, link_name
from prowess.web.planning.file_states import list_scope_files, read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, require_installer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.installer import Installer
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.web.library import Library


class _Install(NamedTuple):
    ref: str
    scope: InstallScope
    entry: LockEntry


def prepare_link(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that links installs for agents. Raises ``NotInstalledError`` for one that is not installed."""
    return _prepare_links(library, fields, adds=True)


def prepare_unlink(library: Library, fields: Fields) -> PreparedChange:
    """Return the change that removes the links of installs for agents."""
    return _prepare_links(library, fields, adds=False)


def _prepare_links(library: Library, fields: Fields, *, adds: bool) -> PreparedChange:
    installer = require_installer(library)
    agents = tuple(get_agent(agent).id for agent in fields.get_all("agent"))
    if not agents or not fields.get_all("install"):
        raise SkillError("name an install and an agent", code="bad-argument")
    scopes = (installer.project, installer.user)
    # Before the lock files are read, so that no change between the two goes unnoticed.
    states = read_file_states([path for scope in scopes for path in list_scope_files(scope)], library.limits)
    installs = [_find(installer, name, library.limits) for name in fields.get_all("install")]
    links = [path for install in installs for path in _find_links(install, agents, adds=adds)]
    files = [path for install in installs for path in list_scope_files(install.scope)]
    paths = [*dict.fromkeys((*files, *links))]
    states = {**{path: states[path] for path in files}, **read_file_states(links, library.limits)}
    refs = [install.ref for install in installs]
    verb = "make" if adds else "remove"
    word = "copy" if any(install.entry.is_copied for install in installs) else "link"

    def apply_change() -> list[str]:
        changed = installer.link(refs, agents) if adds else installer.unlink(refs, agents)
        return [f"{'Made' if adds else 'Removed'} {path}" for path in changed]

    steps = [f"{verb} the {word} {shorten_path(path)}" for path in links]
    return PreparedChange(
        steps=[*steps, *(f"record it in {shorten_path(path)}" for path in dict.fromkeys(files[::2]))] if steps else (),
        read_states=lambda: read_file_states(paths, library.limits),
        states=states,
        apply=apply_change,
        issues=lambda: installer.issues,
        idle_text=_describe_idle(agents, adds=adds),
    )


def _describe_idle(agents: tuple[str, ...], *, adds: bool) -> str:
    titles = ", ".join(get_agent(agent).title for agent in agents)
    if adds:
        return f"Nothing to do: every link for {titles} is recorded already. Sync puts back one that is missing."
    return f"Nothing to do: {titles} looks in the shared folder, whose links stay because other agents use them too."


def _find(installer: Installer, name: str, limits: Limits) -> _Install:
    ref = SkillRef.parse(f"@{name.removeprefix('@')}")
    scope, _ = find_install(ref, (installer.project, installer.user))
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

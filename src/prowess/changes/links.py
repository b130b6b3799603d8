"""The links of installs: made for further agents, or removed for some."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.change import Change, list_scope_files, read_file_states
from prowess.discovery.agents import get_agent
from prowess.files.paths import shorten_path
from prowess.install.agent_links import LinkFolders
from prowess.install.context import require_entry
from prowess.lockfile.read import LOCK_FILE, read_lock
from prowess.names import link_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


class _Install(NamedTuple):
    ref: str
    scope: InstallScope
    entry: LockEntry


def prepare_links(
    installer: Installer,
    refs: Mapping[InstallScope, Sequence[str]],
    agents: Sequence[str],
    *,
    adds: bool,
    limits: Limits,
) -> Change[list[str]]:
    """Return the change that links some installs of each scope for agents, or, unless it ``adds``, unlinks them.

    Raises ``InstallError`` for an install that is in no lock file.
    """
    # Before the lock files are read, so that no change between the two goes unnoticed.
    before = read_file_states([path for scope in refs for path in list_scope_files(scope)], limits)
    agents = [get_agent(agent).id for agent in agents]
    installs = [install for scope, names in refs.items() for install in _find_entries(scope, names, limits)]
    links = [path for install in installs for path in _find_links(install, agents, adds=adds)]
    states = {**before, **read_file_states(links, limits)}
    change, verb = (installer.link, "make") if adds else (installer.unlink, "remove")
    word = "copy" if any(install.entry.is_copied for install in installs) else "link"
    records = [f"record it in {shorten_path(os.path.join(scope.lock_folder, LOCK_FILE))}" for scope in refs]
    issues: list[Issue] = []

    def change_all() -> list[str]:
        changed: list[str] = []
        for scope, names in refs.items():
            try:
                changed += change(names, agents, location=scope.location)
            finally:
                issues.extend(installer.issues)
        return changed

    return Change(
        steps=[*(f"{verb} the {word} {shorten_path(path)}" for path in links), *(records if links else ())],
        read_states=lambda: read_file_states(states, limits),
        states=states,
        apply=change_all,
        describe=lambda links: [f"{'Made' if adds else 'Removed'} {path}" for path in links],
        issues=lambda: issues,
        idle_text=_describe_idle(agents, adds=adds),
    )


def _describe_idle(agents: Sequence[str], *, adds: bool) -> str:
    """Return what is reported without a link to make or to remove."""
    titles = ", ".join(get_agent(agent).title for agent in agents)
    if adds:
        return f"Nothing to do: every link for {titles} is recorded already. Sync puts back one that is missing."
    return f"Nothing to do: {titles} looks in the shared folder, whose links stay because other agents use them too."


def _find_entries(scope: InstallScope, refs: Sequence[str], limits: Limits) -> Iterator[_Install]:
    locked = read_lock(scope.lock_folder, limits=limits)
    for ref in refs:
        yield _Install(ref, scope, require_entry(locked, scope, SkillRef.parse(ref).full_name, "links are"))


def _find_links(install: _Install, agents: Sequence[str], *, adds: bool) -> Iterator[str]:
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

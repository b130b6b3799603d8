"""Links of installed skills, added for further agents or removed for some; nothing is fetched."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.arguments import check_texts
from prowess.errors import Issue, LocalEditsError, NameTakenError
from prowess.files.directory import exists
from prowess.files.syscalls import wrap_os_errors
from prowess.install.agent_links import skill_folder
from prowess.install.context import parse_refs, require_entry
from prowess.install.installed_files import read_unedited_files
from prowess.install.manifest_diff import find_stale_declarations
from prowess.install.ownership import is_made_by_prowess, stage_unlink
from prowess.install.stage import group_by_skill
from prowess.install.store import AgentLink, open_store
from prowess.installed.scopes import find_install
from prowess.names import link_name
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.install.context import InstallContext, Refs
    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope, Location
    from prowess.lockfile.read import LockEntry

    ChangeLinks = Callable[[Store, Sequence[str], Sequence[str]], tuple[str, ...]]


def change_links(
    context: InstallContext, refs: Refs, agents: Sequence[str], location: Location, change: ChangeLinks
) -> tuple[str, ...]:
    """Call ``add_links`` or ``remove_links`` for installs; returns the links that were changed.

    Raises ``NotInstalledError`` before anything is changed when one of the installs is missing.
    """
    scopes = context.scopes_at(location)
    context.begin_change(*scopes)
    names_by_scope: dict[InstallScope, list[str]] = {}
    # All are found before the first is changed: one that is missing changes nothing.
    for ref in parse_refs(refs):
        scope, _ = find_install(ref, scopes)
        names_by_scope.setdefault(scope, []).append(ref.full_name)
    links: list[str] = []
    for scope, names in names_by_scope.items():
        with wrap_os_errors(), open_store(scope, context.limits) as store:
            entries = [store.locked.get(name) for name in names]
            links += change(store, names, check_texts(agents, "agents"))
        context.issues += store.issues
        context.issues += tuple(find_stale_declarations(scope, entries, context.limits))
    return tuple(links)


def add_links(store: Store, names: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Link the skills of installs for further agents, all or none; returns the links as the lock file has them."""
    locked, added = store.locked, dict[str, None]()
    for name in names:
        entry, links = _stage_links(store, name, agents, frozenset(added))
        locked, added = locked | {name: entry}, added | dict.fromkeys(links)
    store.commit(locked)
    return tuple(added)


def _stage_links(
    store: Store, name: str, agents: Sequence[str], staged: frozenset[str]
) -> tuple[LockEntry, tuple[str, ...]]:
    """Stage the links of one install; returns its entry with them, and the links as the lock file has them.

    ``staged`` are the links of other installs that wait already. Raises ``NameTakenError`` when one of them, or
    something that Prowess did not make, has the place of a link.
    """
    entry = require_entry(store.locked, store.scope, name, "links are")
    links = [link for link in _links_for(store, entry, agents) if link.recorded not in entry.links]
    for link in report_steps(links, lambda link: link.recorded):
        # Two installs may hold a skill with the same name: the first one's link is staged, and not yet on the disk.
        is_taken = exists(link.path) and not is_made_by_prowess(store, link.path, entry)
        if is_taken or link.recorded in staged:
            raise NameTakenError("there is something already that was not installed by Prowess", link.path)
        store.stage_link(link)
    added = tuple(link.recorded for link in links)
    copies = (*entry.copies, *(link for link in added if link in store.copies))
    new_agents = tuple(agent for agent in dict.fromkeys(agents) if agent not in entry.agents)
    after = replace(
        entry,
        links=(*entry.links, *added),
        copies=copies,
        agents=(*entry.agents, *new_agents),
        extra_agents=(*entry.extra_agents, *new_agents) if entry.declared else (),
    )
    return after, added


def _links_for(store: Store, entry: LockEntry, agents: Sequence[str]) -> Iterator[AgentLink]:
    """Yield the links of all skills of an install in the shared folder and in the folders of the agents.

    Raises ``LocalEditsError`` for an install in copy mode if somebody edited every copy.
    """
    # Copies are made from an unedited copy: an edit is one person's, and must not spread to other agents.
    files = read_unedited_files(entry, store.link_folders, store.limits)
    if files is None:
        raise LocalEditsError(f"no copy of {entry.name} is what the lock file says", store.scope.lock_folder)
    files_by_folder = group_by_skill(files, entry.skills.values())
    places = store.link_folders.places_for(filter(None, map(link_name, entry.skills)), agents)
    for in_one_folder in zip(*places.values(), strict=True):
        for name, place in zip(places, in_one_folder, strict=True):
            folder = entry.folder_for_link(name)
            target = skill_folder(store.scope, entry.name, folder)
            yield AgentLink(place.path, place.recorded, target, files_by_folder[folder], copy=entry.is_copied)


def remove_links(store: Store, names: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Remove the links of installs for some agents, all or none; returns them as the lock file had them.

    The links in the shared folder stay.
    """
    locked, removed = store.locked, list[str]()
    for name in names:
        entry, links = _stage_removal(store, name, agents)
        locked, removed = locked | {name: entry}, [*removed, *links]
    store.commit(locked)
    # An empty folder of an agent would make the agent look present.
    for folder in sorted({os.path.dirname(store.link_folders.path_of_link(link)) for link in removed}):
        store.link_folders.delete_if_empty(folder)
    return tuple(removed)


def _stage_removal(store: Store, name: str, agents: Sequence[str]) -> tuple[LockEntry, tuple[str, ...]]:
    """Stage the removal of one install's links for some agents; returns its entry without them, and the links."""
    entry = require_entry(store.locked, store.scope, name, "links are")
    # Many agents look in the shared folder, so a link there is not one agent's to give up.
    shared = store.link_folders.shared
    folders = {folder for folder in store.link_folders.folders_for(agents) if folder != shared}
    for agent in agents:
        if all(folder == shared for folder in store.link_folders.folders_for([agent])):
            where = store.link_folders.to_lock_path(shared)
            message = f"{agent} looks in {where} with many other agents, so the link of {name} there stays"
            store.issues += (Issue("shared-link", name, message, shared, 0, "warning"),)
    removed = tuple(link for link in entry.links if os.path.dirname(store.link_folders.path_of_link(link)) in folders)
    for link in removed:
        stage_unlink(store, store.link_folders.path_of_link(link), entry)
    after = replace(
        entry,
        links=tuple(link for link in entry.links if link not in removed),
        copies=tuple(link for link in entry.copies if link not in removed),
        agents=tuple(agent for agent in entry.agents if agent not in agents),
        extra_agents=tuple(agent for agent in entry.extra_agents if agent not in agents),
    )
    return after, removed

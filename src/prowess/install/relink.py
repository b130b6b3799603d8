"""Links added to, or taken from, what is installed: nothing is fetched, and the lock file says so."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import InstallError, LocalEditsError, NameTakenError
from prowess.files.directory import exists
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.copied_installs import read_whole_copies
from prowess.install.stage import is_made_by_prowess, stage_unlink
from prowess.install.store import AgentLink
from prowess.progress_steps import report_steps
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.store import Store
    from prowess.lockfile.read import LockEntry


def add_links(store: Store, names: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Link the skills of installs for further agents as well, all or none; the links that were made."""
    locked, made = store.locked, dict[str, None]()
    for name in names:
        entry, links = _stage_links(store, name, agents, frozenset(made))
        locked, made = locked | {name: entry}, made | dict.fromkeys(links)
    store.commit(locked)
    return tuple(made)


def _stage_links(
    store: Store, name: str, agents: Sequence[str], staged: frozenset[str]
) -> tuple[LockEntry, tuple[str, ...]]:
    """Stage the links of one install; its entry with them, and which they are. ``staged``: links of others to come.

    Raises ``NameTakenError`` where something else has the place of a link, or is about to have it.
    """
    entry = _require_entry(store, name)
    wanted = [
        link
        for link in _links_for(store, entry, agents)
        if store.link_folders.to_lock_path(link.path) not in entry.links
    ]
    for link in report_steps(wanted, lambda link: store.link_folders.to_lock_path(link.path)):
        is_taken = exists(link.path) and not is_made_by_prowess(store, link.path, entry)
        if is_taken or store.link_folders.to_lock_path(link.path) in staged:
            raise NameTakenError("there is something already that was not installed by Prowess", link.path)
        store.stage_link(link)
    made = tuple(store.link_folders.to_lock_path(link.path) for link in wanted)
    copies = (*entry.copies, *(link for link in made if link in store.copies))
    known = tuple(dict.fromkeys((*entry.agents, *agents)))
    return replace(entry, links=(*entry.links, *made), copies=copies, agents=known), made


def remove_links(store: Store, names: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Take the links of installs for those agents away, all or none; the links that are gone.

    Those in the shared folder stay.
    """
    locked, gone = store.locked, list[str]()
    for name in names:
        entry, links = _stage_removal(store, name, agents)
        locked, gone = locked | {name: entry}, [*gone, *links]
    store.commit(locked)
    for folder in sorted({os.path.dirname(store.link_folders.path_of_link(link)) for link in gone}):
        store.link_folders.delete_if_empty(folder)
    return tuple(gone)


def _stage_removal(store: Store, name: str, agents: Sequence[str]) -> tuple[LockEntry, tuple[str, ...]]:
    """Stage that the links of one install for those agents go; its entry without them, and which they are."""
    entry = _require_entry(store, name)
    folders = {folder for folder in store.link_folders.folders_for(agents) if folder != store.link_folders.shared}
    gone = tuple(link for link in entry.links if os.path.dirname(store.link_folders.path_of_link(link)) in folders)
    for link in gone:
        stage_unlink(store, store.link_folders.path_of_link(link), entry)
    after = replace(
        entry,
        links=tuple(link for link in entry.links if link not in gone),
        copies=tuple(link for link in entry.copies if link not in gone),
        agents=tuple(agent for agent in entry.agents if agent not in agents),
    )
    return after, gone


def _require_entry(store: Store, name: str) -> LockEntry:
    entry = store.locked.get(name)
    if entry is None:
        raise InstallError(
            f"{name} is in no lock file, so its links are not known", store.scope.install_folder(name), "not-in-lock"
        )
    return entry


def _links_for(store: Store, entry: LockEntry, agents: Sequence[str]) -> Iterator[AgentLink]:
    files = _read_files(store, entry)
    place = store.scope.install_folder(entry.name)
    for into in store.link_folders.folders_for(agents):
        for skill, folder in entry.skills.items():
            if own := link_name(skill):
                prefix = f"{folder}/" if folder else ""
                below = [f._replace(path=f.path.removeprefix(prefix)) for f in files if f.path.startswith(prefix)]
                target = os.path.join(place, *folder.split("/")) if folder else place
                yield AgentLink(os.path.join(into, own), target, below, copy=entry.is_copied)


def _read_files(store: Store, entry: LockEntry) -> Sequence[NewFile]:
    """The files of an install; ``LocalEditsError`` where they are copies and none of them is whole."""
    if not entry.is_copied:
        return [NewFile(*row) for row in read_tree(store.scope.install_folder(entry.name), store.limits).files]
    files = read_whole_copies(entry, store.link_folders, store.limits)
    if files is None:
        raise LocalEditsError(f"no copy of {entry.name} is what the lock file says", store.scope.lock_folder)
    return files

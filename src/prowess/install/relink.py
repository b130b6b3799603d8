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
from prowess.install.install_tree import is_ours, unlink
from prowess.install.store import Link
from prowess.progress_steps import stepped
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.store import Store
    from prowess.lockfile.read import LockedSkill


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
) -> tuple[LockedSkill, tuple[str, ...]]:
    """Stage the links of one install; its entry with them, and which they are. ``staged``: links of others to come.

    Raises ``NameTakenError`` where something else has the place of a link, or is about to have it.
    """
    entry = _entry(store, name)
    wanted = [link for link in _links(store, entry, agents) if store.landings.recorded(link.path) not in entry.links]
    for link in stepped(wanted, lambda link: store.landings.recorded(link.path)):
        is_taken = exists(link.path) and not is_ours(store, link.path, entry)
        if is_taken or store.landings.recorded(link.path) in staged:
            raise NameTakenError("there is something already that was not installed by Prowess", link.path)
        store.link(link)
    made = tuple(store.landings.recorded(link.path) for link in wanted)
    copies = (*entry.copies, *(link for link in made if link in store.copies))
    known = tuple(dict.fromkeys((*entry.agents, *agents)))
    return replace(entry, links=(*entry.links, *made), copies=copies, agents=known), made


def take_links(store: Store, names: Sequence[str], agents: Sequence[str]) -> tuple[str, ...]:
    """Take the links of installs for those agents away, all or none; the links that are gone.

    Those in the shared folder stay.
    """
    locked, gone = store.locked, list[str]()
    for name in names:
        entry, links = _stage_removal(store, name, agents)
        locked, gone = locked | {name: entry}, [*gone, *links]
    store.commit(locked)
    for folder in sorted({os.path.dirname(store.landings.path(link)) for link in gone}):
        store.landings.leave(folder)
    return tuple(gone)


def _stage_removal(store: Store, name: str, agents: Sequence[str]) -> tuple[LockedSkill, tuple[str, ...]]:
    """Stage that the links of one install for those agents go; its entry without them, and which they are."""
    entry = _entry(store, name)
    folders = {folder for folder in store.landings.folders(agents) if folder != store.landings.shared}
    gone = tuple(link for link in entry.links if os.path.dirname(store.landings.path(link)) in folders)
    for link in gone:
        unlink(store, store.landings.path(link), entry)
    after = replace(
        entry,
        links=tuple(link for link in entry.links if link not in gone),
        copies=tuple(link for link in entry.copies if link not in gone),
        agents=tuple(agent for agent in entry.agents if agent not in agents),
    )
    return after, gone


def _entry(store: Store, name: str) -> LockedSkill:
    entry = store.locked.get(name)
    if entry is None:
        raise InstallError(
            f"{name} is in no lock file, so its links are not known", store.scope.place(name), "not-in-lock"
        )
    return entry


def _links(store: Store, entry: LockedSkill, agents: Sequence[str]) -> Iterator[Link]:
    files = _files(store, entry)
    place = store.scope.place(entry.name)
    for into in store.landings.folders(agents):
        for skill, folder in entry.skills.items():
            if own := link_name(skill):
                prefix = f"{folder}/" if folder else ""
                below = [f._replace(path=f.path.removeprefix(prefix)) for f in files if f.path.startswith(prefix)]
                target = os.path.join(place, *folder.split("/")) if folder else place
                yield Link(os.path.join(into, own), target, below, copy=entry.is_copied)


def _files(store: Store, entry: LockedSkill) -> Sequence[NewFile]:
    """The files of an install; ``LocalEditsError`` where they are copies and none of them is whole."""
    if not entry.is_copied:
        return [NewFile(*row) for row in read_tree(store.scope.place(entry.name), store.limits).files]
    files = read_whole_copies(entry, store.landings, store.limits)
    if files is None:
        raise LocalEditsError(f"no copy of {entry.name} is what the lock file says", store.scope.records)
    return files

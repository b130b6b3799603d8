"""Conflicts of names: what is in the way of an install, and the other installs that give way to it.

Two things can be taken: the place of an install in the base (``org/name``), and the path of a skill where agents look.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import AlreadyInstalledError, NameTakenError
from prowess.files.directory import exists, select_existing
from prowess.install.ownership import (
    dispose_of_install,
    is_copy_in_place,
    is_made_by_prowess,
    recorded_link_paths,
    stage_unlink,
)
from prowess.installed.scopes import locate_install
from prowess.names import link_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.install.agent_links import LinkPlace
    from prowess.install.plan import InstallOptions
    from prowess.install.store import AgentLink, Store, TakenNames
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntries, LockEntry


class Newcomer(NamedTuple):
    """The install that wants a place: its name, its source as the lock file has it, and the caller's options."""

    name: str
    source: str
    options: InstallOptions


def refuse_taken(name: str, source: str, scope: InstallScope, locked: LockEntries, taken: TakenNames) -> None:
    """Raise when the place ``name`` of a scope is taken, also by a name that differs only in case.

    Raises ``NameTakenError`` when another source has the place, else ``AlreadyInstalledError``. What Prowess put there
    and no lock entry records any more gives way.
    """
    copied = taken.find_entry(name)
    copied = copied if copied in locked and locked[copied].is_copied else ""
    # Some file systems ignore case: a name that differs only in case is one place there.
    existing = copied or taken.find_place(name)
    place = locate_install(locked.get(copied), scope, existing or name)
    if not existing and not exists(place):
        return
    entry = locked.get(existing or name)
    if entry is not None and entry.source != source:
        raise NameTakenError(f"{name} is installed from {_describe_origin(entry)}, not from {source}", place)
    if entry is None and taken.is_leftover(existing, place):
        return
    unknown = ", and is not in the lock file" if entry is None else ""
    raise AlreadyInstalledError(f"skill {existing or name} already installed at {place}{unknown}", place)


def find_displaced_installs(
    store: Store, skills: Mapping[str, str], source: str, options: InstallOptions
) -> list[LockEntry]:
    """Return the other installs that lose skills when these are installed; nothing is staged.

    ``skills`` has the install that each skill goes to, by the name of the skill. Raises what ``stage_install`` raises
    for a name that is taken.
    """
    installs = dict.fromkeys(skills.values())
    for name in installs:
        if not options.may_replace(name):
            refuse_taken(name, source, store.scope, store.locked, store.taken_names)
    # The installs that are replaced as a whole give up their links anyway.
    replaced = {store.taken_names.find_entry(name) for name in installs}
    others = {name: entry for name, entry in store.locked.items() if name not in replaced}
    # Nothing is fetched yet, and only the files show whether existing copies are the skills to come.
    options = options._replace(replace_foreign=True) if options.copy else options
    holders: dict[str, LockEntry] = {}
    linked = {link_name(skill): name for skill, name in skills.items()}
    places = store.link_folders.places_for(filter(None, linked), options.agents)
    taken = set(select_existing([place.path for of_link in places.values() for place in of_link]))
    for link, of_link in places.items():
        newcomer = Newcomer(linked[link], source, options)
        for place in of_link:
            holder = _find_entry_to_displace(store, others, place, newcomer, is_taken=place.path in taken)
            if holder is not None:
                holders[holder.name] = holder
    return list(holders.values())


def displace_others(store: Store, locked: LockEntries, links: Sequence[AgentLink], newcomer: Newcomer) -> None:
    """Take the paths of ``links`` from the other entries of ``locked``, and stage the removal of those left empty.

    Raises ``NameTakenError`` where the caller's options do not allow that. ``locked`` is changed.
    """
    options = newcomer.options
    names = {os.path.basename(link.path) for link in links}
    taken = set(select_existing([link.path for link in links]))
    for link in links:
        # An existing copy that is equal byte for byte is in nobody's way.
        allowed = options._replace(replace_foreign=True) if is_copy_in_place(store, link) else options
        holder = _find_entry_to_displace(
            store, locked, link, newcomer._replace(options=allowed), is_taken=link.path in taken
        )
        if holder is not None:
            if options.replace and options.declared and holder.declared:
                _refuse_partial_loss(link.path, holder, names)
            _take_link_from(store, locked, holder, link.recorded)


def _find_entry_to_displace(
    store: Store, locked: LockEntries, place: LinkPlace | AgentLink, newcomer: Newcomer, *, is_taken: bool
) -> LockEntry | None:
    """Return the other install that has a place where agents look; ``None`` when the place is free for the newcomer.

    ``is_taken``: something is there on the disk. Raises ``NameTakenError`` unless that install, or anything else at its
    place, gives way.
    """
    # What nobody recorded is refused first: only the caller may give up what could be the user's own.
    path, holder = place.path, store.taken_names.find_link_holder(place.recorded, locked)
    if is_taken and not newcomer.options.replace_foreign:
        _refuse_foreign_path(store, path, holder or store.locked.get(newcomer.name), newcomer.source)
    if holder is not None and not newcomer.options.may_replace(holder.name):
        raise NameTakenError(_taken_message(os.path.basename(path), holder, newcomer.source), path)
    return holder


def _taken_message(name: str, holder: LockEntry, source: str) -> str:
    if holder.source == source:
        return f"the skill {name!r} is installed already, from the same source, as part of {holder.name}"
    origin = _describe_origin(holder)
    return f"the skill {name!r} is installed from {origin} ({holder.name}); this one comes from {source}"


def _describe_origin(entry: LockEntry) -> str:
    return entry.source or "a folder that was adopted"


def _refuse_partial_loss(path: str, holder: LockEntry, names: set[str]) -> None:
    """Raise when an install that the manifest declares as a whole would lose only some of its skills, ``names``.

    The manifest would then declare those skills twice, and no sync could know which declaration has them.
    """
    others = ", ".join(f'"{skill}"' for skill in holder.skills if link_name(skill) not in names)
    if others:
        message = (
            f"the skill {os.path.basename(path)!r} is part of {holder.name}, all of which the manifest declares: have "
            f"it name the others (skills = [{others}]) and sync, or remove {holder.name}"
        )
        raise NameTakenError(message, path)


def _refuse_foreign_path(store: Store, path: str, entry: LockEntry | None, source: str) -> None:
    if is_made_by_prowess(store, path, entry):
        return
    name = os.path.basename(path)
    message = (
        f"the skill {name!r} is at {path} already, and is not what Prowess put there; this one comes from {source}"
    )
    raise NameTakenError(message, path)


def _take_link_from(store: Store, locked: LockEntries, holder: LockEntry, lost: str) -> None:
    """Take a link from the entry that has it; stage the removal of the install when it has no skill left."""
    skills = {skill: folder for skill, folder in holder.skills.items() if link_name(skill) != posixpath.basename(lost)}
    links, copies = (tuple(link for link in links if link != lost) for links in (holder.links, holder.copies))
    rest = replace(holder, links=links, copies=copies, skills=skills)
    if skills:
        locked[holder.name] = rest
        return
    del locked[holder.name]
    # The lost link itself is not removed: the newcomer's link takes its place.
    for other in recorded_link_paths(store, rest):
        stage_unlink(store, other, holder)
    store.stage_removal(holder.name, dispose_of_install(store, holder, holder.name))

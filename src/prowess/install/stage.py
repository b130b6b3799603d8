"""One install into a held store: conflicts first, then trees and links staged, then everything at once."""

from __future__ import annotations

import os
import posixpath
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import AlreadyInstalledError, Issue, NameTakenError, UnsafeTreeError
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_link, is_link_into, is_real_folder
from prowess.install.entry_source import refuse_own_source, source_for_lock
from prowess.install.store import AgentLink, TakenNames
from prowess.install.tree import hashes_of, with_skill_files_only
from prowess.lockfile.compare import compare_folder, is_exact_copy
from prowess.lockfile.read import COPY_MODE, LockEntries, LockEntry
from prowess.lockfile.scopes import locate_install
from prowess.names import folders_above
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from prowess.files.write import NewFile
    from prowess.install.store import Store
    from prowess.install.tree import InstallTree
    from prowess.lockfile.scopes import InstallScope
    from prowess.spec.source_spec import SourceSpec


class InstallOptions(NamedTuple):
    """What a caller asked for besides the source."""

    agents: tuple[str, ...] = ()
    replace: bool = False
    declared: str = ""
    replaceable: frozenset[str] = frozenset()
    """The installs that give way although ``replace`` does not ask all of them to."""
    replace_foreign: bool = False
    """Whether what Prowess did not put where agents look gives way too, into the backups: the caller asked for it.

    What a lock file says is no such wish: it may have come with a clone.
    """
    copy: bool = False
    """Whether real files go where agents look, and nothing into the install base."""
    extra_agents: Mapping[str, tuple[str, ...]] = {}
    """The further agents of single installs, by name: those for which a person linked them."""

    def agents_of(self, name: str) -> tuple[str, ...]:
        """The agents that an install of that name is linked for."""
        return tuple(dict.fromkeys((*self.agents, *self.extra_agents.get(name, ()))))

    def may_replace(self, name: str) -> bool:
        """Whether an install of that name gives way."""
        return self.replace or name in self.replaceable


class InstallRequest(NamedTuple):
    """What came: from where, as which commit, and what is asked of it."""

    spec: SourceSpec
    commit: str
    options: InstallOptions


def refuse_taken(
    name: str, source: str, scope: InstallScope, locked: LockEntries, taken: TakenNames | None = None
) -> None:
    """Raise when there is something in the place ``name`` of a scope, or under a name that differs in case only.

    ``taken``: what is known of the scope already, where many trees are staged together.
    """
    taken = taken or TakenNames(scope, locked)
    copied = taken.find_entry(name)
    copied = copied if copied in locked and locked[copied].is_copied else ""
    twin = copied or taken.find_place(name)
    place = locate_install(locked.get(copied), scope, twin or name)
    if not twin and not exists(place):
        return
    entry = locked.get(twin or name)
    if entry is not None and entry.source != source:
        message = f"{name} is installed from {entry.source or 'a folder that was adopted'}, not from {source}"
        raise NameTakenError(message, place)
    unknown = ", and is not in the lock file" if entry is None else ""
    raise AlreadyInstalledError(f"skill {twin or name} already installed at {place}{unknown}", place)


def stage_install(
    store: Store, locked: LockEntries, tree: InstallTree, arrival: InstallRequest
) -> tuple[LockEntries, list[Issue]]:
    """Stage a tree and its links; the lock file's entries as they will be, and what was noticed.

    ``locked`` is the caller's own copy, and is changed: copying it for each of many trees would be quadratic.
    """
    spec, commit, wishes = arrival
    scope = store.scope
    refuse_own_source(spec, scope.base)
    source = source_for_lock(spec, scope)
    taken = store.taken_names
    if not wishes.may_replace(taken.find_place(tree.name) or taken.find_entry(tree.name) or tree.name):
        refuse_taken(tree.name, source, scope, locked, taken)
    before = locked.get(tree.name)
    locked.pop(taken.find_entry(tree.name), None)
    wanted, issues = _plan_links(store, tree, wishes)
    tree = with_skill_files_only(tree) if wishes.copy else tree
    holders = {link.path: _entry_with_link(store, locked, link.path) or before for link in wanted}
    after = _displace_others(store, locked, wanted, (tree, source), wishes)
    _stage_tree(store, tree, before, wishes)
    for link in wanted:
        store.stage_link(_with_backup_reason(store, link, holders[link.path]))
    _unlink_unwanted(store, before, {link.path for link in wanted})
    links = tuple(store.link_folders.to_lock_path(link.path) for link in wanted)
    after[tree.name] = LockEntry(
        tree.name,
        source,
        spec.kind,
        spec.ref,
        commit,
        tree.subpath,
        tree.select,
        tree.skills,
        tree.digest,
        tree.hashes,
        links,
        tuple(link for link in links if link in store.copies),
        wishes.agents_of(tree.name),
        wishes.declared,
        COPY_MODE if wishes.copy else "",
    )
    taken.add_entry(after[tree.name])
    return after, issues


def _stage_tree(store: Store, tree: InstallTree, before: LockEntry | None, wishes: InstallOptions) -> None:
    twin = store.taken_names.find_place(tree.name)
    place = store.scope.install_folder(twin or tree.name)
    is_same = not compare_folder(tree.hashes, place, store.limits)
    keep = backup_reason(store, before, place) if not is_same else ""
    if twin and (wishes.copy or twin != tree.name):
        store.stage_removal(twin, keep=keep)
    if not wishes.copy:
        store.stage_tree(tree.name, tree.files, keep=keep)


def backup_reason(store: Store, entry: LockEntry | None, place: str) -> str:
    """Why what is in a place has to be kept, one of ``REASONS``: no source could give it back; else ``""``."""
    if is_link(place) or not exists(place):
        return ""
    if entry is None:
        return "unknown"
    is_equal = stat_folder(place) is not None and not compare_folder(entry.files, place, store.limits)
    return "" if is_equal else "edited"


# -- links -------------------------------------------------------------------------------------------------------------


def _plan_links(store: Store, tree: InstallTree, wishes: InstallOptions) -> tuple[list[AgentLink], list[Issue]]:
    """The links that a tree's skills get, and those that get none."""
    folders = store.link_folders.folders_for(wishes.agents_of(tree.name))
    place = store.scope.install_folder(tree.name)
    links: dict[str, AgentLink] = {}
    issues: list[Issue] = []
    files = _files_by_folder(tree)
    for skill, folder in tree.skills.items():
        name = link_name(skill)
        target = os.path.join(place, *folder.split("/")) if folder else place
        paths = [os.path.join(into, name) for into in folders]
        if not name or paths[0] in links:
            why = "cannot name a folder" if not name else "has the name of another skill of the source"
            issues.append(Issue("bad-name", "name", f"{skill!a} {why}; it is not linked", folder, 0, "warning"))
            continue
        links |= {path: AgentLink(path, target, files[folder], copy=wishes.copy) for path in paths}
    if issues and not links:
        raise UnsafeTreeError(issues[0].message, code="bad-name")
    return list(links.values()), issues


def _files_by_folder(tree: InstallTree) -> dict[str, list[NewFile]]:
    """The files of each skill of a tree, named from the skill's folder, in one go through all files."""
    files: dict[str, list[NewFile]] = {folder: [] for folder in tree.skills.values()}
    for file in tree.files:
        for folder in folders_above(file.path):
            if folder in files:
                inner = file.path[len(folder) + 1 :] if folder else file.path
                files[folder].append(file._replace(path=inner))
    return files


def _displace_others(
    store: Store, locked: LockEntries, wanted: Sequence[AgentLink], new: tuple[InstallTree, str], wishes: InstallOptions
) -> LockEntries:
    """The other entries, without the links that the new one takes over; raises unless the caller asked for that."""
    tree, source = new
    for link in wanted:
        known = wishes._replace(replace_foreign=True) if _is_copy_in_place(store, link) else wishes
        holder = _find_entry_to_displace(store, locked, link.path, (tree.name, source), known)
        if holder is not None:
            if wishes.replace and wishes.declared and holder.declared:
                _refuse_partial_loss(link.path, holder, {os.path.basename(link.path) for link in wanted})
            locked = _take_link_from(store, locked, holder, link.path)
    return locked


def find_displaced_installs(
    store: Store, skills: Mapping[str, str], source: str, wishes: InstallOptions
) -> list[LockEntry]:
    """The other installs that give skills up once these arrive.

    Raises what ``stage_install`` raises for a name that is taken.

    ``skills``: by its name, the install that each skill goes to.
    """
    installs = dict.fromkeys(skills.values())
    for name in installs:
        if not wishes.may_replace(name):
            refuse_taken(name, source, store.scope, store.locked, store.taken_names)
    arriving = {store.taken_names.find_entry(name) for name in installs}
    others = {name: entry for name, entry in store.locked.items() if name not in arriving}
    folders = store.link_folders.folders_for(wishes.agents)
    holders: dict[str, LockEntry] = {}
    for skill, name in skills.items():
        for path in (os.path.join(folder, link_name(skill)) for folder in folders if link_name(skill)):
            # Only the files tell whether copies that lie there already are these very skills.
            known = wishes._replace(replace_foreign=True) if wishes.copy else wishes
            holder = _find_entry_to_displace(store, others, path, (name, source), known)
            if holder is not None:
                holders[holder.name] = holder
    return list(holders.values())


def _find_entry_to_displace(
    store: Store, locked: LockEntries, path: str, new: tuple[str, str], wishes: InstallOptions
) -> LockEntry | None:
    """The other install that has a path where agents look; raises unless it, or what else is there, gives way.

    ``new``: the name and the source of the install that wants it.
    """
    name, source = new
    holder = _entry_with_link(store, locked, path)
    if not wishes.replace_foreign:
        _refuse_foreign_path(store, path, holder or store.locked.get(name), source)
    if holder is not None and not wishes.may_replace(holder.name):
        raise NameTakenError(_taken_message(os.path.basename(path), holder, source), path)
    return holder


def _taken_message(name: str, holder: LockEntry, source: str) -> str:
    if holder.source == source:
        return f"the skill {name!r} is installed already, from the same source, as part of {holder.name}"
    origin = holder.source or "a folder that was adopted"
    return f"the skill {name!r} is installed from {origin} ({holder.name}); this one comes from {source}"


def _refuse_partial_loss(path: str, holder: LockEntry, names: set[str]) -> None:
    """Raise where an install that the manifest declares as a whole would lose some of its skills, those of ``names``.

    The manifest would then declare them twice, and no sync could tell who is to have them.
    """
    others = ", ".join(f'"{skill}"' for skill in holder.skills if link_name(skill) not in names)
    if others:
        message = (
            f"the skill {os.path.basename(path)!r} is part of {holder.name}, all of which the manifest declares: have "
            f"it name the others (skills = [{others}]) and sync, or remove {holder.name}"
        )
        raise NameTakenError(message, path)


def _entry_with_link(store: Store, locked: LockEntries, path: str) -> LockEntry | None:
    recorded = store.link_folders.to_lock_path(path)
    entry = locked.get(store.taken_names.find_link_holder(recorded))
    return entry if entry is not None and recorded in entry.links else None


def _refuse_foreign_path(store: Store, path: str, entry: LockEntry | None, source: str) -> None:
    if not exists(path) or is_made_by_prowess(store, path, entry):
        return
    name = os.path.basename(path)
    message = (
        f"the skill {name!r} is at {path} already, and is not what Prowess put there; this one comes from {source}"
    )
    raise NameTakenError(message, path)


def is_made_by_prowess(store: Store, path: str, entry: LockEntry | None) -> bool:
    """Whether Prowess made what lies where agents look: a link into the install base, or a copy as it is recorded.

    Where the copies are the install, an edited one is ours too: it is an edited install, and goes to the backups.
    """
    if is_link(path):
        return is_link_into(path, store.scope.base)
    return entry is not None and (_is_own_copy(store, path, entry) or is_exact_copy(entry, path, store.limits))


def _is_own_copy(store: Store, path: str, entry: LockEntry) -> bool:
    return entry.is_copied and store.link_folders.to_lock_path(path) in entry.copies and is_real_folder(path)


def _take_link_from(store: Store, locked: LockEntries, holder: LockEntry, path: str) -> LockEntries:
    """Take a link from its holder; one that has no skill left is removed."""
    taken = store.link_folders.to_lock_path(path)
    name = posixpath.basename(taken)
    links = tuple(link for link in holder.links if link != taken)
    skills = {skill: folder for skill, folder in holder.skills.items() if link_name(skill) != name}
    del locked[holder.name]
    if skills:
        copies = tuple(copy for copy in holder.copies if copy != taken)
        locked[holder.name] = replace(holder, links=links, copies=copies, skills=skills)
        return locked
    for link in links:
        stage_unlink(store, store.link_folders.path_of_link(link), holder)
    store.stage_removal(holder.name, keep=backup_reason(store, holder, store.scope.install_folder(holder.name)))
    return locked


def _with_backup_reason(store: Store, link: AgentLink, holder: LockEntry | None) -> AgentLink:
    """A folder that stands where a link goes is kept, unless it is the copy that we made, as we made it.

    ``holder``: the entry that records what stands there.
    """
    if not exists(link.path) or is_link(link.path) or _is_copy_in_place(store, link):
        return link
    if holder and is_exact_copy(holder, link.path, store.limits):
        return link
    return link._replace(backup_reason="edited" if holder and _is_own_copy(store, link.path, holder) else "foreign")


def _is_copy_in_place(store: Store, link: AgentLink) -> bool:
    """Whether the copy that is to be put somewhere lies there already, byte for byte, whoever put it there."""
    if not link.copy or not is_real_folder(link.path):
        return False
    return not compare_folder(hashes_of(link.files), link.path, store.limits)


def _unlink_unwanted(store: Store, before: LockEntry | None, wanted: set[str]) -> None:
    for path in _link_paths(store, before):
        if path not in wanted:
            stage_unlink(store, path, before)


def _link_paths(store: Store, entry: LockEntry | None) -> Iterator[str]:
    for recorded in entry.links if entry is not None else ():
        yield store.link_folders.path_of_link(recorded)


def stage_unlink(store: Store, path: str, entry: LockEntry | None) -> None:
    """Take away a link that an entry records, if it still leads there, or the copy that we made, as we made it.

    Whatever else is there stays, with a warning: a lock file that came with a clone may name what is the user's.
    """
    if entry is None or not exists(path):
        return
    whole = is_exact_copy(entry, path, store.limits)
    if whole or _is_own_copy(store, path, entry) or is_link_into(path, store.scope.install_folder(entry.name)):
        store.stage_unlink(path, keep="" if whole or is_link(path) else "edited")
        return
    recorded = store.link_folders.to_lock_path(path)
    message = f"{recorded} is not what was installed there: it stays as it is"
    store.issues += (Issue("not-ours", recorded, message, path, 0, "warning"),)


def remove_installs(store: Store, names: Collection[str]) -> None:
    """Take installs, their links and their entries away, all or none; what someone edited goes to the backups."""
    paths: list[str] = []
    for name in names:
        place = store.scope.install_folder(name)
        entry = store.locked.get(name)
        own = list(_link_paths(store, entry))
        for path in own:
            stage_unlink(store, path, entry)
        if exists(place):
            # Whoever names what is in no lock file wants it gone; what they may not know of are edits.
            store.stage_removal(name, keep=backup_reason(store, entry, place) if entry is not None else "")
        paths += own
    store.commit({other: kept for other, kept in store.locked.items() if other not in names})
    # An agent that only had a folder for our skills would be found by it; the shared folder tells of no agent.
    for folder in sorted({os.path.dirname(path) for path in paths} - {store.link_folders.shared}):
        store.link_folders.delete_if_empty(folder)

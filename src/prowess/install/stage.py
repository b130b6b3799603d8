"""One install staged in an open store: its conflicts are settled, then its tree, its links and its lock entry wait.

Nothing takes its place before ``Store.commit``, which moves everything that is staged at once.
"""

from __future__ import annotations

from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue, UnsafeTreeError
from prowess.files.tree import HashedTree, as_recorded, digest_on_disk, hash_tree, take_recorded_bits
from prowess.install.agent_links import skill_folder
from prowess.install.entry_source import refuse_own_source, source_for_lock
from prowess.install.install_tree import refuse_by_policy, with_recorded_modes, with_skill_files_only
from prowess.install.name_conflicts import Newcomer, displace_others, refuse_taken
from prowess.install.ownership import (
    dispose_of_install,
    recorded_link_paths,
    stage_unlink,
    with_disposal,
)
from prowess.install.store import AgentLink, Disposal
from prowess.installed.compare import list_differing
from prowess.installed.placed import find_part, group_by_part
from prowess.lockfile.read import COPY_MODE, LockEntries, LockEntry
from prowess.names import folders_above, group_by_folder, link_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from prowess.files.tree import FileHash
    from prowess.files.write import NewFile
    from prowess.install.install_tree import InstallTree
    from prowess.install.plan import InstallOptions
    from prowess.install.store import Store


def stage_install(
    store: Store, locked: LockEntries, tree: InstallTree, options: InstallOptions, *, is_as_locked: bool = False
) -> list[Issue]:
    """Stage a tree and its links, and put its entry into ``locked``; returns a warning for each skill without a link.

    ``locked`` is the caller's own copy of the entries, and is changed: a copy for each of many trees would make their
    cost quadratic. Raises ``NameTakenError`` or ``AlreadyInstalledError`` when the options do not allow the install to
    take its places, and ``UnsafeTreeError`` when none of its skills can be linked. ``is_as_locked``: the caller has
    found that the folder of the install is as its entry records it.
    """
    refuse_by_policy([tree], store.scope.root)
    taken = store.taken_names
    refuse_own_source(tree.spec, store.scope.base)
    source = source_for_lock(tree.spec, store.scope)
    if not options.may_replace(taken.find_place(tree.name) or taken.find_entry(tree.name) or tree.name):
        refuse_taken(tree.name, source, store.scope, locked, taken)
    before = locked.get(tree.name)
    if before is not None and tree.spec.kind == "folder":
        tree = with_recorded_modes(tree, before)
    if before is not None and before.source == source:
        refuse_other_signer(before, tree, accepted=options.accepted_signer)
    locked.pop(taken.find_entry(tree.name), None)  # it may have the name in another case
    links, issues = _plan_links(store, tree, options)
    tree = with_skill_files_only(tree) if options.copy else tree
    held = set(recorded_link_paths(store, before))
    is_in_place = store.link_folders.is_in_place
    # Of thousands of skills of one source, an update changes a few: the links of the others are what they should be.
    new_links = [
        link for link in links if link.path not in held or not is_in_place(link.path, link.target, copy=link.copy)
    ]
    # Found before the others lose their links: the reason of a backup depends on whose a folder was.
    holders = [taken.find_link_holder(link.recorded, locked) or before for link in new_links]
    displace_others(store, locked, new_links, Newcomer(tree.name, source, options))
    _stage_tree(store, tree, before, options, is_as_locked=is_as_locked)
    for link, holder in zip(new_links, holders, strict=True):
        store.stage_link(with_disposal(store, link, holder))
    wanted = {link.path for link in links}
    for path in recorded_link_paths(store, before):
        if path not in wanted:
            stage_unlink(store, path, before)
    locked[tree.name] = _make_entry(store, tree, links, source, options)
    taken.add_entry(locked[tree.name])
    return issues


def refuse_other_signer(before: LockEntry, tree: InstallTree, *, accepted: str) -> None:
    """Raise ``InstallError`` (``other-signer``) where another key signed a tree than the lock file pins, or none."""
    if not before.signer or tree.signer == before.signer or (accepted and tree.signer == accepted):
        return
    now = f"signed by {tree.signer}" if tree.signer else "not signed"
    message = f"{before.name} is {now}, and the lock file pins the signer {before.signer}"
    raise InstallError(message, code="other-signer")


def _make_entry(
    store: Store, tree: InstallTree, links: Sequence[AgentLink], source: str, options: InstallOptions
) -> LockEntry:
    """Return the lock entry of a tree whose links are staged: only then is it known which of them became copies."""
    recorded = tuple([link.recorded for link in links])
    agents = options.agents_of(tree.name)
    extra = tuple(agent for agent in agents if agent not in options.declared_agents) if options.declared else ()
    return LockEntry(
        tree.name,
        source,
        tree.spec.kind,
        tree.spec.ref,
        tree.commit,
        tree.subpath,
        tree.select,
        tree.skills,
        tree.digest,
        tree.hashes,
        recorded,
        tuple(link for link in recorded if link in store.copies),
        agents,
        options.declared,
        COPY_MODE if options.copy else "",
        extra,
        tree.signer,
    )


def _stage_tree(
    store: Store, tree: InstallTree, before: LockEntry | None, options: InstallOptions, *, is_as_locked: bool
) -> None:
    """Stage the files of a tree for the install base; of an install in copy mode, only that its folder there goes."""
    existing = store.taken_names.find_place(tree.name)
    place = store.scope.install_folder(existing or tree.name)
    hashes = tree.hashes
    locked = before if before is not None and existing == tree.name else None
    here = HashedTree(dict(locked.files), []) if locked is not None and is_as_locked else _hash_install(store, place)
    if locked is not None and here is not None and not options.copy:
        disposals = _dispose_of_skills(store, tree, locked, here)
        if disposals is not None:
            _stage_skills(store, tree, disposals)
            return
    if locked is not None and _is_as(here, locked.files, place):
        disposal = Disposal(digest=locked.placed_digest())
    # Files that are put back as they are need no backup, whoever put them there.
    elif _is_as(here, hashes, place):
        disposal = Disposal(digest=digest_on_disk(hashes))
    else:
        disposal = dispose_of_install(store, before, existing or tree.name)
    # A place whose name differs in case is emptied first: on some systems both names are one folder.
    if existing and (options.copy or existing != tree.name):
        store.stage_removal(existing, disposal)
    if not options.copy:
        store.stage_tree(tree.name, tree.files, disposal)


def _hash_install(store: Store, place: str) -> HashedTree | None:
    """Return the files at the place of an install; ``None`` without a folder that can be listed."""
    with suppress(OSError, ValueError):
        return hash_tree(place, store.limits)
    return None


def _is_as(here: HashedTree | None, files: Mapping[str, FileHash], place: str) -> bool:
    """Return whether the folder at ``place`` has exactly some files; ``here`` is what was found in it."""
    return here is not None and not here.problems and as_recorded(here.files, files, place) == files


def _stage_skills(store: Store, tree: InstallTree, disposals: Mapping[str, Disposal]) -> None:
    """Stage the files of some skills of a tree, by their folders; the rest of the install stays where it is."""
    files = group_by_skill(tree.files, disposals)
    for folder, disposal in disposals.items():
        if files[folder]:
            store.stage_tree(tree.name, files[folder], disposal, inside=folder)
        else:
            store.stage_removal(tree.name, disposal, inside=folder)


def _dispose_of_skills(
    store: Store, tree: InstallTree, before: LockEntry, here: HashedTree
) -> dict[str, Disposal] | None:
    """What becomes of each skill folder that a tree changes in an install, which the lock file has as ``before``.

    ``here`` is what exists now. A folder that is neither as the lock file has it nor as Prowess put it there goes to
    the backups. ``None`` when the install has to be replaced as a whole: when something outside of its skills changes,
    or nothing does, and when most of its skills do and none was edited.
    """
    placed = store.placed.parts_of(tree.name)
    folders = {*before.skills.values(), *tree.skills.values(), *filter(None, placed)}
    # A folder in another one would be moved twice, and the only one is the install.
    if len(folders) == 1 or "" in folders or any(not folders.isdisjoint(folders_above(folder)) for folder in folders):
        return None
    refused = {find_part(path, folders) for _, path in here.problems}
    found = take_recorded_bits(here.files, tree.hashes)
    changed = {find_part(path, folders) for path in list_differing(found, tree.hashes)} | refused
    if not changed or "" in changed:
        return None
    groups = group_by_part(here.files, changed)
    disposals: dict[str, Disposal] = {}
    for folder in sorted(changed):
        digest = digest_on_disk(groups.get(folder, {}))
        is_known = folder not in groups or digest in {before.placed_digest(folder), placed.get(folder)}
        disposals[folder] = Disposal(digest=digest) if is_known and folder not in refused else Disposal("edited")
    has_edits = any(disposal.keep for disposal in disposals.values())
    return disposals if has_edits or len(changed) * 2 <= len(folders) else None


def _plan_links(store: Store, tree: InstallTree, options: InstallOptions) -> tuple[list[AgentLink], list[Issue]]:
    """Return the links that the skills of a tree get, and a warning for each skill that gets none."""
    links: list[AgentLink] = []
    issues: list[Issue] = []
    names = {skill: link_name(skill) for skill in tree.skills}
    places = store.link_folders.places_for(names.values(), options.agents_of(tree.name))
    files = group_by_skill(tree.files, tree.skills.values())
    for skill, folder in tree.skills.items():
        name = names[skill]
        if not name or name not in places:
            why = "cannot name a folder" if not name else "has the name of another skill of the source"
            issues.append(Issue("bad-name", "name", f"{skill!a} {why}; it is not linked", folder, 0, "warning"))
            continue
        target = skill_folder(store.scope, tree.name, folder)
        links += [AgentLink(*place, target, files[folder], copy=options.copy) for place in places.pop(name)]
    if issues and not links:
        raise UnsafeTreeError(issues[0].message, code="bad-name")
    return links, issues


def group_by_skill(files: Iterable[NewFile], folders: Iterable[str]) -> dict[str, list[NewFile]]:
    """Return the files in each of the skill folders, with paths that start at that folder."""
    groups = group_by_folder(files, folders, attrgetter("path"))
    return {
        folder: [file._replace(path=file.path[len(folder) + 1 :]) for file in group] if folder else group
        for folder, group in groups.items()
    }

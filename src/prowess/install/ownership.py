"""Whose folder it is: made by Prowess and unchanged, edited by somebody, or never made by Prowess.

The answer decides what a change may delete, what it moves to the backups, and what it must leave alone. The functions
take an open ``Store``, so nobody else changes the scope meanwhile.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_link, is_link_file_into, is_link_into, is_real_folder
from prowess.files.tree import digest_on_disk, hash_files
from prowess.install.store import DELETED, Disposal
from prowess.installed.compare import compare_folder, has_other_line_ends, is_exact_copy
from prowess.installed.placed import digest_folder, name_copy

if TYPE_CHECKING:
    from prowess.install.store import AgentLink, Store
    from prowess.lockfile.read import LockEntry


def dispose_of_install(store: Store, entry: LockEntry | None, name: str) -> Disposal:
    """What becomes of the folder of an install: it may be deleted when it is exactly what Prowess put there.

    That is what its lock entry records, or what the record of this disk has. A folder in which somebody changed
    something is kept, and so is one that Prowess did not make.
    """
    place = store.scope.install_folder(name)
    if is_link(place) or not exists(place):
        return DELETED
    if entry is not None and stat_folder(place) is not None and not compare_folder(entry.files, place, store.limits):
        return Disposal(digest=entry.placed_digest())
    digest = store.placed.digest_if_pristine(name, place)
    if digest:
        return Disposal(digest=digest)
    return Disposal("edited" if entry is not None or store.placed.parts_of(name) else "unknown")


def is_made_by_prowess(store: Store, path: str, entry: LockEntry | None) -> bool:
    """Return whether Prowess made what is at a path where agents look: a link into the install base, or a copy.

    A link may be a file, as git writes it where it makes no links. A copy is as ``entry`` has it, or as Prowess put it
    there. An edited copy of an install in copy mode counts as well: it is an edited install, and goes to the backups.
    """
    if is_link(path):
        return is_link_into(path, store.scope.base)
    if is_link_file_into(path, store.scope.base):
        return True
    is_edited_copy = entry is not None and _is_recorded_copy(store, path, entry)
    return is_edited_copy or _find_copy_digest(store, path, entry) != ""


def _find_copy_digest(store: Store, path: str, entry: LockEntry | None) -> str:
    """Return the digest of a copy that nobody but git changed since Prowess put it there; ``""`` for anything else."""
    name = os.path.basename(path)
    if entry is not None and is_exact_copy(entry, path, store.limits):
        return entry.digest_for_link(name)
    if entry is not None and has_other_line_ends(entry, path, store.limits):
        return digest_folder(path, store.limits)
    copy = name_copy(store.link_folders.to_lock_path(path))
    return store.placed.digest_if_pristine(copy, path) if is_real_folder(path) else ""


def _is_recorded_copy(store: Store, path: str, entry: LockEntry) -> bool:
    """Return whether a real folder is a copy that an install in copy mode records there, edited or not."""
    return entry.is_copied and store.link_folders.to_lock_path(path) in entry.copies and is_real_folder(path)


def is_copy_in_place(store: Store, link: AgentLink) -> bool:
    """Return whether the copy that ``link`` asks for is there already, byte for byte, no matter who put it there."""
    if not link.copy or not is_real_folder(link.path):
        return False
    return not compare_folder(hash_files(link.files), link.path, store.limits)


def with_disposal(store: Store, link: AgentLink, holder: LockEntry | None) -> AgentLink:
    """The link with what becomes of the folder that is in its place: a copy that nobody changed need not be kept.

    ``holder`` is the entry that records the folder.
    """
    if not exists(link.path) or is_link(link.path) or is_link_file_into(link.path, store.scope.base):
        return link
    if is_copy_in_place(store, link):
        return link._replace(disposal=Disposal(digest=digest_on_disk(hash_files(link.files))))
    digest = _find_copy_digest(store, link.path, holder)
    if digest:
        return link._replace(disposal=Disposal(digest=digest))
    edited = holder is not None and _is_recorded_copy(store, link.path, holder)
    return link._replace(disposal=Disposal("edited" if edited else "foreign"))


def recorded_link_paths(store: Store, entry: LockEntry | None) -> list[str]:
    """Return the paths of the links that an entry records; none without an entry."""
    return [store.link_folders.path_of_link(link) for link in entry.links] if entry is not None else []


def stage_unlink(store: Store, path: str, entry: LockEntry | None) -> None:
    """Stage the removal of a link that leads into the install of ``entry``, or of a copy that ``entry`` records.

    An edited copy goes to the backups. Anything else stays, with the warning ``not-ours``.
    """
    if entry is None or not exists(path):
        return
    place = store.scope.install_folder(entry.name)
    if is_link_into(path, place) or is_link_file_into(path, place):
        store.stage_unlink(path)
        return
    # What Prowess made and nobody changed can be made again; everything else is somebody's work.
    digest = _find_copy_digest(store, path, entry)
    if digest or _is_recorded_copy(store, path, entry):
        store.stage_unlink(path, Disposal(digest=digest) if digest else Disposal("edited"))
        return
    # A lock file that came with a clone may name folders that are the user's own.
    recorded = store.link_folders.to_lock_path(path)
    message = f"{recorded} is not what was installed there: it stays as it is"
    store.issues += (Issue("not-ours", recorded, message, path, 0, "warning"),)

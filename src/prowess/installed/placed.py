"""What Prowess itself put on this disk: a record that distinguishes an edit from another version of an install.

After ``git pull`` or ``git switch`` the lock file has changed and the installs have not. An install that is still
exactly what Prowess put there is *pristine*: nobody's work is in it, and a sync may replace or remove it without a
question and without a backup. An install of several skills is recorded skill by skill: an edit of one does not make its
siblings look edited. The lock file alone decides what is right. The record holds digests, by names that are only ever
compared, so a forged one can cost a backup and nothing more.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.files import syscalls
from prowess.files.tree import digest_on_disk, hash_tree
from prowess.files.write import write_new_file
from prowess.installed.scopes import STORE_FOLDER
from prowess.lockfile.read import read_text
from prowess.names import folders_above

if TYPE_CHECKING:
    from collections.abc import Collection, ItemsView, Iterable, Mapping

    from prowess.files.tree import FileHash, HashedTree
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry

Parts = dict[str, str]
"""The digest of each skill folder of a tree, and, as ``""``, of the files that are in none of them."""

RECORD_FILE = ".placed.json"
"""The record, in the install base: whoever restores the base from a cache restores the record that fits it."""
_VERSION = 1
_COPY_PREFIX = "./"  # no owner of an install is called "."


class PlacedTrees:
    """The digests of each tree that Prowess put into one scope.

    An install in the base is known as ``org/name``, and a copy in place of a link by the name of ``name_copy``.
    A record that is missing or malformed knows nothing.
    """

    def __init__(self, base: str, limits: Limits) -> None:
        self._base, self._limits = base, limits

    @cached_property
    def _trees(self) -> dict[str, Parts]:
        with suppress(InstallError, ValueError, RecursionError):
            data = json.loads(read_text(self._base, RECORD_FILE, self._limits) or "null")
            if isinstance(data, dict) and data.get("version") == _VERSION and isinstance(data.get("trees"), dict):
                trees = {name: parts for name, parts in data["trees"].items() if _is_parts(parts)}
                json.dumps(trees, ensure_ascii=False).encode()  # half a character is in no name, and cannot be written
                return trees
        return {}

    def parts_of(self, name: str) -> Parts:
        """Return the digests of the tree that Prowess put there under this name; none for no tree."""
        return self._trees.get(name, {})

    def items(self) -> ItemsView[str, Parts]:
        """Return every name with its digests."""
        return self._trees.items()

    @property
    def copies(self) -> list[str]:
        """The names of the copies that Prowess put in place of links."""
        return [name for name in self._trees if name.startswith(_COPY_PREFIX)]

    def digest_if_pristine(self, name: str, folder: str) -> str:
        """Return the digest of a folder that is exactly what Prowess put there under this name.

        ``""`` for any other.
        """
        parts = self.parts_of(name)
        with suppress(OSError, ValueError):
            tree = hash_tree(folder, self._limits) if parts else None
            return digest_on_disk(tree.files) if tree is not None and not find_edited_parts(tree, parts) else ""
        return ""

    def is_pristine(self, name: str, folder: str) -> bool:
        """Return whether a folder is exactly what Prowess put there under this name."""
        return self.digest_if_pristine(name, folder) != ""

    def is_skill_pristine(self, name: str, inner: str, install: str) -> bool:
        """Return whether the skill in the folder ``inner`` of an install is exactly what Prowess put there."""
        parts = self.parts_of(name)
        part = next((folder for folder in (inner, *folders_above(inner)) if folder in parts), None)
        return part is not None and parts[part] == digest_folder(os.path.join(install, *part.split("/")), self._limits)

    def save(self, placed: Mapping[str, Parts], removed: Iterable[str] = ()) -> None:
        """Add the digests of ``placed`` to the record, and take the names of ``removed`` out of it.

        The caller holds the lock of the scope.
        """
        gone = set(removed)
        trees = {name: parts for name, parts in self._trees.items() if name not in gone} | dict(placed)
        if trees == self._trees:
            return
        self._trees = trees
        # A record that cannot be written costs a backup at the next sync. It must not fail a change that is done.
        with suppress(OSError):
            self._write()

    def _write(self) -> None:
        path = os.path.join(self._base, RECORD_FILE)
        if not self._trees:
            syscalls.delete_file(path)
            return
        data = {"version": _VERSION, "trees": dict(sorted(self._trees.items()))}
        # In the store, whose leftovers every change deletes.
        staged = os.path.join(self._base, STORE_FOLDER, f"{RECORD_FILE}.{secrets.token_hex(6)}.tmp")
        write_new_file(staged, f"{json.dumps(data, indent=1, ensure_ascii=False)}\n".encode(), mode=0o644)
        syscalls.rename(staged, path)


def name_copy(link: str) -> str:
    """Return the name of a copy in the record: ``link`` is the link in whose place it is, as the lock file has it.

    The name says where Prowess put it. A folder with the same files in another place is somebody else's, such as the
    source of the install.
    """
    return _COPY_PREFIX + link


def _is_parts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(digest, str) for digest in value.values())


def digest_parts(entry: LockEntry) -> Parts:
    """Return the digests of an install that is as a lock entry has it."""
    folders = set(entry.skills.values())
    if not folders or "" in folders:  # one skill, which is the install
        return {"": entry.placed_digest()}
    outermost = [folder for folder in sorted(folders) if folders.isdisjoint(folders_above(folder))]
    parts = {folder: entry.placed_digest(folder) for folder in outermost}
    if sum([len(entry.files_below(folder)) for folder in outermost]) < len(entry.files):
        parts[""] = digest_on_disk(group_by_part(entry.files, outermost)[""])
    return parts


def find_edited_parts(tree: HashedTree, parts: Parts) -> set[str]:
    """Those of the skill folders that were put there whose files are not the same any more, or are gone.

    ``""`` among them stands for the files that are in none of these folders.
    """
    edited = {find_part(path, parts) for _, path in tree.problems}  # links and special files are never installed
    groups = group_by_part(tree.files, parts)
    for folder in groups.keys() | parts.keys():
        files = groups.get(folder)
        if (digest_on_disk(files) if files else "") != parts.get(folder, ""):
            edited.add(folder)
    return edited


def group_by_part(files: Mapping[str, FileHash], folders: Collection[str]) -> dict[str, dict[str, FileHash]]:
    """Return the files in each of some folders, by their paths from there, and, as ``""``, those that are in none."""
    groups: dict[str, dict[str, FileHash]] = {"": {}}
    for path, file in files.items():
        part = find_part(path, folders)
        groups.setdefault(part, {})[path[len(part) + 1 :] if part else path] = file
    return groups


def find_part(path: str, folders: Collection[str]) -> str:
    """Return the outermost of some folders that a path is in, or ``""``."""
    found = ""
    for folder in folders_above(path):
        if folder and folder in folders:
            found = folder
    return found


def digest_folder(folder: str, limits: Limits) -> str:
    """Return the digest by which a folder is recognized on this disk.

    It is ``""`` for a folder that cannot be read whole, or that holds a link.
    """
    with suppress(OSError, ValueError):
        tree = hash_tree(folder, limits)
        return "" if tree.problems else digest_on_disk(tree.files)
    return ""

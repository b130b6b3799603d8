"""Whether files changed: the identity of each file of a folder, and one fingerprint for a whole tree."""

from __future__ import annotations

import os
import stat
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from prowess.files.directory import is_link_entry
from prowess.files.read import HAS_CHANGE_TIME, OpenFile, identity_of
from prowess.files.tree import TreeBounds, walk_tree
from prowess.names import is_git_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.directory import Folder
    from prowess.files.read import Identity
    from prowess.limits import Limits

_UNWATCHED_FOLDERS = frozenset(("node_modules", "__pycache__"))
# Two changes within one tick of a file system's clock can give one time: such a recent time proves nothing yet.
_CLOCK_TICK_NS = 50_000_000


class FileIdentities(NamedTuple):
    """Every regular file below a folder with its identity, in byte order of the paths.

    ``bound`` names the limit, or the error, that ended the listing early; it is ``""`` when the listing is complete.
    """

    files: list[tuple[str, Identity]]
    bound: str = ""


def identity_at(path: str) -> Identity | None:
    """Return the identity of what is at a path, ``None`` when there is nothing; nothing is opened or followed."""
    try:
        return identity_of(os.lstat(path))
    except OSError:
        return None


def list_identities(base: str, parts: tuple[str, ...], limits: Limits, most: int = sys.maxsize) -> FileIdentities:
    """Return at most ``most`` files of a skill, each with its identity; no file is opened and no link is followed."""
    files: list[tuple[str, Identity]] = []

    def visit(folder: Folder, name: str, path: str) -> None:
        identity = folder.file_identity(name)
        if identity is not None:
            files.append((path, identity))

    bounds = TreeBounds.for_skill(limits)
    tree = walk_tree(base, parts, bounds._replace(files=min(most, bounds.files)), visit)
    bound = tree.bound or ("unreadable-directory" if tree.unreadable else "")
    return FileIdentities(sorted(files, key=lambda row: row[0].encode()), bound)


class HashedFile(NamedTuple):
    """A file that was read: its identity, its SHA-256, its size, and whether its identity can be relied on.

    ``settled`` is false for a file so new that its next change might leave its identity as it is.
    """

    identity: Identity
    digest: bytes
    settled: bool
    size: int


def hash_with_identity(base: str, parts: tuple[str, ...], limit: int) -> HashedFile:
    """Return the hash of a file and the identity that the file had while it was read, without keeping its bytes."""
    import hashlib

    size, content = 0, hashlib.sha256()
    with OpenFile(base, parts) as file:
        for chunk in file.iter_all_chunks(limit):
            size += len(chunk)
            content.update(chunk)
        return _as_hashed_file(file, content.digest(), size)


def read_with_identity(base: str, parts: tuple[str, ...], limit: int) -> tuple[bytes, HashedFile]:
    """Return the bytes of a file, with their hash and the identity that the file had while it was read."""
    import hashlib

    with OpenFile(base, parts) as file:
        data = file.read_all(limit)
        return data, _as_hashed_file(file, hashlib.sha256(data).digest(), len(data))


def _as_hashed_file(file: OpenFile, digest: bytes, size: int) -> HashedFile:
    # A file that is not as long as it says, as in /proc, need not show its changes either.
    return HashedFile(file.identity, digest, settled=is_settled(file.info) and size == file.info.st_size, size=size)


def is_settled(info: os.stat_result) -> bool:
    """Return whether the identity of a file can be relied on: the next change of the file will have another time.

    That is never so on Windows: its ``st_ctime`` is the time of creation, so whoever writes as many bytes and sets the
    time back leaves the identity as it is.
    """
    return HAS_CHANGE_TIME and max(info.st_mtime_ns, info.st_ctime_ns) + _CLOCK_TICK_NS < time.time_ns()


def fingerprint_tree(path: str, limits: Limits) -> bytes:
    """Return a mark that differs once anything below ``path`` was added, removed, renamed or written.

    Entries beyond the limits are not looked at.
    """
    import hashlib

    mark = hashlib.blake2b(digest_size=16)
    for row in _iter_rows(path, limits):
        mark.update(row)
    return mark.digest()


def _iter_rows(top: str, limits: Limits) -> Iterator[bytes]:
    """Yield a line for each entry, folder by folder, the entries of each folder by name.

    It looks at roots of any size again and again, so it goes by paths and opens no handle for each folder. That is safe
    because the lines decide nothing but when to scan again.
    """
    until = time.monotonic() + limits.max_scan_seconds
    left = limits.max_dirs_per_root
    folders = [(top, 0)]
    while folders and left > 0 and time.monotonic() < until:
        folder, depth = folders.pop()
        left -= 1
        yield b"\0%s\n" % os.fsencode(folder)
        try:
            with os.scandir(folder) as listing:
                entries = sorted(islice(listing, limits.max_entries_per_folder), key=lambda entry: entry.name)
        except OSError as error:
            yield b"\1%d %s\n" % (error.errno or 0, repr(identity_at(folder)).encode())  # it may be a file
            continue
        for entry in entries:
            yield _entry_row(entry)
            if _is_folder_entry(entry) and is_watched_folder(entry.name) and depth < limits.max_scan_depth:
                folders.append((entry.path, depth + 1))


def is_watched_folder(name: str) -> bool:
    """Return whether changes in a folder with that name can be changes of skills."""
    return name not in _UNWATCHED_FOLDERS and not is_git_name(name)


def _is_folder_entry(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and not is_link_entry(entry)


def _entry_row(entry: os.DirEntry[str]) -> bytes:
    name = os.fsencode(entry.name)
    if _is_folder_entry(entry):
        return b"%s/\n" % name  # Without its times: they change with entries that are not watched, too.
    try:
        return b"%s\0%s\n" % (name, repr(identity_of(entry.stat(follow_symlinks=False))).encode())
    except OSError:
        return b"%s\0\n" % name


def watched_identity(path: str) -> tuple[int, ...] | None:
    """Return the device and inode of the folder that a path leads to now; ``None`` when it leads to nothing.

    A file has its size and its time besides: nothing else shows that it was written.
    """
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    content = () if stat.S_ISDIR(info.st_mode) else (info.st_size, info.st_mtime_ns)
    return (info.st_dev, info.st_ino, *content)

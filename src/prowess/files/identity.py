"""What tells that files are still what they were: the identity of each file of a folder, one mark for a whole tree."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from prowess.files.read import OpenFile, identity_of
from prowess.files.tree import TreeBounds, walk_tree
from prowess.names import is_git_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.directory import Folder
    from prowess.files.read import Identity
    from prowess.limits import Limits

_UNWATCHED_FOLDERS = frozenset(("node_modules", "__pycache__"))
_CLOCK_TICK_NS = 50_000_000  # two changes within one tick of a file system's clock can look alike


class FileIdentities(NamedTuple):
    """Every regular file below a folder with its identity, in byte order of the paths; ``bound``: what ended it."""

    files: list[tuple[str, Identity]]
    bound: str = ""


def identity_at(path: str) -> Identity | None:
    """The identity of what is at a path, ``None`` where there is nothing; nothing is opened."""
    try:
        return identity_of(os.lstat(path))
    except OSError:
        return None


def list_identities(base: str, parts: tuple[str, ...], limits: Limits, most: int = sys.maxsize) -> FileIdentities:
    """The files of a skill, at most ``most``, each with its identity; no file is opened and no link followed."""
    files: list[tuple[str, Identity]] = []

    def visit(folder: Folder, name: str, path: str) -> None:
        mark = folder.file_identity(name)
        if mark is not None:
            files.append((path, mark))

    bounds = TreeBounds.for_skill(limits)
    tree = walk_tree(base, parts, bounds._replace(files=min(most, bounds.files)), visit)
    bound = tree.bound or ("unreadable-directory" if tree.unreadable else "")
    return FileIdentities(sorted(files, key=lambda row: row[0].encode()), bound)


class HashedFile(NamedTuple):
    """A file that was read: which, its SHA-256, whether its identity will tell the next change, how many bytes."""

    identity: Identity
    digest: bytes
    settled: bool
    size: int


def hash_with_identity(base: str, parts: tuple[str, ...], limit: int) -> HashedFile:
    """The hash of a file, and the identity that it had meanwhile."""
    import hashlib  # noqa: PLC0415 - discovery hashes nothing

    size, content = 0, hashlib.sha256()
    with OpenFile(base, parts) as file:
        for chunk in file.iter_all_chunks(limit):
            size += len(chunk)
            content.update(chunk)
        return _as_hashed_file(file, content.digest(), size)


def read_with_identity(base: str, parts: tuple[str, ...], limit: int) -> tuple[bytes, HashedFile]:
    """The same with the bytes."""
    import hashlib  # noqa: PLC0415 - discovery hashes nothing

    with OpenFile(base, parts) as file:
        data = file.read_all(limit)
        return data, _as_hashed_file(file, hashlib.sha256(data).digest(), len(data))


def _as_hashed_file(file: OpenFile, digest: bytes, size: int) -> HashedFile:
    """What was read; a file that is not as long as it says tells nothing of its changes either."""
    latest = max(file.info.st_mtime_ns, file.info.st_ctime_ns)
    settled = latest + _CLOCK_TICK_NS < time.time_ns() and size == file.info.st_size
    return HashedFile(file.identity, digest, settled=settled, size=size)


def fingerprint_tree(path: str, limits: Limits) -> bytes:
    """A mark that differs once anything below ``path`` was added, removed, renamed or written; within the limits."""
    import hashlib  # noqa: PLC0415 - only where files are watched

    mark = hashlib.blake2b(digest_size=16)
    for row in _iter_rows(path, limits):
        mark.update(row)
    return mark.digest()


def _iter_rows(top: str, limits: Limits) -> Iterator[bytes]:
    """A line for each entry, folder by folder, each folder's by name.

    This is no walk of one skill: it looks at roots of any size until a deadline, again and again, so it goes by paths
    without opening a handle for each folder. Nothing is read by what it says but the time to look again.
    """
    until = time.monotonic() + limits.max_scan_seconds
    left = limits.max_dirs_per_root
    folders = [(top, 0)]
    while folders and left > 0 and time.monotonic() < until:
        folder, depth = folders.pop()
        left -= 1
        yield b"\0%s\n" % os.fsencode(folder)
        try:
            with os.scandir(folder) as found:
                entries = sorted(_take_entries(found, limits.max_entries_per_folder), key=lambda entry: entry.name)
        except OSError as error:
            yield b"\1%d\n" % (error.errno or 0)
            continue
        for entry in entries:
            yield _entry_row(entry)
            if entry.is_dir(follow_symlinks=False) and is_watched_folder(entry.name) and depth < limits.max_scan_depth:
                folders.append((entry.path, depth + 1))


def is_watched_folder(name: str) -> bool:
    """Whether changes in a folder of that name can be changes of skills."""
    return name not in _UNWATCHED_FOLDERS and not is_git_name(name)


def _take_entries(found: Iterator[os.DirEntry[str]], most: int) -> Iterator[os.DirEntry[str]]:
    for count, entry in enumerate(found):
        if count >= most:
            return
        yield entry


def _entry_row(entry: os.DirEntry[str]) -> bytes:
    name = os.fsencode(entry.name)
    if entry.is_dir(follow_symlinks=False):
        return b"%s/\n" % name  # what is in it has rows of its own; its times change with what is not watched
    try:
        return b"%s\0%s\n" % (name, repr(identity_of(entry.stat(follow_symlinks=False))).encode())
    except OSError:
        return b"%s\0\n" % name


def folder_identity(path: str) -> tuple[int, int] | None:
    """Which folder a path leads to now; ``None``: none."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return (info.st_dev, info.st_ino)

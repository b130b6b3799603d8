"""Open folders: their entries, and the first bytes of files in them; links are listed and never followed.

A folder is held by a handle, and its children are opened through that handle. Another process that swaps the path of
the folder meanwhile changes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from itertools import chain, islice, pairwise
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Self

from prowess.files.contained_open import (
    FOLDER_FLAGS,
    HAS_HANDLES,
    IGNORES_CASE,
    LISTING_FLAGS,
    READ_FLAGS,
    is_link_info,
    open_beneath,
    open_child_folder,
    open_folder,
)
from prowess.files.read import OpenFile, identity_of
from prowess.names import is_git_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from prowess.files.read import Identity


_CAN_ADVISE = hasattr(os, "posix_fadvise")
TIMED_HEADS = 32
"""How many of the first heads show whether files have to come from a disk."""
SLOW_HEAD_SECONDS = 40e-6
"""A head that takes longer was not in memory: from there it takes about 10 µs, from a fast disk 80."""
_READ_BATCH = 16
"""How many heads are read before the first of them is looked at."""
ADVICE_BATCH = 256
"""How many files are announced at once: enough for every disk, and few enough that none is forgotten again."""
_FORMAT_SHIFT = 12  # the bits of a mode above the permissions say what kind of file it is
_REGULAR = stat.S_IFREG >> _FORMAT_SHIFT
_OPEN_CHILD_FLAGS = LISTING_FLAGS | getattr(os, "O_NOFOLLOW", 0)


class FolderEntries(NamedTuple):
    """What a folder holds, by kind, each kind sorted by name."""

    folders: list[str]
    files: list[str]
    links: list[str]
    others: list[str]
    """Neither file, folder nor link."""
    bad_names: list[str]
    """Names that are not UTF-8, escaped. They can neither be listed nor be asked for."""
    complete: bool = True


HeadRead = tuple[str, "bytes | None", "os.stat_result | None", "OSError | None"]
"""The name of the child folder, then the first bytes of a file in it and what ``fstat`` says about that file; or the
error; or nothing, when there is no such file. A bare tuple, because discovery makes one for each folder."""


class Folder:
    """An open folder; a context manager."""

    __slots__ = ("_fd", "_lists", "path")

    def __init__(self, path: str, fd: int | None = None, *, lists: bool = False) -> None:
        """Open the folder at ``path``, or take over the handle ``fd``; ``lists``: the handle can be listed itself."""
        self.path = path
        self._lists = lists
        self._fd = fd if fd is not None else (open_folder(path) if HAS_HANDLES else _require_folder(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the handle; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def open_child(self, name: str, *, lists: bool = False) -> Folder:
        """Open a folder in this one, with ``lists`` to list it; raise ``OSError`` (ELOOP) when it is a link."""
        path = f"{self.path}{os.sep}{name}"
        if HAS_HANDLES:
            flags = LISTING_FLAGS if lists else FOLDER_FLAGS
            return Folder(path, open_child_folder(self._fd, name, flags), lists=lists)
        if is_link_info(os.lstat(path)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return Folder(path)

    def list_entries(self, most: int = 10**9) -> FolderEntries:
        """Return the entries of the folder by kind, at most ``most``; raise ``OSError`` when it cannot be listed."""
        folders: list[str] = []
        files: list[str] = []
        links: list[str] = []
        others: list[str] = []
        bad_names: list[str] = []
        with self.scan_entries() as entries:
            for entry in islice(entries, min(most, sys.maxsize)):
                if entry.is_dir(follow_symlinks=False) and (HAS_HANDLES or not is_link_entry(entry)):
                    # First, because the roots of a scan hold little else. Only Windows has folders that are links.
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
                else:
                    (links if is_link_entry(entry) else others).append(entry.name)
            complete = next(entries, None) is None
        for group in (folders, files, links, others):
            if not "".join(group).isascii():  # one test for thousands of names, nearly always the only one
                bad_names += [ascii(name) for name in group if not is_utf8_name(name)]
                group[:] = filter(is_utf8_name, group)
            group.sort()
        return FolderEntries(folders, files, links, others, sorted(bad_names), complete)

    def scan_entries(self) -> AbstractContextManager[Iterator[os.DirEntry[str]]]:
        """Return an iterator of the entries, in the order of the system; it is to be closed."""
        if not HAS_HANDLES:
            return os.scandir(self.path)
        if self._lists:
            return os.scandir(self._fd)
        # A handle that only names the folder (O_PATH) cannot be listed. scandir keeps a duplicate of its own.
        listing = os.open(".", LISTING_FLAGS, dir_fd=self._fd)
        try:
            return os.scandir(listing)
        finally:
            os.close(listing)

    def file_identity(self, name: str) -> Identity | None:
        """Return the identity of a regular file in this folder; ``None`` when there is no such file."""
        try:
            info = (
                os.stat(name, dir_fd=self._fd, follow_symlinks=False)
                if HAS_HANDLES
                else os.lstat(f"{self.path}{os.sep}{name}")
            )
        except OSError:
            return None
        return identity_of(info) if stat.S_ISREG(info.st_mode) else None

    def read_heads(self, names: list[str], filename: str, size: int) -> Iterator[list[HeadRead]]:
        """Return an iterator that gives, for each child folder of ``names``, the first bytes of its ``filename``.

        These are at most ``size`` bytes. Neither the folder nor the file may be a link, opening the file never blocks,
        and the file must be regular. The heads come in the order of ``names``, a few at a time: a caller who looks at
        each head between two reads takes 2 to 4 % longer (bench row "scan"), because reading and looking push each
        other out of the processor's cache.

        When most of the first heads are slow, the files are not in the system's cache. The system then learns in
        advance which files will be read, so that the disk has many of them to do at once and not one after the other.
        """
        if not HAS_HANDLES or IGNORES_CASE:
            return self._read_heads_portably(names, filename, size)
        if not _CAN_ADVISE or len(names) <= TIMED_HEADS:
            return self._iter_heads(names, filename, size)
        first, rest = names[:TIMED_HEADS], names[TIMED_HEADS:]
        heads: list[HeadRead] = []
        ends = [perf_counter()]
        for name in first:
            heads += self._read_batch([name], filename, size)
            ends.append(perf_counter())
        # The median, because another process may take the core away from a few of them at any time.
        median = sorted(after - before for before, after in pairwise(ends))[TIMED_HEADS // 2]
        read_rest = self._iter_slow_heads if median > SLOW_HEAD_SECONDS else self._iter_heads
        return chain([heads], read_rest(rest, filename, size))

    def _iter_slow_heads(self, names: list[str], filename: str, size: int) -> Iterator[list[HeadRead]]:
        """Yield what ``_iter_heads`` yields, and announce the files of some hundred folders at a time to the system."""
        for begin in range(0, len(names), ADVICE_BATCH):
            batch = names[begin : begin + ADVICE_BATCH]
            for name in batch:
                self._advise_read(name, filename, size)
            yield from self._iter_heads(batch, filename, size)

    def _advise_read(self, name: str, filename: str, size: int) -> None:
        """Tell the system that the first bytes of a file in a child folder will be read; it does not wait for them."""
        try:
            folder = open_child_folder(self._fd, name)
            try:
                fd = os.open(filename, READ_FLAGS, dir_fd=folder)
            finally:
                os.close(folder)
            try:
                os.posix_fadvise(fd, 0, size, os.POSIX_FADV_WILLNEED)
            finally:
                os.close(fd)
        except OSError:  # reading the head reports that
            return

    def _iter_heads(self, names: list[str], filename: str, size: int) -> Iterator[list[HeadRead]]:
        """Return an iterator over the heads in the order of ``names``, ``_READ_BATCH`` at a time."""
        begins = range(0, len(names), _READ_BATCH)
        return (self._read_batch(names[begin : begin + _READ_BATCH], filename, size) for begin in begins)

    def _read_batch(self, names: list[str], filename: str, size: int) -> list[HeadRead]:
        """Return the heads in the order of ``names``.

        This is the inner loop of discovery (the bench row "scan"), so the steps are written out here; their slow path
        is ``read_head`` of each child folder, with which tests/files/test_directory.py compares it.
        """
        into = FOLDER_FLAGS | os.O_NOFOLLOW
        here, opened, read, close, fstat = self._fd, os.open, os.read, os.close, os.fstat
        heads: list[HeadRead] = []
        add = heads.append
        for name in names:
            try:
                folder = opened(name, into, dir_fd=here)
                try:
                    fd = opened(filename, READ_FLAGS, dir_fd=folder)
                finally:
                    close(folder)
                try:
                    info = fstat(fd)
                    is_regular = info.st_mode >> _FORMAT_SHIFT == _REGULAR  # ``S_ISREG`` without a call
                    head = read(fd, size) if is_regular else None
                finally:
                    close(fd)
            except OSError as error:
                add((name, None, None, None if error.errno == errno.ENOENT else error))
                continue
            if head is None:
                add((name, None, None, OSError(errno.EINVAL, "not a regular file")))
            else:
                add((name, head, info, None))
        return heads

    def _read_heads_portably(self, names: list[str], filename: str, size: int) -> Iterator[list[HeadRead]]:
        # Windows opens no handle for a folder: each child is checked and opened by its path. macOS has handles, and
        # ``read_head`` has to look at the name of the file.
        for name in names:
            try:
                with self.open_child(name) as child:
                    yield [(name, *child.read_head(filename, size)[1:])]
            except OSError as error:
                yield [(name, None, None, error)]

    def open_file(self, name: str, path: str) -> OpenFile:
        """Open a regular file of this folder; raise ``ResourceError`` for anything else. Errors call it ``path``."""
        return OpenFile(self.path, (name,), folder=self._fd, path=path)

    def read_small_file(self, name: str, most: int) -> tuple[bytes, os.stat_result] | None:
        """Return the bytes of a file that needs no closer look, and what ``fstat`` says; else ``None``.

        Fast path: hashing an installed tree takes 1.4 times as long by ``open_file`` alone. A file that is empty, long,
        not regular, has several names, cannot be read or changes meanwhile is left to ``open_file``.
        """
        if not HAS_HANDLES:
            return None
        try:
            fd = os.open(name, READ_FLAGS, dir_fd=self._fd)
        except OSError:
            return None
        try:
            info = os.fstat(fd)
            size = info.st_size
            # An empty file may be one that does not report its size, and a second name may belong to somebody else.
            if not 0 < size <= most or info.st_nlink > 1 or not stat.S_ISREG(info.st_mode):
                return None
            data = os.read(fd, size + 1)
            after = os.fstat(fd)
        except OSError:
            return None
        finally:
            os.close(fd)
        # Half of an old and half of a new version must not be hashed as one file.
        is_whole = len(data) == size == after.st_size
        same = after.st_ctime_ns == info.st_ctime_ns and after.st_mtime_ns == info.st_mtime_ns
        return (data, info) if is_whole and same else None

    def read_head(self, filename: str, size: int) -> HeadRead:
        """Return the first ``size`` bytes of a file in this folder, with no name.

        A file whose name differs in case is none, also where the disk takes it for the file: it is the same skill on
        every system.
        """
        if IGNORES_CASE and not self._has_exact_name(filename):
            return "", None, None, None
        try:
            fd = os.open(filename, READ_FLAGS, dir_fd=self._fd) if HAS_HANDLES else open_beneath(self.path, (filename,))
        except OSError as error:
            return "", None, None, None if error.errno == errno.ENOENT else error
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode):
                return "", None, None, OSError(errno.EINVAL, "not a regular file")
            return "", os.read(fd, size), info, None
        except OSError as error:
            return "", None, None, error
        finally:
            os.close(fd)

    def _has_exact_name(self, name: str) -> bool:
        try:
            with self.scan_entries() as entries:
                return any(entry.name == name for entry in entries)
        except OSError:  # a folder that cannot be listed may still have a file that can be opened
            return True


def is_link_entry(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry of a folder is a link, or a junction of Windows."""
    return entry.is_symlink() or (not HAS_HANDLES and is_link_info(entry.stat(follow_symlinks=False)))


def is_utf8_name(name: str) -> bool:
    """Return whether a name is UTF-8; other names can neither be listed nor be asked for."""
    return not any("\ud800" <= char <= "\udfff" for char in name)


def _require_folder(path: str) -> int:
    if not stat.S_ISDIR(os.stat(path).st_mode):  # where there is nothing, this says so
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    return -1


def open_folder_beneath(base: str, parts: tuple[str, ...]) -> Folder:
    """Open the folder ``parts`` below ``base`` to list it; raise ``OSError`` for a link on the way from ``base``."""
    if HAS_HANDLES and len(parts) <= 1:
        # Fast path of every read of a skill: with one step only the folder itself could be a link, which the flags
        # refuse. Links in the path of the base are the caller's.
        path = f"{base}{os.sep}{parts[0]}" if parts else base
        try:
            return Folder(path, os.open(path, _OPEN_CHILD_FLAGS if parts else LISTING_FLAGS), lists=True)
        except OSError:
            pass
    folder = Folder(base)
    for part in parts:
        try:
            inner = folder.open_child(part, lists=part is parts[-1])
        finally:
            folder.close()
        folder = inner
    return folder


def is_surely_only_name(base: str, parts: tuple[str, ...], name: str, most: int, depth: int) -> bool:
    """Return whether no other file in a folder, or below it, has a name that equals ``name`` where case is ignored.

    The folder is ``parts`` below ``base``. ``False`` says nothing: there may be such a file, or a folder that cannot be
    read, more than ``most`` entries, or folders more than ``depth`` deep.

    Fast path of ``catalog.issues``, mostly listings of folders. Its slow paths are ``Folder.list_entries``
    and ``walk_tree``; tests/skills/test_fast_paths.py compares them.
    """
    if not HAS_HANDLES or len(parts) != 1:
        return False
    try:
        fd = os.open(f"{base}{os.sep}{parts[0]}", _OPEN_CHILD_FLAGS)
        try:
            return _count_other_names(fd, name, name.lower(), most, depth) <= most
        finally:
            os.close(fd)
    except OSError:
        return False


def _count_other_names(fd: int, own: str, lower: str, most: int, depth: int) -> int:
    """Return the number of entries in and below an open folder; more than ``most`` where ``is_surely_only_name`` fails.

    ``own`` is the name of a file in this folder that does not count, and ``lower`` the name in lower case.
    """
    too_many = most + 1
    count = 0
    folders: list[str] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            count += 1
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif name != own and name.lower() == lower:
                return too_many
    for name in folders:
        # A walk leaves git's folders out, which may be large; they are rare enough to leave them to that walk.
        if depth <= 1 or count > most or is_git_name(name):
            return too_many
        child = os.open(name, _OPEN_CHILD_FLAGS, dir_fd=fd)
        try:
            count += _count_other_names(child, "", lower, most, depth - 1)
        finally:
            os.close(child)
    return count


def real_path(path: str) -> str:
    """Return ``path`` with every link resolved; raise ``OSError`` for a loop or a link that leads nowhere."""
    return os.path.realpath(path, strict=True)


def stat_folder(path: str) -> os.stat_result | None:
    """Return what ``stat`` says about a folder; ``None`` when the folder does not exist or cannot be seen."""
    try:
        info = os.stat(path)
    except (OSError, ValueError):
        return None
    return info if stat.S_ISDIR(info.st_mode) else None


def select_folders(paths: Iterable[str]) -> list[str]:
    """Return the paths that lead to a folder."""
    return [path for path in paths if os.path.isdir(path)]


def count_hard_links(path: str) -> int:
    """Return how many names a file has, 0 when there is none."""
    try:
        return os.lstat(path).st_nlink
    except OSError:
        return 0


def folder_size(path: str) -> int:
    """Return the bytes of all files below a folder; files that go meanwhile count for nothing."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except OSError:
                continue
    return total


def exists(path: str) -> bool:
    """Return whether there is anything at a path, be it a link that leads nowhere."""
    return os.path.lexists(path)


def select_existing(paths: Iterable[str]) -> list[str]:
    """Return the paths at which there is anything, be it a link that leads nowhere."""
    return [path for path in paths if os.path.lexists(path)]


def exists_from(folder: str, path: str) -> bool:
    """Whether there is anything at a path as somebody typed it: from ``folder``, or from the home folder with ``~``."""
    return exists(os.path.join(folder, os.path.expanduser(path)))


def find_broken_links(path: str, most: int = 10_000) -> list[tuple[str, str]]:
    """Return the links in a folder that lead nowhere, each with its target; none when there is no such folder."""
    try:
        with Folder(path) as folder:
            names = folder.list_entries(most).links
    except OSError:
        return []
    links = [os.path.join(path, name) for name in names]
    return [(link, os.readlink(link)) for link in links if not os.path.exists(link)]

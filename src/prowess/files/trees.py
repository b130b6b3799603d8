"""Whole trees: read into memory to be installed, or hashed file by file. Links are named and never entered."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from prowess.files.folders import folder_info, hash_file, is_text, list_tree
from prowess.files.handles import HAS_HANDLES, LISTING, READ
from prowess.files.reading import OpenFile, too_large

if TYPE_CHECKING:
    from prowess.limits import Limits

_INTO = LISTING | getattr(os, "O_NOFOLLOW", 0)
_SMALL = 1 << 20


class FileHash(NamedTuple):
    """What a lock file says of a file: its size, whether its owner may execute it, and its SHA-256 (hex)."""

    size: int
    executable: bool
    sha256: str


class HashedTree(NamedTuple):
    """Every regular file below a folder with its hash, and what else was met: ``(code, path)``."""

    files: dict[str, FileHash]
    odd: list[tuple[str, str]]


def digest_of(files: dict[str, FileHash]) -> str:
    """The digest of a tree: SHA-256 over ``path NUL x-or-- NUL size NUL sha256-hex LF``, in byte order of the paths."""
    total = hashlib.sha256()
    for path in sorted(files, key=os.fsencode):
        size, executable, content = files[path]
        total.update(b"%s\0%s\0%d\0%s\n" % (path.encode(), b"x" if executable else b"-", size, content.encode()))
    return total.hexdigest()


def hash_tree(folder: str, limits: Limits) -> HashedTree:
    """Every file below a folder, hashed; ``.git`` is left out. Raises ``OSError`` when the folder cannot be listed."""
    if not HAS_HANDLES:
        return _hash_portably(folder, limits)
    found = HashedTree({}, [])
    fd = os.open(folder, LISTING)
    try:
        _Hashing(found, limits).enter(fd, "", 1)
    finally:
        os.close(fd)
    return found


class _Hashing:
    """One walk by folder handles: nothing on the way can be swapped for a link."""

    def __init__(self, found: HashedTree, limits: Limits) -> None:
        self.files, self.odd = found
        self.limits = limits
        self.left = limits.max_digest_bytes
        self.most = max(limits.max_files_per_skill, limits.max_install_files)

    def enter(self, fd: int, prefix: str, depth: int) -> None:
        folders: list[str] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                name = entry.name
                if not name.isascii() and not is_text(name):
                    self.odd.append(("bad-file-name", prefix + ascii(name)))
                elif entry.is_file(follow_symlinks=False):
                    self.file(fd, name, prefix + name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    self.odd.append(("link-in-skill" if entry.is_symlink() else "special-file", prefix + name))
        for name in folders:
            if name != ".git":
                self.folder(fd, name, prefix, depth)

    def folder(self, parent: int, name: str, prefix: str, depth: int) -> None:
        if depth > self.limits.max_depth_per_skill:
            self.odd.append(("too-deep", prefix + name))
            return
        try:
            fd = os.open(name, _INTO, dir_fd=parent)
        except OSError:
            self.odd.append(("unreadable-directory", prefix + name))
            return
        try:
            self.enter(fd, f"{prefix}{name}/", depth + 1)
        finally:
            os.close(fd)

    def file(self, parent: int, name: str, path: str) -> None:
        if len(self.files) >= self.most:
            self.odd.append(("too-many-files", path))
            return
        try:
            fd = os.open(name, READ, dir_fd=parent)
        except OSError:
            self.odd.append(("unreadable", path))
            return
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > self.left:
                self.odd.append(("too-many-bytes" if stat.S_ISREG(info.st_mode) else "special-file", path))
                return
            self.left -= info.st_size
            self.files[path] = FileHash(info.st_size, bool(info.st_mode & stat.S_IXUSR), _hashed(fd, info.st_size))
        except OSError:
            self.odd.append(("unreadable", path))
        finally:
            os.close(fd)


def _hashed(fd: int, size: int) -> str:
    if size <= _SMALL:
        return hashlib.sha256(os.read(fd, size + 1)).hexdigest()
    content = hashlib.sha256()
    while chunk := os.read(fd, _SMALL):
        content.update(chunk)
    return content.hexdigest()


def _hash_portably(folder: str, limits: Limits) -> HashedTree:
    tree = list_tree(folder, (), limits)
    kinds = (
        ("link-in-skill", tree.links),
        ("special-file", tree.others),
        ("bad-file-name", tree.odd),
        ("unreadable-directory", tree.unreadable),
    )
    odd = [(code, path) for code, paths in kinds for path in paths]
    if tree.bound:
        odd.append((tree.bound, ""))
    parts = ((path, tuple(path.split("/"))) for path in tree.files)
    return HashedTree({path: FileHash(*hash_file(folder, at, limits.max_digest_bytes)) for path, at in parts}, odd)


class ReadTree(NamedTuple):
    """Every regular file below a folder: path, bytes, whether executable; and what else was met: ``(code, path)``."""

    files: list[tuple[str, bytes, bool]]
    odd: list[tuple[str, str]]


def read_tree(folder: str, limits: Limits) -> ReadTree:
    """A whole folder in memory, ``.git`` left out. Raises ``ResourceError`` for a file that cannot be read."""
    tree = list_tree(folder, (), _wider(limits))
    kinds = (
        ("link-in-skill", tree.links),
        ("special-file", tree.others),
        ("bad-file-name", tree.odd),
        ("unreadable-directory", tree.unreadable),
    )
    odd = [(code, path) for code, paths in kinds for path in paths]
    if tree.bound:
        odd.append((tree.bound, ""))
    files: list[tuple[str, bytes, bool]] = []
    left = limits.max_install_bytes
    for path in tree.files:
        with OpenFile(folder, tuple(path.split("/"))) as file:
            if file.info.st_size > left:
                raise too_large(path, file.info.st_size, limits.max_install_bytes)
            data = file.read_all(left)
            left -= len(data)
            files.append((path, data, bool(file.info.st_mode & stat.S_IXUSR)))
    return ReadTree(files, odd)


def _wider(limits: Limits) -> Limits:
    """An installed tree may hold many skills, hence more files than one of them."""
    from dataclasses import replace  # noqa: PLC0415 - only here

    most = limits.max_install_files
    return replace(limits, max_files_per_skill=most, max_entries_per_skill=max(limits.max_entries_per_skill, 4 * most))


def is_link(path: str) -> bool:
    """Whether a path itself is a link, or a junction; ``False`` when there is nothing."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    reparse = getattr(info, "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISLNK(info.st_mode) or bool(reparse)


def is_real_folder(path: str) -> bool:
    """Whether a path is a folder and no link to one."""
    return folder_info(path) is not None and not is_link(path)


def same_folder(one: str, other: str) -> bool:
    """Whether two paths lead to one folder that is there."""
    try:
        first, second = os.stat(one), os.stat(other)
    except OSError:
        return False
    return first.st_ino == second.st_ino and first.st_dev == second.st_dev and stat.S_ISDIR(first.st_mode)


def link_text(path: str) -> str | None:
    """What a link says, or ``None`` when it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def inode(path: str) -> int:
    """The number of an entry itself, 0 when there is none: it stays the same when the entry is renamed."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0

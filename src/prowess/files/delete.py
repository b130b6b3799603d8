"""Deleting a folder with everything in it, however deep, and nothing else."""

from __future__ import annotations

import errno
import os
import secrets
import stat

from prowess.files import syscalls
from prowess.files.contained_open import HAS_HANDLES, LISTING_FLAGS

_NOT_A_FOLDER_ERRNOS = frozenset((errno.ELOOP, errno.ENOTDIR))
_OPEN_CHILD_FLAGS = LISTING_FLAGS | getattr(os, "O_NOFOLLOW", 0)


def delete_tree(path: str) -> None:
    """Delete a folder with everything in it; links are deleted, never followed. Nothing when it is not there.

    Where the system has folder handles, everything is deleted through them: a link that someone swaps in meanwhile
    leads nowhere. Folders further down are first moved up, so depth costs nothing.
    """
    path = os.path.abspath(path)
    if not HAS_HANDLES:
        _delete_by_path(path)
        return
    parent = os.open(os.path.dirname(path), LISTING_FLAGS)
    try:
        _delete_by_handle(path, parent)
    finally:
        os.close(parent)


def _delete_by_handle(path: str, parent: int) -> None:
    top = _open_or_delete(path, parent)
    if top is None:
        return
    try:
        while names := _delete_files(path, top):
            for name in names:
                _delete_below(os.path.join(path, name), top)
    finally:
        os.close(top)
    syscalls.delete_folder(path, folder=parent)


def _delete_below(path: str, top: int) -> None:
    """Delete a folder of the top one; the folders in it become folders of the top one."""
    fd = _open_or_delete(path, top)
    if fd is None:
        return
    try:
        for name in _delete_files(path, fd):
            _move_up(os.path.join(path, name), fd, top)
    finally:
        os.close(fd)
    syscalls.delete_folder(path, folder=top)


def _move_up(path: str, folder: int, top: int) -> None:
    new = secrets.token_hex(12)
    try:
        syscalls.move_by_handle(path, folder, new, into=top)
    except PermissionError:  # a folder that its owner may not write to cannot be moved
        os.close(_open_after_chmod(path, folder))
        syscalls.move_by_handle(path, folder, new, into=top)


def _open_or_delete(path: str, parent: int) -> int | None:
    """A handle of a folder, opened up for its owner where it was closed; what is no folder is deleted."""
    name = os.path.basename(path)
    try:
        return os.open(name, _OPEN_CHILD_FLAGS, dir_fd=parent)
    except FileNotFoundError:
        return None
    except PermissionError:
        return _open_after_chmod(path, parent)
    except OSError as error:
        if error.errno not in _NOT_A_FOLDER_ERRNOS:
            raise
        syscalls.delete_file(path, folder=parent)
        return None


def _open_after_chmod(path: str, parent: int) -> int:
    name = os.path.basename(path)
    named = os.open(name, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    try:
        here = f"/proc/self/fd/{named}"  # the only way to change what a handle names without reading it
        syscalls.set_mode(here if os.path.exists(here) else path, 0o700)
    finally:
        os.close(named)
    return os.open(name, _OPEN_CHILD_FLAGS, dir_fd=parent)


def _delete_files(path: str, fd: int) -> list[str]:
    """Delete what is no folder; the names of the folders."""
    if stat.S_IMODE(os.fstat(fd).st_mode) & 0o700 != 0o700:  # noqa: PLR2004 - the owner's permissions
        syscalls.set_mode(path, 0o700, fd=fd)
    folders: list[str] = []
    with os.scandir(fd) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if is_folder:
            folders.append(name)
        else:
            syscalls.delete_file(os.path.join(path, name), folder=fd)
    return folders


def _delete_by_path(path: str) -> None:
    """Where there are no handles: each folder is looked at before it is entered, the deepest deleted first."""
    folders = [path]
    for folder in folders:
        if not _is_plain_folder(folder):
            continue
        with os.scandir(folder) as found:
            folders += [entry.path for entry in found]
    for one in reversed(folders):
        if _is_plain_folder(one):
            syscalls.delete_folder(one)
        elif os.path.lexists(one):
            syscalls.delete_file(one)


def _is_plain_folder(path: str) -> bool:
    try:
        info = os.lstat(path)
    except OSError:
        return False
    reparse = getattr(info, "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISDIR(info.st_mode) and not reparse

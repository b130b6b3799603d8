"""Deletes a folder with everything in it, however deep, and nothing outside it."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prowess.files import syscalls
from prowess.files.contained_open import HAS_HANDLES, LISTING_FLAGS
from prowess.files.paths import is_real_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


_NOT_A_FOLDER_ERRNOS = frozenset((errno.ELOOP, errno.ENOTDIR))
_OPEN_CHILD_FLAGS = LISTING_FLAGS | getattr(os, "O_NOFOLLOW", 0)


def delete_tree(path: str) -> None:
    """Delete a folder with everything in it; nothing happens without a folder. No link is followed.

    Where the system has folder handles, everything is deleted through them, so a link that someone swaps in meanwhile
    leads nowhere. Raises ``OSError`` when something cannot be deleted.
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
    """Delete the folder ``path``, which is in the open folder ``parent``.

    Folders further down are first moved up into the top one. A hostile tree may be thousands of folders deep, and this
    needs neither recursion nor a path longer than the system allows.
    """
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
    """Delete a folder in the top one, after moving the folders in it into the top one."""
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
    except PermissionError:  # moving a folder rewrites its "..", which needs the right to write to it
        os.close(_open_after_chmod(path, folder))
        syscalls.move_by_handle(path, folder, new, into=top)


def _open_or_delete(path: str, parent: int) -> int | None:
    """Return a handle of a folder, after giving its owner access where it had none; delete what is not a folder."""
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
        # Such a handle (O_PATH) takes no fchmod. Its path in /proc is the only way to the folder itself.
        handle_path = f"/proc/self/fd/{named}"
        syscalls.set_mode(handle_path if os.path.exists(handle_path) else path, 0o700)
    finally:
        os.close(named)
    return os.open(name, _OPEN_CHILD_FLAGS, dir_fd=parent)


def _delete_files(path: str, fd: int) -> list[str]:
    """Delete every entry that is not a folder, and return the names of the folders."""
    if stat.S_IMODE(os.fstat(fd).st_mode) & 0o700 != 0o700:  # noqa: PLR2004 - the owner's permissions
        syscalls.set_mode(path, 0o700, fd=fd)
    folders: list[str] = []
    with os.scandir(fd) as entries:  # listed whole first: a folder must not change while it is listed
        kinds = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in kinds:
        if is_folder:
            folders.append(name)
        else:
            syscalls.delete_file(os.path.join(path, name), folder=fd)
    return folders


def _delete_by_path(path: str) -> None:
    """Delete a folder where the system has no handles: check each folder before it is entered, and delete upwards."""
    folders = [path]
    for folder in folders:
        if is_real_folder(folder):
            with os.scandir(folder) as entries:
                folders += [entry.path for entry in entries]
    for entry_path in reversed(folders):
        if is_real_folder(entry_path):
            syscalls.delete_folder(entry_path)
        elif os.path.lexists(entry_path):
            syscalls.delete_file(entry_path)


def make_temporary_folder(prefix: str = "prowess-", parent: str | None = None) -> str:
    """Create a folder with a name that cannot be guessed; return its path. The caller deletes it."""
    path = os.path.join(os.path.abspath(parent or tempfile.gettempdir()), prefix + secrets.token_hex(8))
    syscalls.make_folder(path, 0o700)
    return path


@contextmanager
def temporary_folder(prefix: str = "prowess-", parent: str | None = None) -> Iterator[str]:
    """Create a folder with a name that cannot be guessed, and delete it at the end as far as the system allows.

    A caller who wants to keep the folder renames it meanwhile.
    """
    path = os.path.join(os.path.abspath(parent or tempfile.gettempdir()), prefix + secrets.token_hex(8))
    # The folder counts as ours before it is made: an interrupt right after the call must not leave it behind.
    is_ours = True
    try:
        try:
            syscalls.make_folder(path, 0o700)
        except FileExistsError:
            is_ours = False
            raise
        yield path
    finally:
        if is_ours:
            with suppress(OSError):
                try:
                    delete_tree(path)
                except KeyboardInterrupt:  # raised only after the folder is gone
                    delete_tree(path)
                    raise

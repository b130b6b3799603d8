"""Writes a file that exists whole or not at all, folders, and trees of files."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.files import syscalls
from prowess.files.contained_open import HAS_HANDLES, READ_FLAGS, open_child_folder, open_folder
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterable


class NewFile(NamedTuple):
    """A file to write: its relative path with ``/``, its bytes, and whether its owner may execute it."""

    path: str
    content: bytes
    executable: bool = False


def write_atomic(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Replace or create a file. A reader sees the old file or the new one, whole, also after a crash."""
    folder, name = os.path.split(os.path.abspath(path))
    # Beside the target, since only within one file system is a rename a single step.
    staged = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        # The bytes must be on the disk before the name is: else a crash could leave a new name with no content.
        write_new_file(staged, data, mode=mode, durable=True)
        syscalls.rename(staged, path)
    except BaseException:
        with suppress(OSError):
            syscalls.delete_file(staged)
        raise
    syscalls.sync_folder(folder)


def write_beneath(base: str, parts: tuple[str, ...], data: bytes, *, mode: int = 0o644) -> None:
    """Replace or create the file ``parts`` below ``base``, and the folders between; no link is followed below ``base``.

    A reader sees the old file or the new one, whole. Raises ``OSError``: ELOOP where a folder on the way is a link,
    also when another process puts it there meanwhile. Windows has no handles of folders: there paths are checked by
    the caller alone.
    """
    path = os.path.join(base, *parts)
    if not HAS_HANDLES:
        make_folders(os.path.dirname(path))
        write_atomic(path, data, mode=mode)
        return
    folder = open_folder(base)
    try:
        for depth, part in enumerate(parts[:-1], 1):
            with suppress(FileExistsError):
                syscalls.make_folder(os.path.join(base, *parts[:depth]), folder=folder)
            inner = open_child_folder(folder, part)
            os.close(folder)
            folder = inner
        _replace_in_folder(folder, path, data, mode)
    finally:
        os.close(folder)


def _replace_in_folder(folder: int, path: str, data: bytes, mode: int) -> None:
    """Replace or create the file that ``path`` names, in the folder that is open as ``folder``."""
    parent, name = os.path.split(path)
    staged = os.path.join(parent, f".{secrets.token_hex(8)}.tmp")
    fd = syscalls.create_file(staged, mode, folder=folder)
    try:
        try:
            syscalls.write_all(fd, data, staged)
            syscalls.sync_file(fd, staged)
        finally:
            os.close(fd)
        syscalls.move_by_handle(staged, folder, name, into=folder)
    except BaseException:
        with suppress(OSError):
            syscalls.delete_file(staged, folder=folder)
        raise


def write_new_file(path: str, data: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """Create a file; with ``durable``, its bytes are on the disk when the call returns.

    Raises ``FileExistsError`` when the path is taken.
    """
    fd = syscalls.create_file(path, mode)
    try:
        syscalls.write_all(fd, data, path)
        if durable:
            syscalls.sync_file(fd, path)
    finally:
        os.close(fd)


def make_folders(path: str, mode: int = 0o755, *, durable: bool = False) -> None:
    """Create a folder and the missing ones above it; with ``durable``, they are on the disk when the call returns."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(os.path.abspath(path))
    if parent != path:
        make_folders(parent, mode, durable=durable)
    with suppress(FileExistsError):  # another process may have made it since
        syscalls.make_folder(path, mode)
        if durable:
            syscalls.sync_folder(parent)


def write_tree(folder: str, files: Iterable[NewFile], *, read_only: bool = False) -> None:
    """Write files below a folder that nobody else writes to.

    Their modes are 0755 for executable files and 0644 for others; with ``read_only``, 0555 and 0444.
    """
    made: set[str] = {""}
    for file in files:
        _make_parents(folder, file.path.rpartition("/")[0], made)
        path = os.path.join(folder, *file.path.split("/"))
        write_new_file(path, file.content, mode=0o600)
        mode = 0o755 if file.executable else 0o644
        # By a call of its own: the mode of a new file is cut by the user's umask, and a digest counts the mode.
        syscalls.set_mode(path, mode & ~0o222 if read_only else mode)


def _make_parents(folder: str, relative: str, made: set[str]) -> None:
    """Create the folder ``relative`` below ``folder`` and those between them, except those in ``made``."""
    if relative in made:
        return
    _make_parents(folder, relative.rpartition("/")[0], made)
    syscalls.make_folder(os.path.join(folder, *relative.split("/")), 0o755)
    made.add(relative)


def sync_tree(folder: str) -> None:
    """Wait until the disk holds every file and folder below ``folder``, and the folder itself.

    The tree must be one that this process has just written, and may still write to: it is walked by path, without a
    guard against links.
    """
    folders = list(os.walk(folder))
    files = [os.path.join(path, name) for path, _, names in folders for name in names]
    for path in report_steps(files, os.path.basename):
        # Open to write, although nothing is: Windows flushes no other handle. After all files are written and not with
        # each: that takes half the time, since the first call takes most of the others' metadata along.
        fd = os.open(path, READ_FLAGS | os.O_RDWR)
        try:
            syscalls.sync_file(fd, path)
        finally:
            os.close(fd)
    # Folders last: their entries must not be on the disk before the files that they name.
    for path, _, _ in folders:
        syscalls.sync_folder(path)

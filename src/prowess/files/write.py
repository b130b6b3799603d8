"""Writing: a file that is there whole or not at all, folders, and a tree."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.files import syscalls
from prowess.files.contained_open import READ_FLAGS
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterable


class NewFile(NamedTuple):
    """A file to be written: its relative path with ``/``, its bytes, and whether its owner may execute it."""

    path: str
    content: bytes
    executable: bool = False


def write_atomic(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Replace a file: readers see the old one or the new one, whole, also after a crash."""
    folder, name = os.path.split(os.path.abspath(path))
    staged = os.path.join(folder, f".{name}.{secrets.token_hex(6)}.tmp")
    try:
        write_new_file(staged, data, mode=mode, durable=True)
        syscalls.rename(staged, path)
    except BaseException:
        with suppress(OSError):
            syscalls.delete_file(staged)
        raise
    syscalls.sync_folder(folder)


def write_new_file(path: str, data: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """A new file; ``durable``: it is on the disk when the call returns."""
    fd = syscalls.create_file(path, mode)
    try:
        syscalls.write_all(fd, data, path)
        if durable:
            syscalls.sync_file(fd, path)
    finally:
        os.close(fd)


def make_folders(path: str, mode: int = 0o755, *, durable: bool = False) -> None:
    """A folder and those above it that are missing; ``durable``: they are on the disk when the call returns."""
    if os.path.isdir(path):
        return
    above = os.path.dirname(os.path.abspath(path))
    if above != path:
        make_folders(above, mode, durable=durable)
    with suppress(FileExistsError):
        syscalls.make_folder(path, mode)
        if durable:
            syscalls.sync_folder(above)


def write_tree(folder: str, files: Iterable[NewFile], *, read_only: bool = False) -> None:
    """Write files below a folder that nobody else writes to; modes are 0755 or 0644 (read-only: 0555 or 0444)."""
    made: set[str] = {""}
    for file in files:
        above = file.path.rpartition("/")[0]
        _make_parents(folder, above, made)
        where = os.path.join(folder, *file.path.split("/"))
        write_new_file(where, file.content, mode=0o600)
        mode = 0o755 if file.executable else 0o644
        syscalls.set_mode(where, mode & ~0o222 if read_only else mode)


def _make_parents(folder: str, relative: str, made: set[str]) -> None:
    if relative in made:
        return
    _make_parents(folder, relative.rpartition("/")[0], made)
    syscalls.make_folder(os.path.join(folder, *relative.split("/")), 0o755)
    made.add(relative)


def sync_tree(folder: str) -> None:
    """Have the disk hold every file and folder below ``folder``, and the folder itself."""
    rows = list(os.walk(folder))
    files = [os.path.join(where, name) for where, _, names in rows for name in names]
    for path in report_steps(files, os.path.basename):
        fd = os.open(path, READ_FLAGS)
        try:
            syscalls.sync_file(fd, path)
        finally:
            os.close(fd)
    for where, _, _ in rows:
        syscalls.sync_folder(where)

"""Every call that changes the file system: one function each, so that a test can watch them, fail them, or die at one.

Nothing else in Prowess creates, writes, renames or deletes.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Literal

try:
    import _winapi
except ImportError:
    _winapi = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Watcher = Callable[[str, Literal["before", "after"], str], None]
    """Called with the name of the call, the moment, and the path; what it raises is what the call raises."""

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CREATE_FLAGS |= getattr(os, "O_NOFOLLOW", 0)
# Taken from every mode: what is created decides what agents read, and a umask of 0 is common in containers.
_OTHERS_WRITE = 0o022
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2

_watcher: Watcher | None = None


def set_watcher(watcher: Watcher | None) -> Watcher | None:
    """Have every change announced from now on; the watcher before."""
    global _watcher
    before, _watcher = _watcher, watcher
    return before


@contextmanager
def _announce(name: str, path: str) -> Iterator[None]:
    if _watcher is not None:
        _watcher(name, "before", path)
    yield
    if _watcher is not None:
        _watcher(name, "after", path)


def open_lock_file(path: str) -> int:
    """A descriptor for a file that processes lock, made when it is not there; never through a link."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with _announce("open", path):
        return os.open(path, flags, 0o600)


def make_folder(path: str, mode: int = 0o755) -> None:
    """A new folder that only its owner may write to; ``FileExistsError`` when there is anything."""
    with _announce("mkdir", path):
        os.mkdir(path, mode & ~_OTHERS_WRITE)


def create_file(path: str, mode: int = 0o644) -> int:
    """A descriptor for a new file that only its owner may write to.

    Raises ``FileExistsError`` when there is anything, a link that leads nowhere included.
    """
    with _announce("create", path):
        return os.open(path, _CREATE_FLAGS, mode & ~_OTHERS_WRITE)


def write_all(fd: int, data: bytes, path: str = "") -> None:
    """Every byte."""
    with _announce("write", path):
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]


def sync_file(fd: int, path: str = "") -> None:
    """Have the disk hold what was written."""
    with _announce("fsync", path):
        os.fsync(fd)


def sync_folder(path: str) -> None:
    """Have the disk hold a folder's entries; nothing where folders cannot be opened."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
    if os.name == "nt":
        return
    fd = os.open(path, flags)
    try:
        sync_file(fd, path)
    finally:
        os.close(fd)


def rename(old: str, new: str) -> None:
    """``new`` is what ``old`` was, at once; a file or an empty folder that was there is gone."""
    with _announce("rename", new):
        os.replace(old, new)


def swap_entries(one: str, other: str) -> bool:
    """Swap two entries at once; ``False`` where the system has no such call."""
    call = _load_renameat2()
    if call is None:
        return False
    with _announce("exchange", other):
        code = call(os.fsencode(one), os.fsencode(other))
        if code in {errno.ENOSYS, errno.EINVAL}:
            return False
        if code:
            raise OSError(code, os.strerror(code), other)
    return True


@cache
def _load_renameat2() -> Callable[[bytes, bytes], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # noqa: PLC0415 - only when something is swapped

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def call(one: bytes, other: bytes) -> int:
        failed = function(_AT_FDCWD, one, _AT_FDCWD, other, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return call


def create_link(target: str, path: str, *, folder: bool = True) -> None:
    """A symbolic link at ``path``."""
    with _announce("symlink", path):
        os.symlink(target, path, target_is_directory=folder)


def create_junction(target: str, path: str) -> bool:
    """A junction at ``path``, which Windows makes without special rights; ``False`` where there are none."""
    make = getattr(_winapi, "CreateJunction", None)
    if make is None:
        return False
    with _announce("junction", path):
        make(target, path)
    return True


def set_mode(path: str, mode: int, *, fd: int | None = None) -> None:
    with _announce("chmod", path):
        os.chmod(path if fd is None else fd, mode)


def delete_file(path: str, *, folder: int | None = None) -> None:
    """One file, or a link itself; with a handle of its ``folder`` no other path can be meant."""
    with _announce("unlink", path):
        if folder is None:
            os.unlink(path)
        else:
            os.unlink(os.path.basename(path), dir_fd=folder)


def delete_folder(path: str, *, folder: int | None = None) -> None:
    """One empty folder, likewise."""
    with _announce("rmdir", path):
        if folder is None:
            os.rmdir(path)
        else:
            os.rmdir(os.path.basename(path), dir_fd=folder)


def move_by_handle(path: str, folder: int, new: str, *, into: int) -> None:
    """The entry at ``path`` of ``folder`` becomes ``new`` in another folder, by their handles."""
    with _announce("rename", path):
        os.rename(os.path.basename(path), new, src_dir_fd=folder, dst_dir_fd=into)

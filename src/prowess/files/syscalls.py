"""Every system call that changes the file system, one function each.

Nothing else in Prowess creates, writes, renames or deletes, except SQLite, which writes the index of a library. So a
test can watch every change, make it fail, or kill the process at it: tests/install/test_crashes.py does so at each call
of an install, and tests/search/test_crashes.py at each call of SQLite.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Literal

from prowess.errors import InstallError, SkillError
from prowess.files.paths import find_shut_folder

if TYPE_CHECKING:
    from collections.abc import Iterator


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import _winapi
except ImportError:
    _winapi = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Watcher = Callable[[str, Literal["before", "after"], str], None]
    """Called with the name of the call, the moment and the path. An exception from it leaves the call."""

_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CREATE_FLAGS |= getattr(os, "O_NOFOLLOW", 0)
# Taken from every mode: what is created decides what agents read, and a umask of 0 is common in containers.
_OTHERS_WRITE = 0o022
_FULL_SYNC = getattr(fcntl, "F_FULLFSYNC", None)  # only on macOS
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # from the headers of Linux

_OPEN_ELSEWHERE = frozenset((5, 32))  # ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION
_OPEN_SECONDS, _RETRY_SECONDS = 1.0, 0.02

CREATE_JUNCTION: Callable[[str, str], None] | None = getattr(_winapi, "CreateJunction", None)
"""The call of Windows that makes a junction; ``None`` on other systems."""

_watcher: Watcher | None = None


def set_watcher(watcher: Watcher | None) -> Watcher | None:
    """Have every change announced to ``watcher`` from now on, and return the watcher that was set before."""
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
    """Open a file that processes lock, and return its descriptor; create it when it is missing. Follows no link."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with _announce("open", path):
        return os.open(path, flags, 0o600)


def open_to_append(path: str) -> int:
    """Open an existing file to write at its end, and return its descriptor. Follows no link."""
    flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    with _announce("open", path):
        return os.open(path, flags | getattr(os, "O_BINARY", 0))


def make_folder(path: str, mode: int = 0o755, *, folder: int | None = None) -> None:
    """Create a folder that only its owner may write to; raises ``FileExistsError`` when the path is taken.

    With a handle of its parent ``folder``, a swapped parent folder changes nothing.
    """
    with _announce("mkdir", path):
        os.mkdir(path if folder is None else os.path.basename(path), mode & ~_OTHERS_WRITE, dir_fd=folder)


def create_file(path: str, mode: int = 0o644, *, folder: int | None = None) -> int:
    """Create a file that only its owner may write to, and return its descriptor.

    With a handle of its ``folder``, a swapped parent folder changes nothing. Raises ``FileExistsError`` when the path
    is taken, also by a link that leads nowhere.
    """
    with _announce("create", path):
        name = path if folder is None else os.path.basename(path)
        return os.open(name, _CREATE_FLAGS, mode & ~_OTHERS_WRITE, dir_fd=folder)


def write_all(fd: int, data: bytes, path: str = "") -> None:
    """Write every byte of ``data``."""
    with _announce("write", path):
        view = memoryview(data)
        while view:  # one call may write a part only
            view = view[os.write(fd, view) :]


def sync_file(fd: int, path: str = "") -> None:
    """Wait until the disk holds what was written to an open file."""
    with _announce("fsync", path):
        flush_to_disk(fd)


def flush_to_disk(fd: int, full_sync: int | None = _FULL_SYNC) -> None:
    """Wait until the disk holds an open file: by the command ``full_sync`` where there is one, else by ``fsync``.

    On macOS ``fsync`` ends when the drive has the bytes, which may then be in its cache alone. The command empties the
    cache. Some disks, such as those in a network, do not know it.
    """
    if full_sync is not None:
        with suppress(OSError):
            fcntl.fcntl(fd, full_sync)
            return
    os.fsync(fd)


def sync_folder(path: str) -> None:
    """Wait until the disk holds the entries of a folder. Windows opens no folders: there it does nothing."""
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
    if os.name == "nt":
        return
    fd = os.open(path, flags)
    try:
        sync_file(fd, path)
    finally:
        os.close(fd)


def rename(old: str, new: str) -> None:
    """Rename ``old`` to ``new`` in one step; a file or an empty folder at ``new`` is replaced.

    On Windows, nothing is renamed or replaced while a program has it open, and virus scanners open everything for a
    moment that was just written. There it is tried again for a second.
    """
    with _announce("rename", new):
        retry_while_open(lambda: os.replace(old, new))


def retry_while_open(change: Callable[[], None], seconds: float = _OPEN_SECONDS) -> None:
    """Make a change, again and again for some seconds while Windows refuses it because a program has the file open."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return change()
        except PermissionError as error:
            if getattr(error, "winerror", 0) not in _OPEN_ELSEWHERE or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def swap_entries(first: str, second: str) -> bool:
    """Swap two entries in one step; return ``False`` where the system has no such call."""
    call = _load_renameat2()
    if call is None:
        return False
    with _announce("exchange", second):
        code = call(os.fsencode(first), os.fsencode(second))
        if code in {errno.ENOSYS, errno.EINVAL}:  # the kernel, or this file system, cannot
            return False
        if code:
            raise OSError(code, os.strerror(code), second)
    return True


@cache
def _load_renameat2() -> Callable[[bytes, bytes], int] | None:
    """Return Linux's call that swaps two entries, which Python does not offer; ``None`` on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes

    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]

    def call(first: bytes, second: bytes) -> int:
        failed = function(_AT_FDCWD, first, _AT_FDCWD, second, _RENAME_EXCHANGE)
        return ctypes.get_errno() if failed else 0

    return call


def create_link(target: str, path: str) -> None:
    """Create a symbolic link to the folder ``target`` at ``path``."""
    with _announce("symlink", path):
        os.symlink(target, path, target_is_directory=True)  # Windows has another kind for files


def create_junction(target: str, path: str, *, make: Callable[[str, str], None] | None = CREATE_JUNCTION) -> bool:
    """Create a junction at ``path`` to an existing folder, for which Windows asks no special rights.

    Returns ``False`` without junctions, with nothing left at ``path``: other systems, and volumes whose file
    system lacks them. ``make`` is the call of Windows.
    """
    if make is None:
        return False
    with _announce("junction", path):
        try:
            make(target, path)
        except OSError:
            with suppress(OSError):
                os.rmdir(path)  # Windows makes a folder first, and then makes a junction of it
            return False
    return True


def set_mode(path: str, mode: int, *, fd: int | None = None) -> None:
    """Set the permissions of ``path``, or of the open ``fd``, which ``path`` then only names."""
    with _announce("chmod", path):
        os.chmod(path if fd is None else fd, mode)


def touch_file(path: str) -> None:
    """Set the times of a file to now."""
    with _announce("utime", path):
        os.utime(path)


def delete_file(path: str, *, folder: int | None = None) -> None:
    """Delete one file, or a link itself. With a handle of its ``folder``, a swapped parent folder changes nothing."""
    with _announce("unlink", path):
        if os.name == "nt" and not stat.S_ISLNK(os.lstat(path).st_mode):
            os.chmod(path, 0o600)  # Windows deletes no file that is read-only
        os.unlink(path if folder is None else os.path.basename(path), dir_fd=folder)


def delete_folder(path: str, *, folder: int | None = None) -> None:
    """Delete one empty folder. With a handle of its parent ``folder``, a swapped parent folder changes nothing."""
    with _announce("rmdir", path):
        os.rmdir(path if folder is None else os.path.basename(path), dir_fd=folder)


def move_by_handle(path: str, folder: int, new: str, *, into: int) -> None:
    """Move the entry at ``path``, which is in the open ``folder``, into another open folder, as ``new``."""
    with _announce("rename", path):
        os.rename(os.path.basename(path), new, src_dir_fd=folder, dst_dir_fd=into)


@contextmanager
def wrap_os_errors() -> Iterator[None]:
    """Raise ``InstallError`` with the path instead of an ``OSError`` in the block.

    Its code is ``not-writable`` where a folder belongs to somebody else, and else ``write-failed``.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, SkillError):  # some errors of Prowess are an OSError too, and say more
            raise
        # A rename names two paths.
        paths = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)]
        path = paths[0] if paths else ""
        is_denied = error.errno in {errno.EACCES, errno.EPERM}
        for folder, owner in filter(None, map(find_shut_folder, paths if is_denied else ())):
            message = f"you may not write to this folder, which belongs to {owner}"
            raise InstallError(message, folder, "not-writable") from error
        raise InstallError(f"cannot go on: {error.strerror or error}", path, "write-failed") from error

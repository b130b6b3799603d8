"""One process at a time in a folder: a lock that ends with its process, and a bounded wait that names the holder."""

from __future__ import annotations

import errno
import os
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from prowess.errors import BusyError
from prowess.files import syscalls
from prowess.files.contained_open import LISTING_FLAGS

if TYPE_CHECKING:
    from collections.abc import Iterator

try:
    import fcntl
except ImportError:
    fcntl = None  # type: ignore[assignment]

FOLDER_LOCK_NAME = ".prowess.lck"
"""The file that is locked where a folder itself cannot be."""

_RETRY_SECONDS = 0.02
_LOCK_TAKEN_ERRNOS = frozenset((errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK))


@contextmanager
def lock_folder(folder: str, *, seconds: float, holder: str) -> Iterator[None]:
    """The folder for this process alone, as far as others ask for it too.

    Waits for at most ``seconds``, then raises ``BusyError``, which says what the file ``holder`` says. The folder
    itself is locked (``flock``), so nothing is left in it; where the system cannot, a file in it is.
    """
    until = time.monotonic() + seconds
    fd = _acquire_lock(folder, until)
    if fd < 0:
        raise BusyError(f"{_describe_holder(holder)} has been changing the skills for {seconds:g} seconds", folder)
    try:
        yield
    finally:
        os.close(fd)


def _acquire_lock(folder: str, until: float) -> int:
    """A descriptor that holds the lock, or -1 when the time is over."""
    while True:
        fd = _try_lock(folder)
        if fd >= 0 and _is_lock_current(folder, fd):
            return fd
        if fd >= 0:
            os.close(fd)
        if time.monotonic() > until:
            return -1
        time.sleep(_RETRY_SECONDS)


def _try_lock(folder: str) -> int:
    """A descriptor that holds the lock, or -1 while another process does."""
    if fcntl is not None:
        fd = os.open(folder, LISTING_FLAGS)
        code = _flock(fd)
        if code == 0:
            return fd
        os.close(fd)
        if code in _LOCK_TAKEN_ERRNOS:
            return -1
    fd = syscalls.open_lock_file(os.path.join(folder, FOLDER_LOCK_NAME))  # this file system does not lock folders
    code = _lock_byte(fd) if os.name == "nt" else _flock(fd)
    if code == 0:
        return fd
    os.close(fd)
    if code in _LOCK_TAKEN_ERRNOS:
        return -1
    raise OSError(code, os.strerror(code), folder)


def _flock(fd: int) -> int:
    """0, or the number of the error."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _lock_byte(fd: int) -> int:
    import msvcrt  # noqa: PLC0415 - Windows only

    try:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _is_lock_current(folder: str, fd: int) -> bool:
    """Whether what was locked is what the path leads to now: someone may have replaced the folder meanwhile."""
    with suppress(OSError):
        there = {
            os.stat(path).st_ino for path in (folder, os.path.join(folder, FOLDER_LOCK_NAME)) if os.path.exists(path)
        }
        return os.fstat(fd).st_ino in there
    return False


def _describe_holder(holder: str) -> str:
    with suppress(OSError, UnicodeDecodeError):
        fd = os.open(holder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            text = os.read(fd, 200).decode("ascii").strip()
        finally:
            os.close(fd)
        if text.isprintable() and text:
            return text
    return "another process"

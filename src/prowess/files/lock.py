"""A lock on a folder: one process at a time, a bounded wait, and no lock left behind by a process that died.

The system's own locks are used (``flock``, on Windows ``msvcrt.locking``), because the system takes them from a process
that ends, however it ends. A lock that is a mere file would outlive a crash.
"""

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
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

FOLDER_LOCK_NAME = ".prowess.lck"
"""The file in a folder that is locked where the system cannot lock the folder itself."""

# No system call waits for a lock with a timeout, so the lock is tried again until the time is over.
_RETRY_SECONDS = 0.02
# Systems disagree on the error that says "another process has the lock".
_LOCK_TAKEN_ERRNOS = frozenset((errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK))


@contextmanager
def lock_folder(folder: str, *, seconds: float, holder: str = "") -> Iterator[None]:
    """Hold a folder's lock for as long as the ``with`` block runs.

    The lock keeps out only those who ask for it too. The folder itself is locked, so nothing is left in it; where the
    system cannot lock a folder, the file ``.prowess.lck`` in it is locked.

    Raises ``BusyError`` when another process holds the lock for longer than ``seconds``. The error names that process
    by the text of the file ``holder``, when there is such a file. Raises ``OSError`` when the folder cannot be opened.
    """
    deadline = time.monotonic() + seconds
    fd = _acquire_lock(folder, deadline)
    if fd < 0:
        raise BusyError(f"{_describe_holder(holder)} has been changing the skills for {seconds:g} seconds", folder)
    try:
        yield
    finally:
        os.close(fd)  # closing the descriptor releases the lock


def _acquire_lock(folder: str, deadline: float) -> int:
    """Return a descriptor that holds the lock, or -1 when the deadline has passed."""
    while True:
        fd = _try_lock(folder)
        if fd >= 0 and _is_lock_current(folder, fd):
            return fd
        if fd >= 0:
            os.close(fd)
        if time.monotonic() > deadline:
            return -1
        time.sleep(_RETRY_SECONDS)


def _try_lock(folder: str) -> int:
    """Return a descriptor that holds the lock, or -1 while another process holds it."""
    if fcntl is not None:
        fd = os.open(folder, LISTING_FLAGS)
        code = _flock(fd)
        if code == 0:
            return fd
        os.close(fd)
        if code in _LOCK_TAKEN_ERRNOS:
            return -1
    # Windows, and file systems such as NFS, which lock nothing that is open for reading only: a file is locked instead.
    fd = syscalls.open_lock_file(os.path.join(folder, FOLDER_LOCK_NAME))
    code = _lock_byte(fd) if os.name == "nt" else _flock(fd)
    if code == 0:
        return fd
    os.close(fd)
    if code in _LOCK_TAKEN_ERRNOS:
        return -1
    raise OSError(code, os.strerror(code), folder)


def _flock(fd: int) -> int:
    """Lock an open file or folder without waiting; return 0, or the number of the error."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def lock_open_file(fd: int) -> bool:
    """Lock an open file for as long as it is open; return ``False`` when another process holds its lock.

    Where the system has no lock that leaves the file writable (Windows, some network file systems), nothing is locked.
    """
    return os.name == "nt" or _flock(fd) not in _LOCK_TAKEN_ERRNOS


def _lock_byte(fd: int) -> int:
    """Lock the first byte of an open file without waiting, on Windows; return 0, or the number of the error."""
    import msvcrt

    try:
        msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _is_lock_current(folder: str, fd: int) -> bool:
    """Return whether the locked folder or file is still the one at that path.

    Between opening and locking, another process may have replaced the folder. Then the lock is on the old folder, which
    nobody else asks for any more, and would protect nothing.
    """
    with suppress(OSError):
        paths = (folder, os.path.join(folder, FOLDER_LOCK_NAME))
        return os.fstat(fd).st_ino in {os.stat(path).st_ino for path in paths if os.path.exists(path)}
    return False


def _describe_holder(holder: str) -> str:
    """Return the text of the file ``holder``, or "another process" when it cannot be read or shown as it is."""
    with suppress(OSError, UnicodeDecodeError):
        # Anybody may have put a link or a pipe there: neither is followed or waited for.
        fd = os.open(holder, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        try:
            text = os.read(fd, 200).decode("ascii").strip()
        finally:
            os.close(fd)
        if text.isprintable() and text:
            return text
    return "another process"

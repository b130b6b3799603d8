"""Opening a file below a folder without ever leaving that folder.

There are three ways, best first. With ``openat2`` (Linux 5.6) the kernel refuses every link and every step outward in
one call. With ``O_NOFOLLOW`` on directory handles (POSIX) one component is opened at a time. Elsewhere, paths are
checked before and after opening. Only the third way leaves a moment when another process could swap a folder for a
link, so it compares what it opened with what it checked.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.literals import OpenMethod


_OPTIONAL_FLAGS = ("O_NONBLOCK", "O_NOFOLLOW", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
READ_FLAGS = os.O_RDONLY
for _name in _OPTIONAL_FLAGS:
    READ_FLAGS |= getattr(os, _name, 0)
# A handle that only names a folder needs no permission to list it.
FOLDER_FLAGS = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
LISTING_FLAGS = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# By name: this module is loaded late, and a program may have put a function of its own in the place of os.open by then.
HAS_HANDLES = (
    any(call.__name__ == "open" for call in os.supports_dir_fd)
    and any(call.__name__ == "scandir" for call in os.supports_fd)
    and hasattr(os, "O_NOFOLLOW")
)

IGNORES_CASE = os.name == "nt" or sys.platform == "darwin"
"""True where most disks take two names that differ in case for one."""

_SYS_OPENAT2 = 437  # the same number on every architecture
_NO_MAGICLINKS, _NO_SYMLINKS, _BENEATH = 0x02, 0x04, 0x08
_OUTWARD_PARTS = frozenset(("", ".", ".."))
_OTHER_SEP = os.sep if os.sep != "/" else "\0"
_NAME_SURROGATE = 0x20000000
"""The bit in the tag of an entry on Windows that stands for another entry: a link or a junction.

A placeholder of a cloud drive has a tag without this bit."""
_MAX_TRIES = 8  # EAGAIN means that something was renamed meanwhile; a few tries settle it


def open_folder(path: str) -> int:
    """Return a handle for a folder that the caller named; links in that path are followed."""
    return os.open(path, FOLDER_FLAGS)


def open_beneath(base: str, parts: tuple[str, ...], *, way: OpenMethod | None = None) -> int:
    """Return a descriptor for the file ``parts`` below ``base``; raise ``OSError`` (ELOOP) for a link."""
    path = "/".join(parts)
    if not parts or path.count("/") >= len(parts) or not _OUTWARD_PARTS.isdisjoint(parts) or _OTHER_SEP in path:
        raise OSError(errno.EXDEV, "the path leads out of its folder", path)
    if way is None:
        # With one name there is nothing to swap between two steps: ``O_NOFOLLOW`` refuses what ``openat2`` refuses, and
        # ctypes, which takes as long to load as 100 skills to verify, is not needed.
        way = "components" if HAS_HANDLES and len(parts) == 1 else best_open_method()
    if way == "portable":
        return _open_portable(base, parts)
    folder = open_folder(base)
    try:
        opener = _load_openat2() if way == "openat2" else _open_components
        if opener is None:
            raise OSError(errno.ENOSYS, "openat2 is not available")
        return opener(folder, parts, READ_FLAGS)
    finally:
        os.close(folder)


def open_folder_beneath(base: str, parts: tuple[str, ...]) -> int:
    """Return a handle for the folder ``parts`` below ``base``, or ``base``; raise ``OSError`` (ELOOP) for a link."""
    folder = open_folder(base)
    for part in parts:
        try:
            inner = open_child_folder(folder, part)
        finally:
            os.close(folder)
        folder = inner
    return folder


@cache
def best_open_method() -> OpenMethod:
    """Return the strongest of the three ways that this system has."""
    if _load_openat2() is not None:
        return "openat2"
    return "components" if HAS_HANDLES else "portable"


@cache
def _load_openat2() -> Callable[[int, tuple[str, ...], int], int] | None:
    """Return a function that calls ``openat2``, or ``None`` where the kernel does not know that call.

    Python has no name for it, so it goes through the ``syscall`` of the C library.
    """
    if not hasattr(os, "O_PATH") or not HAS_HANDLES:
        return None
    import ctypes

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (OSError, AttributeError):
        return None
    syscall.restype = ctypes.c_long
    syscall.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    hows = {flags: OpenHow(flags, 0, _BENEATH | _NO_SYMLINKS | _NO_MAGICLINKS) for flags in (READ_FLAGS, FOLDER_FLAGS)}
    pointers = {flags: ctypes.byref(how) for flags, how in hows.items()}
    size = ctypes.sizeof(OpenHow)

    def call(folder: int, parts: tuple[str, ...], flags: int) -> int:
        path = os.fsencode("/".join(parts))
        code = 0
        for _ in range(_MAX_TRIES):
            fd: int = syscall(_SYS_OPENAT2, folder, path, pointers[flags], size)
            if fd >= 0:
                return fd
            code = ctypes.get_errno()
            if code not in {errno.EAGAIN, errno.EINTR}:
                break
        raise OSError(code, os.strerror(code), "/".join(parts))

    return call if _is_working(call) else None


def _is_working(call: Callable[[int, tuple[str, ...], int], int]) -> bool:
    folder = os.open(os.sep, FOLDER_FLAGS)
    try:
        os.close(call(folder, (".",), FOLDER_FLAGS))
    except OSError:  # ENOSYS from an old kernel, EPERM from a sandbox's filter
        return False
    finally:
        os.close(folder)
    return True


def _open_components(folder: int, parts: tuple[str, ...], flags: int) -> int:
    current = os.dup(folder)
    try:
        for part in parts[:-1]:
            inner = open_child_folder(current, part)
            os.close(current)
            current = inner
        return os.open(parts[-1], flags | os.O_NOFOLLOW, dir_fd=current)
    finally:
        os.close(current)


def open_child_folder(folder: int, name: str, flags: int = FOLDER_FLAGS) -> int:
    """Return a handle for a folder in a folder; raise ``OSError`` (ELOOP) when the name is a link."""
    try:
        return os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError:
        # With O_DIRECTORY and O_NOFOLLOW the system says of a link, too, that it is not a folder.
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _open_portable(base: str, parts: tuple[str, ...]) -> int:
    path = base
    for part in parts:
        path = os.path.join(path, part)
        _refuse_link(path)
    before = os.lstat(path)  # before it is opened: a file that is swapped in between has another identity
    if stat.S_ISDIR(before.st_mode):  # Windows opens no folders, and says that it lacks the permission
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    fd = os.open(path, READ_FLAGS)
    if os.path.samestat(before, os.fstat(fd)):
        return fd
    os.close(fd)
    raise OSError(errno.ELOOP, "the file was replaced while it was opened", path)


def _refuse_link(path: str) -> None:
    if is_link_info(os.lstat(path)):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def is_link_info(info: os.stat_result) -> bool:
    """Return whether ``lstat`` describes a link, or a junction of Windows, which is not a link for Python."""
    return stat.S_ISLNK(info.st_mode) or bool(getattr(info, "st_reparse_tag", 0) & _NAME_SURROGATE)

"""Bounded reads of regular files: at most the limit, never a device, never half of two versions."""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, Self

from prowess.errors import (
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
)
from prowess.files.contained_open import READ_FLAGS, open_beneath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.literals import OpenMethod

_CHUNK_BYTES = 1 << 20
_ERROR_INVALID_NAME = 123
"""What Windows says of a name that no file can have there, such as ``a?b``; Python makes EINVAL of it."""
_HAS_PREAD = hasattr(os, "pread")


HAS_CHANGE_TIME = os.name != "nt"
"""False on Windows, where ``st_ctime`` is the time of creation, so that an identity may outlive the content."""

Identity = tuple[int, int, int, int, int]
"""Device, inode, size, time of modification, time of change: as long as these stay, a file has the content it had."""


def identity_of(info: os.stat_result) -> Identity:
    """Return the identity of a file from what ``stat`` says about it."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def _is_same_state(before: os.stat_result, after: os.stat_result) -> bool:
    return (
        before.st_mtime_ns == after.st_mtime_ns
        and before.st_size == after.st_size
        and before.st_ctime_ns == after.st_ctime_ns
    )


class OpenFile:
    """A regular file, open for bounded reads; a context manager."""

    __slots__ = ("_fd", "info", "path")

    def __init__(
        self, base: str, parts: tuple[str, ...], *, way: OpenMethod | None = None, folder: int = -1, path: str = ""
    ) -> None:
        """Open the file ``parts`` below ``base``; error messages call it ``path``.

        ``folder`` is a handle of the folder that holds the file, for callers that have it open already. Raises
        ``ResourceError`` for anything but a regular file of the folder's owner.
        """
        self.path = path or "/".join(parts)
        self._fd = -1
        try:
            self._fd = (
                open_beneath(base, parts, way=way) if folder < 0 else os.open(parts[-1], READ_FLAGS, dir_fd=folder)
            )
            self.info = os.fstat(self._fd)
        except OSError as error:
            raise as_resource_error(error, self.path) from None
        except ValueError:  # the name holds NUL, or half of a character
            raise ResourceNotFoundError(f"{self.path!r} cannot be the name of a file", self.path, "bad-path") from None
        if not stat.S_ISREG(self.info.st_mode):
            self.close()
            raise ResourceError(f"{self.path!r} is not a regular file", self.path, "not-a-regular-file")
        # A hard link to a file of somebody else would let a skill show what its author could not read.
        if self.info.st_nlink > 1 and _has_foreign_owner(base, parts, self.info):
            self.close()
            message = f"{self.path!r} is another name of a file that belongs to someone else"
            raise ResourceError(message, self.path, "hard-link")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def identity(self) -> Identity:
        """What the file was when it was opened."""
        return identity_of(self.info)

    def read(self, most: int, offset: int = 0) -> bytes:
        """Return at most ``most`` bytes from ``offset``; raise ``ResourceChangedError`` if the file changes."""
        size = self.info.st_size
        if not 0 < size <= _CHUNK_BYTES:
            return b"".join(self.iter_chunks(most, offset))
        # Fast path: nearly every file of a skill fits into one read. One byte more is asked for, to see it grow.
        data = self._read_at(min(most, max(size - offset, 0) + 1), offset)
        if len(data) > max(size - offset, 0) or not _is_same_state(self.info, os.fstat(self._fd)):
            raise self._changed_error()
        return data

    def _changed_error(self) -> ResourceChangedError:
        return ResourceChangedError(f"{self.path!r} changed while it was read", self.path)

    def iter_chunks(self, most: int, offset: int = 0) -> Iterator[bytes]:
        """Yield at most ``most`` bytes from ``offset`` in pieces.

        Raises ``ResourceChangedError`` at the end if the file changed meanwhile.
        """
        # One byte more than the file has: a read that comes back shorter has seen the end.
        size = self.info.st_size
        left = min(most, max(size - offset, 0) + 1) if size else most  # /proc and some file systems say 0
        while left > 0:
            wanted = min(left, _CHUNK_BYTES)
            part = self._read_at(wanted, offset)
            if part:
                yield part
            left -= len(part)
            offset += len(part)
            # A short read is the end of a file that has a size. Without a size, only an empty read is.
            if not part or (size and len(part) < wanted):
                break
        if not _is_same_state(self.info, os.fstat(self._fd)):
            raise self._changed_error()

    def _read_at(self, most: int, offset: int) -> bytes:
        try:
            if _HAS_PREAD:
                return os.pread(self._fd, most, offset)
            os.lseek(self._fd, offset, os.SEEK_SET)
            return os.read(self._fd, most)
        except OSError as error:
            raise as_resource_error(error, self.path) from None

    def read_all(self, limit: int, offset: int = 0) -> bytes:
        """Return everything from ``offset``; raise ``ResourceTooLargeError`` when that is more than ``limit`` bytes."""
        if 0 < self.info.st_size <= _CHUNK_BYTES and self.info.st_size - offset <= limit:
            return self.read(limit, offset)
        return b"".join(self.iter_all_chunks(limit, offset))

    def iter_all_chunks(self, limit: int, offset: int = 0) -> Iterator[bytes]:
        """Yield everything from ``offset`` in pieces; raise ``ResourceTooLargeError`` for more than ``limit`` bytes.

        The bytes that were read are counted, because some files, such as those in /proc, say that they are empty.
        """
        size = self.info.st_size - offset
        if size > limit:
            raise too_large_error(self.path, size, limit)
        left = limit
        for part in self.iter_chunks(limit + 1, offset):
            left -= len(part)
            if left < 0:
                raise too_large_error(self.path, limit - left, limit)
            yield part

    def read_head(self, step: int, most: int, wants_more: Callable[[bytes], bool]) -> tuple[bytes, bool]:
        """Return the first bytes, and whether they are the whole file.

        Reads ``step`` bytes at a time, as long as ``wants_more`` says so of what was read, and at most ``most``.
        """
        head = b""
        while len(head) < most:
            part = self._read_at(min(step, most - len(head)), len(head))
            head += part
            if not part or 0 < self.info.st_size <= len(head):  # without a size, only an empty read is the end
                return head, True
            if not wants_more(head):
                return head, False
        return head, 0 < self.info.st_size <= len(head)


def _has_foreign_owner(base: str, parts: tuple[str, ...], info: os.stat_result) -> bool:
    """Whether a file with several names has another owner than its folder: anyone could have made such a name."""
    try:
        return os.lstat(os.path.join(base, *parts[:-1])).st_uid != info.st_uid
    except OSError:
        return True


def too_large_error(path: str, size: int, limit: int) -> ResourceTooLargeError:
    """Return the error that states the size of a file and the limit that it exceeds."""
    return ResourceTooLargeError(f"{path!r} has {size} bytes; at most {limit} are read", path)


def as_resource_error(error: OSError, path: str) -> ResourceError:
    """Return the error of the system as one about a file of a skill, which the caller named ``path``."""
    is_impossible_name = getattr(error, "winerror", 0) == _ERROR_INVALID_NAME
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG} or is_impossible_name:
        return ResourceNotFoundError(f"no file {path!r}", path)
    if error.errno in {errno.ELOOP, errno.EXDEV}:
        return PathTraversalError(f"resource path {path!r} leads through a link", path)
    if error.errno in {errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return ResourceError(f"{path!r} is not a regular file", path, "not-a-regular-file")
    return ResourceError(f"cannot read {path!r}: {error.strerror}", path, "unreadable")

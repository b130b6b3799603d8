"""Bounded reads of regular files: at most the limit, never a device, never half of two versions."""

from __future__ import annotations

import errno
import os
import stat

from prowess.errors import (
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
)
from prowess.files.contained_open import READ_FLAGS, open_beneath

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Self

    from prowess.literals import OpenMethod

_CHUNK_BYTES = 1 << 20
_HAS_PREAD = hasattr(os, "pread")


Identity = tuple[int, int, int, int, int]
"""What says that a file is still the same file with the same content: device, inode, size, modified, changed."""


def identity_of(info: os.stat_result) -> Identity:
    """The identity of a file that was looked at."""
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
        """The file ``parts`` below ``base``, which errors call ``path``.

        ``folder``: a handle of the very folder that holds the file, where the caller has one open.
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
        except ValueError:  # NUL, or half a character
            raise ResourceNotFoundError(f"{self.path!r} cannot be the name of a file", self.path, "bad-path") from None
        if not stat.S_ISREG(self.info.st_mode):
            self.close()
            raise ResourceError(f"{self.path!r} is not a regular file", self.path, "not-a-regular-file")
        if self.info.st_nlink > 1 and _has_foreign_owner(base, parts, self.info):
            self.close()
            message = f"{self.path!r} is another name of a file that belongs to someone else"
            raise ResourceError(message, self.path, "hard-link")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def identity(self) -> Identity:
        return identity_of(self.info)

    def read(self, most: int, offset: int = 0) -> bytes:
        """At most ``most`` bytes from ``offset``; the file must not change meanwhile."""
        size = self.info.st_size
        if not 0 < size <= _CHUNK_BYTES:
            return b"".join(self.iter_chunks(most, offset))
        data = self._read_at(min(most, max(size - offset, 0) + 1), offset)
        if len(data) > max(size - offset, 0) or not _is_same_state(self.info, os.fstat(self._fd)):
            raise self._changed_error()
        return data

    def _changed_error(self) -> ResourceChangedError:
        return ResourceChangedError(f"{self.path!r} changed while it was read", self.path)

    def iter_chunks(self, most: int, offset: int = 0) -> Iterator[bytes]:
        """The same in pieces; ``ResourceChangedError`` at the end if the file changed meanwhile."""
        # One byte more than the file has: a read that comes back shorter has seen the end.
        size = self.info.st_size
        left = min(most, max(size - offset, 0) + 1) if size else most  # some file systems call every file empty
        while left > 0:
            wanted = min(left, _CHUNK_BYTES)
            part = self._read_at(wanted, offset)
            if part:
                yield part
            left -= len(part)
            offset += len(part)
            # A short read is the end of a file that has a size. Where none is told, only an empty read is.
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
        """Everything from ``offset``; raises ``ResourceTooLargeError`` when that is more than ``limit`` bytes."""
        if 0 < self.info.st_size <= _CHUNK_BYTES and self.info.st_size - offset <= limit:
            return self.read(limit, offset)
        return b"".join(self.iter_all_chunks(limit, offset))

    def iter_all_chunks(self, limit: int, offset: int = 0) -> Iterator[bytes]:
        """Everything from ``offset`` in pieces; raises ``ResourceTooLargeError`` for more than ``limit`` bytes.

        What counts is what is read: some files, such as those in /proc, say that they are empty and are not.
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
        """The first bytes, in steps, while ``wants_more``; and whether that is the whole file."""
        head = b""
        while len(head) < most:
            part = self._read_at(min(step, most - len(head)), len(head))
            head += part
            if not part or 0 < self.info.st_size <= len(head):  # where no size is told, only an empty read is the end
                return head, True
            if not wants_more(head):
                return head, False
        return head, 0 < self.info.st_size <= len(head)


def _has_foreign_owner(base: str, parts: tuple[str, ...], info: os.stat_result) -> bool:
    """Whether a file with several names has another owner than its folder: a name that anyone could have made."""
    try:
        return os.lstat(os.path.join(base, *parts[:-1])).st_uid != info.st_uid
    except OSError:
        return True


def read_if_same(path: str, known: Identity, offset: int, limit: int) -> bytes | None:
    """The bytes from ``offset`` of a file that is the very one that was opened below its folder before, else ``None``.

    The same device, inode, size and times: whichever way the path led there, it is that file with that content.
    """
    left = known[2] - offset
    if not _HAS_PREAD or left < 0 or left > min(limit, _CHUNK_BYTES):
        return None
    try:
        fd = os.open(path, READ_FLAGS)
    except OSError:
        return None
    try:
        if identity_of(os.fstat(fd)) != known:
            return None
        data = os.pread(fd, left + 1, offset)
        return data if len(data) == left and identity_of(os.fstat(fd)) == known else None
    except OSError:
        return None
    finally:
        os.close(fd)


def too_large_error(path: str, size: int, limit: int) -> ResourceTooLargeError:
    """The error that states both sizes."""
    return ResourceTooLargeError(f"{path!r} has {size} bytes; at most {limit} are read", path)


def as_resource_error(error: OSError, path: str) -> ResourceError:
    """What went wrong in the terms of the caller, who named a file of a skill."""
    if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG}:
        return ResourceNotFoundError(f"no file {path!r}", path)
    if error.errno in {errno.ELOOP, errno.EXDEV}:
        return PathTraversalError(f"resource path {path!r} leads through a link", path)
    if error.errno in {errno.ENXIO, errno.EISDIR, errno.ENODEV}:
        return ResourceError(f"{path!r} is not a regular file", path, "not-a-regular-file")
    return ResourceError(f"cannot read {path!r}: {error.strerror}", path, "unreadable")

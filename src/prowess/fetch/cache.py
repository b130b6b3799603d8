"""What was fetched, kept under its own hash, and hashed again whenever it is read.

::

    FOLDER/sha256/ab/cdef…      bytes under their SHA-256
    FOLDER/urls/0123….json      what a URL gave when: the hash, validators, until when it is fresh, what it replaced
    FOLDER/git/0123…/COMMIT     objects of a commit, under the hash of the repository's address

Files are for their owner alone. A folder that others may write to is not used; without a usable folder everything is
fetched each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from prowess.errors import ResourceError
from prowess.files import syscalls
from prowess.files.directory import list_oldest_files, stat_folder
from prowess.files.read import OpenFile
from prowess.files.write import make_folders, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits

CACHE_DIR_VARIABLE = "PROWESS_CACHE_DIR"
_OTHERS_WRITE_BITS = 0o022  # its group, and everybody else
_MAX_RECORD_BYTES = 256 * 1024
_TEXT_FIELDS = ("url", "final_url", "digest", "etag", "last_modified")
_NUMBER_FIELDS = ("size", "stored_at", "fresh_until")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORT_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class CacheRecord:
    """The newest that a URL gave: the hash and size of its bytes, when, until when it is fresh, and how to ask again.

    ``replaced`` has the marks of what it gave before that, the latest last, so that old news is noticed. ``is_gone``:
    the URL has had nothing since, or nothing that may be kept; the record stays, for what was newest.
    """

    url: str
    final_url: str
    digest: str
    size: int
    stored_at: float
    fresh_until: float
    etag: str = ""
    last_modified: str = ""
    replaced: tuple[str, ...] = ()
    is_gone: bool = False

    def is_fresh(self, now: float, limits: Limits) -> bool:
        """Whether it may be used without asking; a clock that was turned back makes nothing fresh for longer."""
        return self.stored_at <= now < min(self.fresh_until, self.stored_at + limits.max_cache_seconds)


class Cache:
    """A folder of fetched bytes."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = os.path.abspath(os.fspath(folder)) if folder is not None else default_cache_dir()

    @property
    def folder(self) -> str:
        return self._folder

    def is_usable(self) -> bool:
        """Whether the folder is there, or can be made, and only its owner writes to it."""
        try:
            make_folders(self._folder, 0o700)
        except OSError:
            return False
        info = stat_folder(self._folder)
        if info is None or not os.access(self._folder, os.W_OK):
            return False
        return not hasattr(os, "geteuid") or (info.st_uid == os.geteuid() and not info.st_mode & _OTHERS_WRITE_BITS)

    def read(self, digest: str, most: int) -> bytes | None:
        """The bytes of that hash; ``None`` when they are not there or are no longer what they were."""
        data = self._read(_blob_path(digest), most)
        return data if data is not None and sha256_hex(data) == digest else None

    def write(self, data: bytes) -> str:
        """Keep bytes; their hash, also when they cannot be kept."""
        digest = sha256_hex(data)
        self._write(_blob_path(digest), data)
        return digest

    def read_record(self, url: str) -> CacheRecord | None:
        """What is kept of a URL; ``None`` when nothing is, or nothing that makes sense."""
        data = self._read(_record_path(url), _MAX_RECORD_BYTES)
        try:
            fields = json.loads(data or b"null")
        except (ValueError, RecursionError):
            return None
        if not _is_valid_record(fields) or fields["url"] != url:
            return None
        return CacheRecord(**fields | {"replaced": tuple(fields["replaced"])})

    def write_record(self, kept: CacheRecord) -> None:
        """Keep what a URL gave."""
        self._write(_record_path(kept.url), json.dumps(asdict(kept)).encode())

    def mark_gone(self, url: str) -> None:
        """Let nothing that is kept of a URL be used in its place; what was its newest is still known."""
        kept = self.read_record(url)
        if kept is not None:
            self.write_record(replace(kept, is_gone=True, fresh_until=0))

    def has_repository(self, address: str) -> bool:
        """Whether objects of a repository are kept."""
        return self.is_usable() and stat_folder(os.path.join(self._folder, *_repository_path(address))) is not None

    def read_objects(self, address: str, commit: str, most: int) -> bytes | None:
        """What was kept of a commit of a repository, to be hashed by who knows how; ``None`` when nothing was."""
        return self._read((*_repository_path(address), commit), most)

    def write_objects(self, address: str, commit: str, dumped: bytes, most: int) -> None:
        """Keep objects of a commit of a repository, in place of what was kept of it before.

        Of a repository the ``most`` commits that were kept last stay.
        """
        self._write((*_repository_path(address), commit), dumped)
        with suppress(OSError):  # without it they stay until the next time
            folder = os.path.join(self._folder, *_repository_path(address))
            for old in list_oldest_files(folder, most):
                syscalls.delete_file(os.path.join(folder, old))

    def _read(self, parts: tuple[str, ...], most: int) -> bytes | None:
        if not self.is_usable():
            return None
        try:
            with OpenFile(self._folder, parts) as file:
                return file.read_all(most)
        except ResourceError:
            return None

    def _write(self, parts: tuple[str, ...], data: bytes) -> None:
        if not self.is_usable():
            return
        where = os.path.join(self._folder, *parts)
        with suppress(OSError):  # without it the next one fetches again
            make_folders(os.path.dirname(where), 0o700)
            write_atomic(where, data, mode=0o600)


def default_cache_dir(env: Mapping[str, str] = os.environ) -> str:
    """``PROWESS_CACHE_DIR``, or the user's cache folder for Prowess."""
    if env.get(CACHE_DIR_VARIABLE):
        return os.path.abspath(env[CACHE_DIR_VARIABLE])
    from platformdirs import user_cache_dir  # noqa: PLC0415 - only when something is fetched

    return os.path.join(user_cache_dir("prowess", appauthor=False), "skills")


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def short_hash(text: str) -> str:
    """A short hash by which a state of a URL is recognised; a collision only makes something new look old."""
    return sha256_hex(text.encode("utf-8", "surrogatepass"))[:16]  # JSON may hold half a character


def _blob_path(digest: str) -> tuple[str, ...]:
    return ("sha256", digest[:2], digest[2:])


def _repository_path(address: str) -> tuple[str, ...]:
    return ("git", sha256_hex(address.encode("utf-8", "surrogatepass")))


def _record_path(url: str) -> tuple[str, ...]:
    return ("urls", f"{sha256_hex(url.encode())}.json")


def _is_valid_record(fields: object) -> bool:
    """Whether what a file says are the fields of a record."""
    if not isinstance(fields, dict) or set(fields) != {*_TEXT_FIELDS, *_NUMBER_FIELDS, "replaced", "is_gone"}:
        return False
    marks = fields["replaced"]
    if not isinstance(marks, list) or not all(isinstance(mark, str) and _SHORT_HASH.fullmatch(mark) for mark in marks):
        return False
    if not isinstance(fields["is_gone"], bool):
        return False
    texts, numbers = [fields[key] for key in _TEXT_FIELDS], [fields[key] for key in _NUMBER_FIELDS]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        return False
    return all(type(number) in {int, float} for number in numbers) and _DIGEST.fullmatch(fields["digest"]) is not None

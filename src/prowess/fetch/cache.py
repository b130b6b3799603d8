"""The cache of fetched bytes: a folder with everything under its own hash, and is hashed again when read.

::

    FOLDER/sha256/ab/cdef…      bytes under their SHA-256
    FOLDER/urls/0123….json      the record of a URL: when it gave which hash, its validators, what was replaced
    FOLDER/git/0123…/COMMIT     objects of a commit, under the hash of the repository's address
    FOLDER/archives/0123…/cdef… the bytes of an archive, under the hash of its address and under their own

What nobody used for a while is deleted, and what was used longest ago when there is too much. The records of URLs stay:
they are small, and show when a server goes back. The time at which a file was changed last says when it was used.
Only the owner may read or write the files. A folder that others may write to is not used. Without a usable folder
nothing is an error: everything is fetched each time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import ResourceError
from prowess.files import syscalls
from prowess.files.directory import stat_folder
from prowess.files.projects import default_cache_dir, is_private_folder
from prowess.files.read import OpenFile
from prowess.files.write import make_folders, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.limits import Limits

_KINDS = ("sha256", "git", "archives")
"""The folders of the files that are pruned."""
_DAY_SECONDS = 86_400
_MAX_RECORD_BYTES = 256 * 1024
_TEXT_FIELDS = ("url", "final_url", "digest", "etag", "last_modified")
_NUMBER_FIELDS = ("size", "stored_at", "fresh_until")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_SHORT_HASH = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class CacheRecord:
    """The newest answer of a URL: the hash and size of its bytes, its dates, and the validators for the next request.

    ``replaced`` holds short hashes of what the URL gave before that, the latest last. They show when a server goes back
    to something old. ``is_gone`` is true when the URL has since had nothing, or nothing that may be kept: then the
    bytes are not used, and the record still says what was newest.
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
        """Return whether the bytes may be used without asking the server."""
        # A record from the future is not fresh: turning the clock back must not keep old bytes in use.
        return self.stored_at <= now < min(self.fresh_until, self.stored_at + limits.max_cache_seconds)


class CachedFile(NamedTuple):
    """A file of the cache: the parts of its path, its size in bytes, and when it was used last."""

    parts: tuple[str, ...]
    size: int
    used_at: float

    @property
    def kind(self) -> str:
        """The folder that it is in: ``sha256``, ``git`` or ``archives``."""
        return self.parts[0]


class Cache:
    """A folder of fetched bytes; nothing that goes wrong with it raises an error."""

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._folder = os.path.abspath(os.fspath(folder)) if folder is not None else default_cache_dir()

    @property
    def folder(self) -> str:
        """The absolute path of the folder, whether or not it exists."""
        return self._folder

    def is_usable(self) -> bool:
        """Return whether the folder exists or can be created, belongs to this user, and nobody else may write to it."""
        try:
            make_folders(self._folder, 0o700)
        except OSError:
            return False
        # Whoever else may write to the folder could replace the records, which nothing but their place protects.
        return os.access(self._folder, os.W_OK) and is_private_folder(self._folder)

    def read(self, digest: str, max_bytes: int) -> bytes | None:
        """Return the bytes with that hash; ``None`` when they are missing, damaged, or more than ``max_bytes``."""
        data = self._read(_blob_path(digest), max_bytes)
        return data if data is not None and sha256_hex(data) == digest else None

    def write(self, data: bytes) -> str:
        """Keep bytes, and return their hash, also when they cannot be kept."""
        digest = sha256_hex(data)
        self._write(_blob_path(digest), data)
        return digest

    def read_record(self, url: str) -> CacheRecord | None:
        """Return the record of a URL; ``None`` when there is none, or when its file is damaged."""
        data = self._read(_record_path(url), _MAX_RECORD_BYTES)
        try:
            fields = json.loads(data or b"null")
        except (ValueError, RecursionError):
            return None
        if not _is_valid_record(fields) or fields["url"] != url:  # a record that was moved answers for nobody
            return None
        return CacheRecord(**fields | {"replaced": tuple(fields["replaced"])})

    def write_record(self, record: CacheRecord) -> None:
        """Keep the record of a URL in place of the one before."""
        self._write(_record_path(record.url), json.dumps(asdict(record)).encode())

    def mark_gone(self, url: str) -> None:
        """Stop using the kept bytes for a URL. Its record stays, since it distinguishes old answers from new ones."""
        record = self.read_record(url)
        if record is not None:
            self.write_record(replace(record, is_gone=True, fresh_until=0))

    def has_repository(self, address: str) -> bool:
        """Return whether objects of a repository are kept."""
        return self.is_usable() and stat_folder(os.path.join(self._folder, *_repository_path(address))) is not None

    def read_objects(self, address: str, commit: str, max_bytes: int) -> bytes | None:
        """Return the objects that are kept of a commit; ``None`` when there are none.

        The caller must compare them with their ids: only ``fetch/git/objects.py`` knows how git hashes.
        """
        return self._read((*_repository_path(address), commit), max_bytes)

    def write_objects(self, address: str, commit: str, dumped: bytes, limits: Limits) -> None:
        """Keep objects of a commit of a repository, in place of those that were kept of it before."""
        self._write((*_repository_path(address), commit), dumped)
        self.prune_daily(limits)

    def delete_commit(self, address: str, commit: str) -> None:
        """Delete the objects that are kept of a commit."""
        path = (*_repository_path(address), commit)
        self.delete_files([file for file in self.list_files() if file.parts == path])

    def write_archive(self, address: str, data: bytes, limits: Limits) -> None:
        """Keep the bytes of an archive beside the earlier ones of that address."""
        self._write((*_archive_path(address), sha256_hex(data)), data)
        self.prune_daily(limits)

    def read_archives(self, address: str, max_bytes: int) -> Iterator[bytes]:
        """Yield the bytes that are kept of an archive, those used last first; damaged ones are left out."""
        path = _archive_path(address)
        if not self.is_usable() or stat_folder(os.path.join(self._folder, *path)) is None:
            return
        for file in sorted(self._list_files(path[0]), key=lambda file: file.used_at, reverse=True):
            if file.parts[:-1] == path:
                data = self._read(file.parts, max_bytes)
                if data is not None and sha256_hex(data) == file.parts[-1]:
                    yield data

    def list_files(self) -> list[CachedFile]:
        """Return the files whose bytes are kept, those used longest ago first; the records of URLs are none of them."""
        if not self.is_usable():
            return []
        found = [file for kind in _KINDS for file in self._list_files(kind)]
        return sorted(found, key=lambda file: (file.used_at, file.parts))

    def read_file(self, file: CachedFile, max_bytes: int) -> bytes | None:
        """Return the bytes of a file whatever they are; this does not count as use."""
        return self._read(file.parts, max_bytes, is_use=False)

    def find_prunable(self, limits: Limits) -> list[CachedFile]:
        """Return what was not used for long, and what is too much; of that, what was used longest ago."""
        files = self.list_files()
        excess = sum(file.size for file in files) - limits.max_cached_bytes
        expires = time.time() - limits.keep_cached_seconds
        found = []
        for file in files:
            if file.used_at >= expires and excess <= 0:
                break  # the others were used later
            excess -= file.size
            found.append(file)
        return found

    def delete_files(self, files: Iterable[CachedFile]) -> list[CachedFile]:
        """Delete files, and return those that could be deleted."""
        deleted = []
        for file in files:
            with suppress(OSError):  # what cannot be deleted now is deleted the next time
                syscalls.delete_file(self.path_of(file))
                deleted.append(file)
        return deleted

    def path_of(self, file: CachedFile) -> str:
        """Return the absolute path of a file."""
        return os.path.join(self._folder, *file.parts)

    def prune_daily(self, limits: Limits) -> None:
        """Prune the cache, unless that was done within a day: it takes a look at every file."""
        mark = os.path.join(self._folder, "pruned")
        if _is_recent(mark):
            return
        self._write(("pruned",), b"")
        self.delete_files(self.find_prunable(limits))

    def _list_files(self, kind: str) -> Iterator[CachedFile]:
        """Yield the files of one kind; no link is followed."""
        for folder, _, names in os.walk(os.path.join(self._folder, kind)):
            for name in names:
                path = os.path.join(folder, name)
                with suppress(OSError):  # deleted meanwhile
                    info = os.lstat(path)
                    if stat.S_ISREG(info.st_mode):
                        parts = tuple(os.path.relpath(path, self._folder).split(os.sep))
                        yield CachedFile(parts, info.st_size, info.st_mtime)

    def _read(self, parts: tuple[str, ...], max_bytes: int, *, is_use: bool = True) -> bytes | None:
        if not self.is_usable():
            return None
        try:
            with OpenFile(self._folder, parts) as file:
                data = file.read_all(max_bytes)
        except ResourceError:
            return None
        path = os.path.join(self._folder, *parts)
        # Once a day is enough. The age of a record is a field of it, so that of its file does not matter.
        if is_use and parts[0] in _KINDS and not _is_recent(path):
            with suppress(OSError):
                syscalls.touch_file(path)
        return data

    def _write(self, parts: tuple[str, ...], data: bytes) -> None:
        if not self.is_usable():
            return
        path = os.path.join(self._folder, *parts)
        with suppress(OSError):  # what is not kept is fetched again
            make_folders(os.path.dirname(path), 0o700)
            write_atomic(path, data, mode=0o600)


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex."""
    return hashlib.sha256(data).hexdigest()


def short_hash(text: str) -> str:
    """Return a short hash by which an answer of a URL is recognised. A collision only makes something new look old."""
    # A text out of JSON may hold half of a surrogate pair, which plain UTF-8 cannot encode.
    return sha256_hex(text.encode("utf-8", "surrogatepass"))[:16]


def _blob_path(digest: str) -> tuple[str, ...]:
    return ("sha256", digest[:2], digest[2:])


def _repository_path(address: str) -> tuple[str, ...]:
    return ("git", sha256_hex(address.encode("utf-8", "surrogatepass")))


def _archive_path(address: str) -> tuple[str, ...]:
    return ("archives", sha256_hex(address.encode("utf-8", "surrogatepass")))


def _is_recent(path: str) -> bool:
    """Return True for a file that was changed within a day; false for one with a time in the future."""
    try:
        return 0 <= time.time() - os.lstat(path).st_mtime < _DAY_SECONDS
    except OSError:
        return False


def _record_path(url: str) -> tuple[str, ...]:
    return ("urls", f"{sha256_hex(url.encode())}.json")


def _is_valid_record(fields: object) -> bool:
    """Return whether the JSON of a file has exactly the fields of a record, each of its type.

    A record is used to build requests (``etag``) and messages, so a damaged or forged one must not get that far.
    """
    if not isinstance(fields, dict) or set(fields) != {*_TEXT_FIELDS, *_NUMBER_FIELDS, "replaced", "is_gone"}:
        return False
    hashes, texts = fields["replaced"], [fields[key] for key in _TEXT_FIELDS]
    return (
        isinstance(hashes, list)
        and all(isinstance(text_hash, str) and _SHORT_HASH.fullmatch(text_hash) for text_hash in hashes)
        and isinstance(fields["is_gone"], bool)
        and all(isinstance(text, str) and text.isprintable() for text in texts)
        and all(type(fields[key]) in {int, float} for key in _NUMBER_FIELDS)
        and _DIGEST.fullmatch(fields["digest"]) is not None
    )

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
from prowess.files.directory import folder_info, oldest_files
from prowess.files.read import OpenFile
from prowess.files.write import make_folders, write_atomic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.limits import Limits

VARIABLE = "PROWESS_CACHE_DIR"
_OTHERS_WRITE = 0o022  # its group, and everybody else
_LONGEST_RECORD = 256 * 1024
_TEXTS = ("url", "final_url", "digest", "etag", "last_modified")
_NUMBERS = ("size", "stored_at", "fresh_until")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MARK = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Kept:
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
        self._folder = os.path.abspath(os.fspath(folder)) if folder is not None else default_folder()

    @property
    def folder(self) -> str:
        return self._folder

    def is_usable(self) -> bool:
        """Whether the folder is there, or can be made, and only its owner writes to it."""
        try:
            make_folders(self._folder, 0o700)
        except OSError:
            return False
        info = folder_info(self._folder)
        if info is None or not os.access(self._folder, os.W_OK):
            return False
        return not hasattr(os, "geteuid") or (info.st_uid == os.geteuid() and not info.st_mode & _OTHERS_WRITE)

    def read(self, digest: str, most: int) -> bytes | None:
        """The bytes of that hash; ``None`` when they are not there or are no longer what they were."""
        data = self._read(_place(digest), most)
        return data if data is not None and sha256(data) == digest else None

    def write(self, data: bytes) -> str:
        """Keep bytes; their hash, also when they cannot be kept."""
        digest = sha256(data)
        self._write(_place(digest), data)
        return digest

    def record(self, url: str) -> Kept | None:
        """What is kept of a URL; ``None`` when nothing is, or nothing that makes sense."""
        data = self._read(_record_place(url), _LONGEST_RECORD)
        try:
            fields = json.loads(data or b"null")
        except (ValueError, RecursionError):
            return None
        if not _makes_sense(fields) or fields["url"] != url:
            return None
        return Kept(**fields | {"replaced": tuple(fields["replaced"])})

    def keep(self, kept: Kept) -> None:
        """Keep what a URL gave."""
        self._write(_record_place(kept.url), json.dumps(asdict(kept)).encode())

    def forget(self, url: str) -> None:
        """Let nothing that is kept of a URL be used in its place; what was its newest is still known."""
        kept = self.record(url)
        if kept is not None:
            self.keep(replace(kept, is_gone=True, fresh_until=0))

    def has_repository(self, address: str) -> bool:
        """Whether objects of a repository are kept."""
        return self.is_usable() and folder_info(os.path.join(self._folder, *_repository_place(address))) is not None

    def read_objects(self, address: str, commit: str, most: int) -> bytes | None:
        """What was kept of a commit of a repository, to be hashed by who knows how; ``None`` when nothing was."""
        return self._read((*_repository_place(address), commit), most)

    def write_objects(self, address: str, commit: str, dumped: bytes, most: int) -> None:
        """Keep objects of a commit of a repository, in place of what was kept of it before.

        Of a repository the ``most`` commits that were kept last stay.
        """
        self._write((*_repository_place(address), commit), dumped)
        with suppress(OSError):  # without it they stay until the next time
            folder = os.path.join(self._folder, *_repository_place(address))
            for old in oldest_files(folder, most):
                syscalls.delete(os.path.join(folder, old))

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


def default_folder(env: Mapping[str, str] = os.environ) -> str:
    """``PROWESS_CACHE_DIR``, or the user's cache folder for Prowess."""
    if env.get(VARIABLE):
        return os.path.abspath(env[VARIABLE])
    from platformdirs import user_cache_dir  # noqa: PLC0415 - only when something is fetched

    return os.path.join(user_cache_dir("prowess", appauthor=False), "skills")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def mark_of(text: str) -> str:
    """A short hash by which a state of a URL is recognised; a collision only makes something new look old."""
    return sha256(text.encode("utf-8", "surrogatepass"))[:16]  # JSON may hold half a character


def _place(digest: str) -> tuple[str, ...]:
    return ("sha256", digest[:2], digest[2:])


def _repository_place(address: str) -> tuple[str, ...]:
    return ("git", sha256(address.encode("utf-8", "surrogatepass")))


def _record_place(url: str) -> tuple[str, ...]:
    return ("urls", f"{sha256(url.encode())}.json")


def _makes_sense(fields: object) -> bool:
    """Whether what a file says are the fields of a record."""
    if not isinstance(fields, dict) or set(fields) != {*_TEXTS, *_NUMBERS, "replaced", "is_gone"}:
        return False
    marks = fields["replaced"]
    if not isinstance(marks, list) or not all(isinstance(mark, str) and _MARK.fullmatch(mark) for mark in marks):
        return False
    if not isinstance(fields["is_gone"], bool):
        return False
    texts, numbers = [fields[key] for key in _TEXTS], [fields[key] for key in _NUMBERS]
    if not all(isinstance(text, str) and text.isprintable() for text in texts):
        return False
    return all(type(number) in {int, float} for number in numbers) and _DIGEST.fullmatch(fields["digest"]) is not None

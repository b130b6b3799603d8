"""The files of one remote skill, fetched when they are asked for: one file, an archive, or a list of files.

Pinned bytes are checked against the index's digest each time, from the network or from the cache. Files that a list
names have no digest: the hash of what came first is kept with the copy, and the copy is checked against that.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from prowess.errors import FetchError, Issue, ResourceNotFoundError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.http_cache import Request
from prowess.fetch.url_policy import shown
from prowess.files.write import NewFile
from prowess.skills.skill_files import Contents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.fetch.http_cache import Copy, Downloads
    from prowess.sources.site_index import Entry

_OWN = "SKILL.md"


class RemoteContents(Contents, Protocol):
    """The same of a skill that another machine holds."""

    def is_here(self) -> bool:
        """Whether its SKILL.md can be read without asking the server."""
        ...


def contents_of(entry: Entry, downloads: Downloads) -> RemoteContents:
    """What gives the files of an announced skill."""
    if entry.files:
        return ListedFiles(entry, downloads)
    return PinnedArchive(entry, downloads) if entry.is_archive else PinnedFile(entry, downloads)


class PinnedFile:
    """A skill that is one SKILL.md, pinned by its digest."""

    def __init__(self, entry: Entry, downloads: Downloads) -> None:
        self._entry = entry
        self._downloads = downloads

    @property
    def location(self) -> str:
        return self._entry.location

    @property
    def state(self) -> str:
        return f"sha256:{self._entry.digest}"

    def names(self) -> tuple[str, ...] | None:
        return (_OWN,)

    def files(self) -> tuple[str, ...]:
        return (_OWN,)

    def read(self, path: str) -> bytes:
        if path != _OWN:
            raise ResourceNotFoundError(f"no file {path!r}", path)
        return self._bytes()

    def everything(self) -> tuple[NewFile, ...]:
        return (NewFile(_OWN, self._bytes()),)

    def issues(self) -> tuple[Issue, ...]:
        return ()

    def is_here(self) -> bool:
        """Whether its SKILL.md can be read without asking the server."""
        return self._downloads.is_here(self._entry.digest)

    def _bytes(self) -> bytes:
        return self._downloads.pinned(self._entry.url, self._entry.digest, self._entry.size)


class PinnedArchive(PinnedFile):
    """A skill that is an archive, pinned by its digest; unpacked in memory whenever it is asked for."""

    def __init__(self, entry: Entry, downloads: Downloads) -> None:
        super().__init__(entry, downloads)
        self._names: tuple[str, ...] | None = None

    def names(self) -> tuple[str, ...] | None:
        return self._names

    def is_here(self) -> bool:
        """Not without unpacking it, which a listing is not worth."""
        return False

    def files(self) -> tuple[str, ...]:
        if self._names is None:
            self.everything()
        return self._names or ()

    def read(self, path: str) -> bytes:
        for file in self.everything():
            if file.path == path:
                return file.content
        raise ResourceNotFoundError(f"no file {path!r}", path)

    def everything(self) -> tuple[NewFile, ...]:
        found = unpack(self._bytes(), name=self.location, limits=self._downloads.limits)
        self._names = tuple(file.path for file in found)
        return found


class ListedFiles:
    """A skill whose files an index lists, each at its own URL."""

    def __init__(self, entry: Entry, downloads: Downloads) -> None:
        self._entry = entry
        self._downloads = downloads
        self._notes: dict[str, tuple[str, str]] = {}

    @property
    def location(self) -> str:
        return self._entry.location

    @property
    def state(self) -> str:
        said = "\0".join((self._entry.front.name, self._entry.front.description, *self._entry.files))
        return hashlib.sha256(said.encode()).hexdigest()

    def names(self) -> tuple[str, ...] | None:
        return self._entry.files

    def files(self) -> tuple[str, ...]:
        return self._entry.files

    def read(self, path: str) -> bytes:
        if path not in self._entry.files:
            raise ResourceNotFoundError(f"no file {path!r}", path)
        limits, url = self._downloads.limits, self._url(path)
        copy = self._downloads.get(
            Request(url, limits.max_download_bytes, "max_download_bytes", limits.default_cache_seconds)
        )
        if copy is None:
            raise FetchError(f"{shown(url)} is listed in the index and is not there", code="http-status")
        self._note(path, copy)
        return copy.body

    def _url(self, path: str) -> str:
        return f"{self._entry.url}{quote(path, safe='/')}"

    def _note(self, path: str, copy: Copy) -> None:
        """Remember why a file is a copy of before, until it is read anew."""
        self._notes.pop(path, None)
        if copy.stale:
            self._notes[path] = ("stale-file", f"is a copy of before: {copy.stale}")
        if copy.older:
            self._notes[path] = ("rolled-back", f"is the newest copy that was seen: {copy.older}")

    def everything(self) -> Iterator[NewFile]:
        return (NewFile(path, self.read(path)) for path in self._entry.files)

    def issues(self) -> tuple[Issue, ...]:
        return tuple(
            Issue(code, path, message, self._url(path), 0, "warning")
            for path, (code, message) in sorted(self._notes.items())
        )

    def is_here(self) -> bool:
        """Whether its SKILL.md can be read without asking the server."""
        return self._downloads.is_fresh(self._url(_OWN))

"""The files of one skill of a site, fetched when they are needed: one file, an archive, or a list of files.

Where the index has a digest, the bytes are compared with it at each read, whether they come from the network or from
the cache. The files of a list have no digest. There the cache keeps the hash of what came, and compares its copy with
that.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from prowess.errors import FetchError, Issue, ResourceNotFoundError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.cached_fetcher import DownloadRequest
from prowess.fetch.url_policy import display_url
from prowess.files.write import NewFile
from prowess.names import SKILL_FILE
from prowess.skills.remote_files import RemoteFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.fetch.cached_fetcher import CachedFetcher
    from prowess.limits import Limits
    from prowess.sources.site_index import SiteEntry


class SiteFiles(RemoteFiles):
    """The files of a skill that a site announces."""

    def __init__(self, entry: SiteEntry, downloads: CachedFetcher) -> None:
        self._entry = entry
        self._fetcher = downloads

    @property
    def location(self) -> str:
        return self._entry.location

    @property
    def limits(self) -> Limits:
        return self._fetcher.limits

    def is_in_cache(self) -> bool:
        """True when its SKILL.md can be read without asking the server."""
        raise NotImplementedError


def open_skill_files(entry: SiteEntry, downloads: CachedFetcher) -> SiteFiles:
    """Return the object that fetches the files of an announced skill."""
    if entry.files:
        return ListedFiles(entry, downloads)
    return PinnedArchive(entry, downloads) if entry.is_archive else PinnedFile(entry, downloads)


class PinnedFile(SiteFiles):
    """The files of a skill that is one SKILL.md with a digest in the index."""

    @property
    def state(self) -> str:
        return f"sha256:{self._entry.digest}"

    def known_files(self) -> tuple[str, ...] | None:
        return (SKILL_FILE,)

    def files(self) -> tuple[str, ...]:
        return (SKILL_FILE,)

    def read(self, path: str) -> bytes:
        if path != SKILL_FILE:
            raise ResourceNotFoundError(f"no file {path!r}", path)
        return self._fetch_bytes()

    def read_all(self) -> tuple[NewFile, ...]:
        return (NewFile(SKILL_FILE, self._fetch_bytes()),)

    def is_in_cache(self) -> bool:
        """True when its SKILL.md can be read without asking the server."""
        return self._fetcher.has_bytes(self._entry.digest)

    def _fetch_bytes(self) -> bytes:
        return self._fetcher.get_by_digest(self._entry.url, self._entry.digest, self._entry.size)


class PinnedArchive(PinnedFile):
    """The files of a skill that is an archive with a digest in the index; it is unpacked in memory at each read."""

    def __init__(self, entry: SiteEntry, downloads: CachedFetcher) -> None:
        super().__init__(entry, downloads)
        self._names: tuple[str, ...] | None = None

    def known_files(self) -> tuple[str, ...] | None:
        return self._names

    def is_in_cache(self) -> bool:
        """Always false: to know, one would have to unpack the archive, and a listing is not worth that."""
        return False

    def files(self) -> tuple[str, ...]:
        if self._names is None:
            self.read_all()
        return self._names or ()

    def read(self, path: str) -> bytes:
        # Unpacked at each read: the cache has the packed bytes, and unpacked they could be many in memory.
        for file in self.read_all():
            if file.path == path:
                return file.content
        raise ResourceNotFoundError(f"no file {path!r}", path)

    def read_all(self) -> tuple[NewFile, ...]:
        files = unpack(self._fetch_bytes(), name=self.location, limits=self._fetcher.limits)
        self._names = tuple(file.path for file in files)
        return files


class ListedFiles(SiteFiles):
    """The files of a skill that the index lists by name, each at its own URL."""

    def __init__(self, entry: SiteEntry, downloads: CachedFetcher) -> None:
        super().__init__(entry, downloads)
        self._notes: dict[str, tuple[str, str]] = {}

    @property
    def state(self) -> str:
        # Nothing but this is known before the files are fetched.
        said = "\0".join((self._entry.front.name, self._entry.front.description, *self._entry.files))
        return hashlib.sha256(said.encode()).hexdigest()

    def known_files(self) -> tuple[str, ...] | None:
        return self._entry.files

    def files(self) -> tuple[str, ...]:
        return self._entry.files

    def read(self, path: str) -> bytes:
        if path not in self._entry.files:
            raise ResourceNotFoundError(f"no file {path!r}", path)
        limits, url = self._fetcher.limits, self._file_url(path)
        copy = self._fetcher.get(
            DownloadRequest(url, limits.max_download_bytes, "max_download_bytes", limits.default_cache_seconds)
        )
        if copy is None:
            raise FetchError(f"{display_url(url)} is listed in the index and is not there", code="http-status")
        self._notes.pop(path, None)  # the server may be back
        if copy.stale_reason:
            self._notes[path] = ("stale-file", f"is a copy of before: {copy.stale_reason}")
        if copy.rollback_reason:
            self._notes[path] = ("rolled-back", f"is the newest copy that was seen: {copy.rollback_reason}")
        return copy.body

    def _file_url(self, path: str) -> str:
        return f"{self._entry.url}{quote(path, safe='/')}"

    def read_all(self) -> Iterator[NewFile]:
        return (NewFile(path, self.read(path)) for path in self._entry.files)

    def issues(self) -> tuple[Issue, ...]:
        return tuple(
            Issue(code, path, message, self._file_url(path), 0, "warning")
            for path, (code, message) in sorted(self._notes.items())
        )

    def is_in_cache(self) -> bool:
        """True when its SKILL.md can be read without asking the server."""
        return self._fetcher.is_fresh(self._file_url(SKILL_FILE))

"""The source of skills that a site publishes below ``/.well-known/``, and the files of each, fetched when needed.

The newer kind of index is looked for first, then the older one. At first only the index is read. A skill is fetched
when its instructions or files are needed. What cannot be fetched is an issue of the catalogue, so a site that cannot be
reached hides no skill of another source.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from prowess.errors import FetchError, Issue, ResourceNotFoundError, SkillError, SourceError
from prowess.fetch.archive.unpack import unpack
from prowess.fetch.cache import Cache
from prowess.fetch.cached_fetcher import CachedFetcher, DownloadRequest
from prowess.fetch.client import UNREACHABLE_CODES, Fetcher
from prowess.fetch.signers import check_signers
from prowess.fetch.url_policy import UrlPolicy, check_headers, display_url, parse_origin
from prowess.files.write import NewFile
from prowess.format.head import LoadPolicy
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.policy.files import current_policy
from prowess.skills.catalog import Catalog
from prowess.skills.explanation import Place
from prowess.skills.remote_files import RemoteFiles
from prowess.skills.skill import make_remote_skill
from prowess.skills.skill_files import SkillLocation
from prowess.sources.published.known_sites import KnownSites
from prowess.sources.published.reader import PublishedSite, WebSite
from prowess.sources.published.source import make_site_catalog
from prowess.sources.site_index import INDEX_PATHS, SiteIndex, list_states, read_index

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping
    from typing import Literal

    from prowess.fetch.cached_fetcher import Download
    from prowess.limits import Limits
    from prowess.literals import OnDuplicate
    from prowess.skills.skill import Skill
    from prowess.sources.site_index import SiteEntry


_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))


class UrlSource:
    """The skills of one site."""

    def __init__(
        self,
        base: str,
        *,
        prefetch: bool = False,
        allowed: UrlPolicy = UrlPolicy(),  # noqa: B008 - a frozen default
        headers: Mapping[str, str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        on_duplicate: OnDuplicate = "first",
        allow_rollback: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._address = base
        # This address is shown, kept and compared, so it is without the query, which may be a secret.
        self._base = base.partition("?")[0].rstrip("/")
        self._prefetch = prefetch
        self._allowed = allowed
        self._headers = headers
        self._cache_dir = cache_dir
        self._missing = missing
        self._on_duplicate: OnDuplicate = on_duplicate
        self._allow_rollback = allow_rollback
        self._limits = limits or DEFAULT_LIMITS
        self.published: PublishedSite | None = None
        """The site with its versions, after it was loaded and where ``prowess publish`` wrote it."""

    def __repr__(self) -> str:
        """Show the address, without the query and the headers, which may be secrets."""
        return f"Source.url({display_url(self._base)})"

    def load(self) -> Catalog:
        """Return the skills that the site announces now; ``issues`` says what could not be fetched.

        Raises ``SourceError`` for anything but a web address, ``PolicyError`` for one that the policy does not
        list or that is revoked, and ``FetchError`` when the index cannot be fetched and ``missing`` is ``"error"``.
        """
        policy = current_policy()
        policy.check_source(self._base)
        self._address, self._base = policy.mirror(self._address), policy.mirror(self._base)
        downloads = self._make_fetcher(self._allowed._replace(check=policy.check_source))
        try:
            site = self._find_known_site(downloads)
            index, notes = self._fetch_index(downloads) if site is None else (SiteIndex((), ()), [])
            if index.is_published:
                site = self._make_published(downloads)
            self.published = site
            if site is not None:
                return make_site_catalog(site, site.select(), prefetch=self._prefetch)
            check_signers(policy, None, self._base)  # what another tool published has no signature
        except FetchError as error:
            if self._missing == "error":
                raise
            issue = Issue(error.code, "", error.message, error.path or self._base)
            return Catalog(issues=[issue], places=[Place(self._base, state="not fetched")])
        notes += index.issues
        skills = [self._make_skill(entry, downloads, notes) for entry in index.entries]
        return Catalog(skills, self._on_duplicate, issues=notes, places=[Place(self._base, found=len(skills))])

    def _find_known_site(self, downloads: CachedFetcher) -> PublishedSite | None:
        # Whoever changes the files of a site must not be able to take its root away unseen.
        return self._make_published(downloads) if KnownSites().find(self._base) is not None else None

    def _make_published(self, downloads: CachedFetcher) -> PublishedSite:
        return PublishedSite(WebSite(self._base, downloads), self._limits, allow_rollback=self._allow_rollback)

    def _make_fetcher(self, allowed: UrlPolicy) -> CachedFetcher:
        if self._missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {self._missing!r}")
        try:
            fetcher = Fetcher(self._address, allowed, self._limits, check_headers(self._headers))
        except FetchError as error:
            raise SourceError(error.message, code=error.code) from None
        if "#" in self._address:
            raise SourceError(f"{display_url(self._base)} has a fragment", code="bad-address")
        return CachedFetcher(fetcher, Cache(self._cache_dir), self._limits, allow_rollback=self._allow_rollback)

    # -- the index ---------------------------------------------------------------------------------------------------

    def _fetch_index(self, downloads: CachedFetcher) -> tuple[SiteIndex, list[Issue]]:
        """Return the first index of the site that can be read, and the issues that were met on the way."""
        notes: list[Issue] = []
        if not downloads.cache.is_usable():
            message = "cannot be written to by its owner alone, so nothing is kept"
            notes.append(Issue("cache-unusable", "", message, downloads.cache.folder, 0, "warning"))
        for place in INDEX_PATHS:
            copy = self._download_index(place, downloads)
            if copy is None:
                continue
            try:
                index = read_index(copy.body, copy.url, self._limits, downloads.fetcher.check_url)
            except FetchError as error:
                if error.code != "unknown-schema":
                    raise
                # A site may publish a newer index beside an older one that we can read.
                notes.append(Issue(error.code, "", error.message, copy.url, 0, "warning"))
                continue
            if copy.stale_reason:
                message = f"is an earlier version that the site announced: {copy.stale_reason}"
                notes.append(Issue("stale-index", "", message, copy.url, 0, "warning"))
            if copy.rollback_reason:
                message = f"is the newest that was seen, since the site went back: {copy.rollback_reason}"
                notes.append(Issue("rolled-back", "", message, copy.url, 0, "warning"))
            return index, notes
        # An index of an unknown version explains more than none.
        code = next((note.code for note in notes if note.code == "unknown-schema"), "no-index")
        raise FetchError(f"{display_url(self._base)} publishes no index of skills", self._base, code)

    def _download_index(self, place: str, downloads: CachedFetcher) -> Download | None:
        """Return an index, or ``None`` where the site has none.

        While the server cannot be reached, the kept copy of any version is returned.
        """
        try:
            copy = downloads.get(self._make_request(place))
        except FetchError as error:
            if error.code not in UNREACHABLE_CODES:
                raise
            copies = (downloads.get_stale(self._make_request(other), error) for other in INDEX_PATHS)
            kept = next((copy for copy in copies if copy is not None), None)
            if kept is None:
                raise
            return kept
        # Many sites answer every unknown address with a page for people.
        return copy if copy is not None and copy.media_type not in _HTML_TYPES else None

    def _make_request(self, place: str) -> DownloadRequest:
        limits = self._limits
        states_of = partial(list_states, limits=limits)
        return DownloadRequest(f"{self._base}{place}", limits.max_index_bytes, "max_index_bytes", 0, states_of)

    # -- skills ------------------------------------------------------------------------------------------------------

    def _make_skill(self, entry: SiteEntry, downloads: CachedFetcher, notes: list[Issue]) -> Skill:
        """Return the skill with the fields of the index, or with those of its file where a copy of it is here."""
        contents = _open_skill_files(entry, downloads)
        text = _prefetch_files(contents, notes) if self._prefetch else None
        virtual = f"{parse_origin(self._base).host}{urlsplit(self._base).path}/{entry.front.name}"
        policy = LoadPolicy(limits=self._limits)
        home = SkillLocation(file=SKILL_FILE, policy=policy, origin="url", virtual_path=virtual, files=contents)
        skill = make_remote_skill(home, entry.front, entry.issues)
        try:
            if text is None and not self._prefetch and contents.is_in_cache():
                text = contents.read(SKILL_FILE)
            # The file has fields that an index does not announce.
            return skill if text is None else skill.load_fetched(text, contents).skill
        except SkillError:
            return skill  # a bad copy hides no skill: whoever loads it gets the error


def _prefetch_files(contents: _SiteFiles, notes: list[Issue]) -> bytes | None:
    """Fetch every file of a skill; return its SKILL.md, or ``None`` and add an issue when a file cannot be fetched."""
    try:
        found = [file.content for file in contents.read_all() if file.path == SKILL_FILE]
    except SkillError as error:
        message = f"cannot be fetched: {error.message}"
        notes.append(Issue(error.code, "", message, contents.location, 0, "warning"))
        return None
    return found[0] if found else None


class _SiteFiles(RemoteFiles):
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
        """Return whether its SKILL.md can be read without asking the server."""
        raise NotImplementedError


def _open_skill_files(entry: SiteEntry, downloads: CachedFetcher) -> _SiteFiles:
    """Return the object that fetches the files of an announced skill."""
    if entry.files:
        return _ListedFiles(entry, downloads)
    return _PinnedArchive(entry, downloads) if entry.is_archive else _PinnedFile(entry, downloads)


class _PinnedFile(_SiteFiles):
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
        """Return whether its SKILL.md can be read without asking the server."""
        return self._fetcher.has_bytes(self._entry.digest)

    def _fetch_bytes(self) -> bytes:
        return self._fetcher.get_by_digest(self._entry.url, self._entry.digest, self._entry.size)


class _PinnedArchive(_PinnedFile):
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


class _ListedFiles(_SiteFiles):
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
            raise FetchError(f"{display_url(url)} is listed in the index, but does not exist", code="http-status")
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
        """Return whether its SKILL.md can be read without asking the server."""
        return self._fetcher.is_fresh(self._file_url(SKILL_FILE))

"""Skills that a site publishes under a well-known address.

The newer index is looked for first, then the older one; only what they announce is read at first, and a skill is
fetched when its instructions or files are asked for. What cannot be had is an issue of the catalogue, so a site that
is away hides no skill of another source.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from prowess.errors import FetchError, Issue, SkillError, SourceError
from prowess.fetch.cache import Cache
from prowess.fetch.client import AWAY, Fetcher
from prowess.fetch.http_cache import Downloads, Request
from prowess.fetch.url_policy import Allowed, checked_headers, origin_of, shown
from prowess.limits import DEFAULT_LIMITS
from prowess.model import Place
from prowess.skills.catalog import Catalog
from prowess.skills.location import Home
from prowess.skills.skill import announced
from prowess.sources.site_files import contents_of
from prowess.sources.site_index import PLACES, index_states, read_index
from prowess.spec.document import Policy

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Literal

    from prowess.fetch.http_cache import Copy
    from prowess.limits import Limits
    from prowess.model import OnDuplicate
    from prowess.skills.skill import Skill
    from prowess.sources.site_files import RemoteContents
    from prowess.sources.site_index import Entry, Index

_OWN = "SKILL.md"
_HTML = frozenset(("text/html", "application/xhtml+xml"))


class UrlSource:
    """A site to ask."""

    def __init__(
        self,
        base: str,
        *,
        prefetch: bool = False,
        allowed: Allowed = Allowed(),  # noqa: B008 - a frozen default
        headers: Mapping[str, str] | None = None,
        cache_dir: str | os.PathLike[str] | None = None,
        missing: Literal["ignore", "error"] = "ignore",
        on_duplicate: OnDuplicate = "first",
        allow_rollback: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self._address = base
        # The query is no part of what is shown, kept or compared: ``Fetcher`` sends it.
        self._base = base.partition("?")[0].rstrip("/")
        self._prefetch = prefetch
        self._allowed = allowed
        self._headers = headers
        self._cache_dir = cache_dir
        self._missing = missing
        self._on_duplicate: OnDuplicate = on_duplicate
        self._allow_rollback = allow_rollback
        self._limits = limits or DEFAULT_LIMITS

    def __repr__(self) -> str:
        """The address; what goes with it stays unsaid."""
        return f"Source.url({shown(self._base)})"

    def load(self) -> Catalog:
        """What the site announces now; what cannot be had is in ``issues``, unless ``missing="error"``.

        Raises ``SourceError`` for an address that is none.
        """
        downloads = self._downloads()
        try:
            index, notes = self._index(downloads)
        except FetchError as error:
            if self._missing == "error":
                raise
            return self._nothing(error)
        notes += index.issues
        skills = [self._skill(entry, downloads, notes) for entry in index.entries]
        place = Place(self._base, found=len(skills))
        return Catalog(skills, self._on_duplicate, issues=notes, places=[place])

    def _downloads(self) -> Downloads:
        if self._missing not in {"ignore", "error"}:
            raise SourceError(f"missing must be 'ignore' or 'error', not {self._missing!r}")
        try:
            fetcher = Fetcher(self._address, self._allowed, self._limits, checked_headers(self._headers))
        except FetchError as error:
            raise SourceError(error.message, code=error.code) from None
        if "#" in self._address:
            raise SourceError(f"{shown(self._base)} has a fragment", code="bad-address")
        return Downloads(fetcher, Cache(self._cache_dir), self._limits, allow_rollback=self._allow_rollback)

    def _nothing(self, error: FetchError) -> Catalog:
        issue = Issue(error.code, "", error.message, error.path or self._base)
        return Catalog(issues=[issue], places=[Place(self._base, state="not fetched")])

    # -- the index ---------------------------------------------------------------------------------------------------

    def _index(self, downloads: Downloads) -> tuple[Index, list[Issue]]:
        """The first index that the site has and that can be read, with what was noticed on the way."""
        notes: list[Issue] = []
        if not downloads.cache.is_usable():
            message = "cannot be written to by its owner alone, so nothing is kept"
            notes.append(Issue("cache-unusable", "", message, downloads.cache.folder, 0, "warning"))
        for place in PLACES:
            copy = self._copy(place, downloads)
            if copy is None:
                continue
            try:
                index = read_index(copy.body, copy.url, self._limits, downloads.fetcher.check)
            except FetchError as error:
                if error.code != "unknown-schema":
                    raise
                notes.append(Issue(error.code, "", error.message, copy.url, 0, "warning"))
                continue
            if copy.stale:
                message = f"is what the site announced before: {copy.stale}"
                notes.append(Issue("stale-index", "", message, copy.url, 0, "warning"))
            if copy.older:
                message = f"is the newest that was seen, since the site went back: {copy.older}"
                notes.append(Issue("rolled-back", "", message, copy.url, 0, "warning"))
            return index, notes
        raise FetchError(f"{shown(self._base)} publishes no index of skills", self._base, _only(notes))

    def _copy(self, place: str, downloads: Downloads) -> Copy | None:
        """An index, or ``None`` where there is none; the one kept of any version while the server is away."""
        try:
            copy = downloads.get(self._request(place))
        except FetchError as error:
            if error.code not in AWAY:
                raise
            copies = (downloads.kept(self._request(other), error) for other in PLACES)
            kept = next((copy for copy in copies if copy is not None), None)
            if kept is None:
                raise
            return kept
        return copy if copy is not None and copy.media_type not in _HTML else None

    def _request(self, place: str) -> Request:
        limits = self._limits
        states_of = partial(index_states, limits=limits)
        return Request(f"{self._base}{place}", limits.max_index_bytes, "max_index_bytes", 0, states_of)

    # -- skills ------------------------------------------------------------------------------------------------------

    def _skill(self, entry: Entry, downloads: Downloads, notes: list[Issue]) -> Skill:
        """The skill as it is announced, or as its file says where a copy of that is here."""
        contents = contents_of(entry, downloads)
        failed = _prefetched(contents) if self._prefetch else []
        notes += failed
        virtual = f"{origin_of(self._base).host}{urlsplit(self._base).path}/{entry.front.name}"
        policy = Policy(limits=self._limits)
        home = Home(file=_OWN, policy=policy, origin="url", virtual=virtual, contents=contents)
        skill = announced(home, entry.front, entry.issues)
        if failed or not (self._prefetch or contents.is_here()):
            return skill
        try:
            return skill.load().skill
        except SkillError:
            return skill


def _only(notes: list[Issue]) -> str:
    """An index of an unknown version is a better reason than no index."""
    return next((note.code for note in notes if note.code == "unknown-schema"), "no-index")


def _prefetched(contents: RemoteContents) -> list[Issue]:
    """Fetch every file of a skill; one that cannot be had stays listed, with an issue."""
    try:
        for _ in contents.everything():
            pass
    except SkillError as error:
        return [Issue(error.code, "", f"cannot be fetched: {error.message}", contents.location, 0, "warning")]
    return []

"""Fetched or from the cache: a fresh copy is used as it is, an old one stands in for a server that is away."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import FetchError
from prowess.sources.addresses import shown
from prowess.sources.cache import Kept, sha256
from prowess.sources.fetching import AWAY

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.sources.cache import Cache
    from prowess.sources.fetching import Answer, Fetcher

_GONE = frozenset((404, 410))
_DIRECTIVE = re.compile(r'([a-z-]+)(?:\s*=\s*"?([^",\s]*)"?)?')


class Copy(NamedTuple):
    """What a URL gives: the bytes, the URL in the end, the media type where it is known, and why the copy is old."""

    body: bytes
    url: str
    media_type: str = ""
    stale: str = ""


class Downloads:
    """A fetcher with a cache."""

    def __init__(self, fetcher: Fetcher, cache: Cache, limits: Limits) -> None:
        self.fetcher = fetcher
        self.cache = cache
        self.limits = limits

    def get(self, url: str, most: int, *, bound: str, default_seconds: int) -> Copy | None:
        """What a URL gives now, or gave while that is fresh; ``None`` when the server has no such thing.

        ``default_seconds``: for how long an answer is fresh if the server does not say.
        """
        kept = self._record(url)
        body = self.cache.read(kept.digest, most) if kept is not None else None
        if kept is None or body is None:
            return self._fetched(url, self.fetcher.get(url, most, bound=bound), default_seconds)
        if kept.is_fresh(time.time(), self.limits):
            return Copy(body, kept.final_url)
        try:
            answer = self.fetcher.get(url, most, bound=bound, headers=_validators(kept))
        except FetchError as error:
            if error.code in AWAY:
                return Copy(body, kept.final_url, stale=error.message)
            raise
        if answer.status == 304:  # noqa: PLR2004 - not modified
            self._still_good(kept, answer, default_seconds)
            return Copy(body, kept.final_url)
        return self._fetched(url, answer, default_seconds)

    def _record(self, url: str) -> Kept | None:
        """What is kept of a URL; nothing where the site is asked with a query.

        What is asked with a query is not kept by its URL: the answers depend on the query, and no name or record in the
        cache may hold it, nor a hash of it, by which a guess could be confirmed.
        """
        return None if self.fetcher.has_query else self.cache.record(url)

    def kept(self, url: str, most: int) -> Copy | None:
        """The copy of a URL that is here, fresh or not."""
        kept = self._record(url)
        body = self.cache.read(kept.digest, most) if kept is not None else None
        return Copy(body, kept.final_url) if kept is not None and body is not None else None

    def is_fresh(self, url: str) -> bool:
        """Whether the copy that is here may be used without asking."""
        kept = self._record(url)
        if kept is None or not kept.is_fresh(time.time(), self.limits):
            return False
        return self.cache.read(kept.digest, self.limits.max_download_bytes) is not None

    def is_here(self, digest: str) -> bool:
        """Whether the bytes of that SHA-256 are here."""
        return self.cache.read(digest, self.limits.max_download_bytes) is not None

    def pinned(self, url: str, digest: str, size: int | None = None) -> bytes:
        """The bytes of a URL, which must have that SHA-256; from the cache if they are there and still right."""
        most = self.limits.max_download_bytes
        body = self.cache.read(digest, most)
        if body is None:
            answer = self.fetcher.get(url, most, bound="max_download_bytes")
            if answer.status in _GONE:
                raise FetchError(f"{shown(url)} is answered with status {answer.status}", code="http-status")
            body = answer.body
            _check(url, body, digest)
            if not _freshness(answer.headers.get("cache-control", ""), 0)[1]:
                self.cache.write(body)
        if size is not None and len(body) != size:
            message = f"{shown(url)} has {len(body)} bytes; the index says {size}"
            raise FetchError(message, code="digest-mismatch")
        return body

    def _fetched(self, url: str, answer: Answer, default_seconds: int) -> Copy | None:
        if answer.status in _GONE:
            self.cache.forget(url)
            return None
        if answer.status != 200:  # noqa: PLR2004 - not modified, though nobody asked for that
            raise FetchError(f"{shown(url)} is answered with status {answer.status}", code="http-status")
        seconds, secret = _freshness(answer.headers.get("cache-control", ""), default_seconds)
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if secret:
            self.cache.forget(url)
        elif not self.fetcher.has_query:
            self._keep(url, answer, seconds)
        return Copy(answer.body, answer.url, media_type)

    def _keep(self, url: str, answer: Answer, seconds: int) -> None:
        now = time.time()
        kept = Kept(
            url,
            answer.url,
            self.cache.write(answer.body),
            len(answer.body),
            now,
            now + min(seconds, self.limits.max_cache_seconds),
            answer.headers.get("etag", ""),
            answer.headers.get("last-modified", ""),
        )
        self.cache.keep(kept)

    def _still_good(self, kept: Kept, answer: Answer, default_seconds: int) -> None:
        seconds, _ = _freshness(answer.headers.get("cache-control", ""), default_seconds)
        now = time.time()
        fresh_until = now + min(seconds, self.limits.max_cache_seconds)
        self.cache.keep(replace(kept, stored_at=now, fresh_until=fresh_until))


def _check(url: str, body: bytes, digest: str) -> None:
    found = sha256(body)
    if found != digest:
        message = f"{shown(url)} has the SHA-256 {found}; the index announces {digest}"
        raise FetchError(message, code="digest-mismatch")


def _validators(kept: Kept) -> dict[str, str]:
    pairs = {"If-None-Match": kept.etag, "If-Modified-Since": kept.last_modified}
    return {name: value for name, value in pairs.items() if value}


def _freshness(cache_control: str, default: int) -> tuple[int, bool]:
    """For how many seconds an answer is fresh, and whether it must not be kept at all."""
    found = dict(_DIRECTIVE.findall(cache_control.lower()))
    if "no-store" in found or "no-cache" in found:
        return 0, "no-store" in found
    age = found.get("max-age", "")
    return (int(age[:12]) if age.isascii() and age.isdigit() else default), False

"""Fetched or from the cache: a fresh copy is used as it is, an old one stands in for a server that is away."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import FetchError
from prowess.fetch.cache import CacheRecord, sha256_hex, short_hash
from prowess.fetch.client import UNREACHABLE_CODES
from prowess.fetch.url_policy import display_url
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from prowess.fetch.cache import Cache
    from prowess.fetch.client import Fetcher, HttpResponse
    from prowess.limits import Limits

_GONE_STATUSES = frozenset((404, 410))
_DIRECTIVE = re.compile(r'([a-z-]+)(?:\s*=\s*"?([^",\s]*)"?)?')


class Download(NamedTuple):
    """What a URL gives: the bytes, the URL in the end, and the media type where it is known.

    ``stale_reason`` says why the bytes are a copy of before, ``rollback_reason`` why they are the newest seen in place
    of what came.
    """

    body: bytes
    url: str
    media_type: str = ""
    stale_reason: str = ""
    rollback_reason: str = ""


class DownloadRequest(NamedTuple):
    """What is asked for, and how the answer is judged."""

    url: str
    max_bytes: int
    limit_name: str
    """The name of the limit that ``max_bytes`` is."""
    default_seconds: int
    """For how long an answer is fresh if the server does not say."""
    states_of: Callable[[bytes], tuple[str, ...] | None] = lambda _: ()
    """What an answer says of each of its parts, a text each; ``None`` when it is not what was asked for at all."""

    def hash_parts(self, body: bytes) -> frozenset[str] | None:
        """What the bytes, and each of their parts, are recognised by; ``None`` when they are not what was asked for."""
        states = self.states_of(body)
        return None if states is None else frozenset((sha256_hex(body)[:16], *map(short_hash, states)))


class CachedFetcher:
    """A fetcher with a cache, in which the newest that each URL gave is known.

    What a URL gives is old news when it, or a part of it, was replaced by something else before, or when its date
    (``Last-Modified``) went back; then the newest seen is given in its place, unless ``allow_rollback``.
    """

    def __init__(self, fetcher: Fetcher, cache: Cache, limits: Limits, *, allow_rollback: bool = False) -> None:
        self.fetcher = fetcher
        self.cache = cache
        self.limits = limits
        self._allow_rollback = allow_rollback

    def get(self, request: DownloadRequest) -> Download | None:
        """What a URL gives now, or gave while that is fresh; ``None`` when the server has no such thing.

        Raises ``FetchError`` when neither the server nor a copy that is young enough gives anything.
        """
        kept, body = self._read_cached(request)
        if kept is None or body is None or kept.is_gone:
            return self._accept_response(request, self._send_request(request, {}))
        if kept.is_fresh(time.time(), self.limits):
            return Download(body, kept.final_url)
        try:
            # Without validators where going back is accepted: a file with an earlier date is "not modified since".
            answer = self._send_request(request, {} if self._allow_rollback else _make_validators(kept))
        except FetchError as error:
            if error.code in UNREACHABLE_CODES:
                return self._use_stale(kept, body, error)
            raise
        if answer.status == 304:  # noqa: PLR2004 - not modified
            self._extend_freshness(kept, answer, request.default_seconds)
            return Download(body, kept.final_url)
        return self._accept_response(request, answer)

    def _read_cached(self, request: DownloadRequest) -> tuple[CacheRecord | None, bytes | None]:
        kept = self._read_record(request.url)
        return kept, self.cache.read(kept.digest, request.max_bytes) if kept is not None else None

    def _send_request(self, request: DownloadRequest, validators: dict[str, str]) -> HttpResponse:
        return self.fetcher.get(request.url, request.max_bytes, bound=request.limit_name, headers=validators)

    def get_stale(self, request: DownloadRequest, error: FetchError) -> Download | None:
        """The copy of a URL that stands in while the server is away, as ``error`` says; ``None`` when none is here."""
        kept, body = self._read_cached(request)
        return None if kept is None or body is None or kept.is_gone else self._use_stale(kept, body, error)

    def _use_stale(self, kept: CacheRecord, body: bytes, error: FetchError) -> Download:
        age = time.time() - kept.stored_at
        if age > self.limits.max_stale_seconds:
            message = f"{error.message}; the copy that is here is {_format_days(age)} old, which is too old to stand in"
            raise FetchError(message, error.path, "copy-too-old")
        return Download(body, kept.final_url, stale_reason=error.message)

    def _read_record(self, url: str) -> CacheRecord | None:
        """What is kept of a URL; nothing where the site is asked with a query.

        What is asked with a query is not kept by its URL: the answers depend on the query, and no name or record in the
        cache may hold it, nor a hash of it, by which a guess could be confirmed.
        """
        return None if self.fetcher.has_query else self.cache.read_record(url)

    def is_fresh(self, url: str) -> bool:
        """Whether the copy that is here may be used without asking."""
        kept = self._read_record(url)
        if kept is None or not kept.is_fresh(time.time(), self.limits):
            return False
        return self.cache.read(kept.digest, self.limits.max_download_bytes) is not None

    def is_cached(self, digest: str) -> bool:
        """Whether the bytes of that SHA-256 are here."""
        return self.cache.read(digest, self.limits.max_download_bytes) is not None

    def get_pinned(self, url: str, digest: str, size: int | None = None) -> bytes:
        """The bytes of a URL, which must have that SHA-256; from the cache if they are there and still right."""
        most = self.limits.max_download_bytes
        body = self.cache.read(digest, most)
        if body is None:
            answer = self.fetcher.get(url, most, bound="max_download_bytes")
            if answer.status in _GONE_STATUSES:
                raise FetchError(f"{display_url(url)} is answered with status {answer.status}", code="http-status")
            body = answer.body
            _check_digest(url, body, digest)
            if not _parse_freshness(answer.headers.get("cache-control", ""), 0)[1]:
                self.cache.write(body)
        if size is not None and len(body) != size:
            message = f"{display_url(url)} has {len(body)} bytes; the index says {size}"
            raise FetchError(message, code="digest-mismatch")
        return body

    def _accept_response(self, request: DownloadRequest, answer: HttpResponse) -> Download | None:
        url = request.url
        if answer.status in _GONE_STATUSES:
            self.cache.mark_gone(url)
            return None
        if answer.status != 200:  # noqa: PLR2004 - not modified, though nobody asked for that
            raise FetchError(f"{display_url(url)} is answered with status {answer.status}", code="http-status")
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        came = Download(answer.body, answer.url, media_type)
        marks = request.hash_parts(answer.body)
        if marks is None or self.fetcher.has_query:  # nothing to compare, and nothing to remember
            return came
        kept, body = self._read_cached(request)
        older = _find_rollback(kept, answer, marks) if kept is not None and not self._allow_rollback else ""
        if kept is not None and older:
            return self._use_newest(kept, body, older)
        seconds, secret = _parse_freshness(answer.headers.get("cache-control", ""), request.default_seconds)
        if secret:
            self.cache.mark_gone(url)
        else:
            before = (request.hash_parts(body) if body is not None else None) or frozenset()
            self._store_response(url, answer, seconds, self._list_replaced(kept, before, marks))
        return came

    def _use_newest(self, kept: CacheRecord, body: bytes | None, older: str) -> Download:
        """The newest seen, in place of old news; raises ``FetchError`` when it is not here any more, or too old."""
        age = time.time() - kept.stored_at
        if body is None or age > self.limits.max_stale_seconds:
            here = (
                "is not here any more" if body is None else f"is {_format_days(age)} old, which is too old to stand in"
            )
            message = f"{display_url(kept.url)} went back: {older}; the newest that was seen {here}"
            raise FetchError(message, code="rolled-back")
        return Download(body, kept.final_url, rollback_reason=older)

    def _list_replaced(self, kept: CacheRecord | None, before: frozenset[str], now: frozenset[str]) -> tuple[str, ...]:
        """The marks of what was replaced so far, the latest last; of more than the limit the oldest are forgotten."""
        if kept is None:
            return ()
        whole = kept.digest[:16]
        # The mark of the whole comes last, so that it outlives those of its parts where there are too many of these.
        lately = (*sorted(before - {whole}), whole)
        earlier = (mark for mark in kept.replaced if mark not in lately)
        return tuple(mark for mark in (*earlier, *lately) if mark not in now)[-self.limits.max_replaced_marks :]

    def _store_response(self, url: str, answer: HttpResponse, seconds: int, replaced: tuple[str, ...]) -> None:
        now = time.time()
        kept = CacheRecord(
            url,
            answer.url,
            self.cache.write(answer.body),
            len(answer.body),
            now,
            now + min(seconds, self.limits.max_cache_seconds),
            answer.headers.get("etag", ""),
            answer.headers.get("last-modified", ""),
            replaced,
        )
        self.cache.write_record(kept)

    def _extend_freshness(self, kept: CacheRecord, answer: HttpResponse, default_seconds: int) -> None:
        seconds, _ = _parse_freshness(answer.headers.get("cache-control", ""), default_seconds)
        now = time.time()
        fresh_until = now + min(seconds, self.limits.max_cache_seconds)
        self.cache.write_record(replace(kept, stored_at=now, fresh_until=fresh_until))


def _check_digest(url: str, body: bytes, digest: str) -> None:
    found = sha256_hex(body)
    if found != digest:
        message = f"{display_url(url)} has the SHA-256 {found}; the index announces {digest}"
        raise FetchError(message, code="digest-mismatch")


def _find_rollback(kept: CacheRecord, answer: HttpResponse, marks: frozenset[str]) -> str:
    """Why an answer is older than the newest that was seen; ``""`` when nothing says so."""
    if kept.digest[:16] in marks:
        return ""
    if not marks.isdisjoint(kept.replaced):
        return "what it gives was replaced before"
    before, now = _parse_date(kept.last_modified), _parse_date(answer.headers.get("last-modified", ""))
    if before is not None and now is not None and now < before:
        return f"its date went back from {before:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M}"
    return ""


def _parse_date(written: str) -> datetime | None:
    """A date of HTTP; ``None`` for what is none, or has no time zone."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - only where answers differ

    try:
        date = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


def _format_days(seconds: float) -> str:
    return format_count(int(seconds // 86_400), "day")


def _make_validators(kept: CacheRecord) -> dict[str, str]:
    pairs = {"If-None-Match": kept.etag, "If-Modified-Since": kept.last_modified}
    return {name: value for name, value in pairs.items() if value}


def _parse_freshness(cache_control: str, default: int) -> tuple[int, bool]:
    """For how many seconds an answer is fresh, and whether it must not be kept at all."""
    found = dict(_DIRECTIVE.findall(cache_control.lower()))
    if "no-store" in found or "no-cache" in found:
        return 0, "no-store" in found
    age = found.get("max-age", "")
    return (int(age[:12]) if age.isascii() and age.isdigit() else default), False

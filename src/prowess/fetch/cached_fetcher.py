"""HTTP requests through the cache, with protection against servers that go back to old content.

A fresh copy is used without asking. An old copy is used while the server cannot be reached.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import FetchError
from prowess.fetch.cache import CacheRecord, sha256_hex, short_hash
from prowess.fetch.client import UNREACHABLE_CODES
from prowess.fetch.url_policy import display_url
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from prowess.fetch.cache import Cache
    from prowess.fetch.client import Fetcher, HttpResponse
    from prowess.limits import Limits

# Every other status may pass; these two say that there is no such thing.
_GONE_STATUSES = frozenset((404, 410))
_DIRECTIVE = re.compile(r'([a-z-]+)(?:\s*=\s*"?([^",\s]*)"?)?')


class Download(NamedTuple):
    """What a URL gives: the bytes, the URL after redirects, and the media type where it is known.

    ``stale_reason`` says why the bytes are an old copy: the server could not be reached. ``rollback_reason`` says why
    the bytes are the newest that were seen: the server sent older ones.
    """

    body: bytes
    url: str
    media_type: str = ""
    stale_reason: str = ""
    rollback_reason: str = ""


class DownloadRequest(NamedTuple):
    """What to ask for, and how to judge the answer."""

    url: str
    max_bytes: int
    limit_name: str
    """The field of ``Limits`` that ``max_bytes`` comes from, for messages."""
    default_seconds: int
    """How long an answer is fresh when the server does not say."""
    states_of: Callable[[bytes], tuple[str, ...] | None] = lambda _: ()
    """Splits an answer into a string for each of its parts; ``None`` when it is not what was asked for at all."""

    def hash_parts(self, body: bytes) -> frozenset[str] | None:
        """Return short hashes of the bytes and of their parts; ``None`` when they are not what was asked for."""
        states = self.states_of(body)
        return None if states is None else frozenset((sha256_hex(body)[:16], *map(short_hash, states)))


class CachedFetcher:
    """A fetcher with a cache that knows the newest answer of each URL.

    An answer counts as a rollback when it, or a part of it, was already replaced by something else, or when its date
    (``Last-Modified``) is earlier than before. Whoever controls an old copy of a site could bring back a skill with a
    known flaw in this way. So the newest answer is used instead, unless ``allow_rollback`` is set.
    """

    def __init__(self, fetcher: Fetcher, cache: Cache, limits: Limits, *, allow_rollback: bool = False) -> None:
        self.fetcher = fetcher
        self.cache = cache
        self.limits = limits
        self._allow_rollback = allow_rollback

    def get(self, request: DownloadRequest) -> Download | None:
        """Return what a URL gives, from the cache while that is fresh; ``None`` when the server has no such thing.

        Raises ``FetchError`` when the server fails and no copy is young enough.
        """
        record, body = self._read_cache(request)
        if record is None or body is None or record.is_gone:  # without bytes, a "not modified" would be no use
            return self._accept_response(request, self._send_request(request, {}))
        if record.is_fresh(time.time(), self.limits):
            return Download(body, record.final_url)
        try:
            # No validators where a rollback is allowed: to "modified since?" a server with an older file answers "no".
            response = self._send_request(request, {} if self._allow_rollback else _make_validators(record))
        except FetchError as error:
            if error.code in UNREACHABLE_CODES:
                return self._use_stale(record, body, error)
            raise
        if response.status == HTTPStatus.NOT_MODIFIED:
            self._extend_freshness(record, response, request.default_seconds)
            return Download(body, record.final_url)
        return self._accept_response(request, response)

    def _read_cache(self, request: DownloadRequest) -> tuple[CacheRecord | None, bytes | None]:
        record = self._read_record(request.url)
        if record is not None:
            self.fetcher.check_url(record.final_url)  # a policy may be newer than the copy
        return record, self.cache.read(record.digest, request.max_bytes) if record is not None else None

    def _send_request(self, request: DownloadRequest, validators: dict[str, str]) -> HttpResponse:
        return self.fetcher.get(request.url, request.max_bytes, limit_name=request.limit_name, headers=validators)

    def get_stale(self, request: DownloadRequest, error: FetchError) -> Download | None:
        """Return the copy of a URL for use while the server cannot be reached; ``None`` without a copy.

        ``error`` is the failure of the server. Raises ``FetchError`` when the copy is too old.
        """
        record, body = self._read_cache(request)
        return None if record is None or body is None or record.is_gone else self._use_stale(record, body, error)

    def _use_stale(self, record: CacheRecord, body: bytes, error: FetchError) -> Download:
        age = time.time() - record.stored_at
        if age > self.limits.max_stale_seconds:
            message = f"{error.message}; the copy here is {_format_days(age)} old, which is too old"
            raise FetchError(message, error.path, "copy-too-old")
        return Download(body, record.final_url, stale_reason=error.message)

    def _read_record(self, url: str) -> CacheRecord | None:
        """Return the record of a URL; ``None`` where the site is asked with a query.

        A query is often a secret, and the answers depend on it. No file name and no record in the cache may hold it,
        nor a hash of it, because a hash would let someone confirm a guess.
        """
        return None if self.fetcher.has_query else self.cache.read_record(url)

    def is_fresh(self, url: str) -> bool:
        """Return whether the copy of a URL is in the cache and may be used without asking."""
        record = self._read_record(url)
        if record is None or not record.is_fresh(time.time(), self.limits):
            return False
        return self.cache.read(record.digest, self.limits.max_download_bytes) is not None

    def has_bytes(self, digest: str) -> bool:
        """Return whether the bytes with that SHA-256 are in the cache."""
        return self.cache.read(digest, self.limits.max_download_bytes) is not None

    def get_by_digest(self, url: str, digest: str, size: int | None = None) -> bytes:
        """Return the bytes of a URL that have the given SHA-256, from the cache when they are there.

        Raises ``FetchError`` when the server has no such file, or when the file has another hash or size.
        """
        max_bytes = self.limits.max_download_bytes
        body = self.cache.read(digest, max_bytes)
        if body is None:
            response = self.fetcher.get(url, max_bytes, limit_name="max_download_bytes")
            if response.status in _GONE_STATUSES:
                raise FetchError(f"{display_url(url)} is answered with status {response.status}", code="http-status")
            body = response.body
            actual = sha256_hex(body)
            if actual != digest:
                raise FetchError(
                    f"{display_url(url)} has the SHA-256 {actual}; the index announces {digest}", code="digest-mismatch"
                )
            # Bytes that are named by their hash are always fresh; only "no-store" counts.
            if not _parse_freshness(response.headers.get("cache-control", ""), 0)[1]:
                self.cache.write(body)
        if size is not None and len(body) != size:
            raise FetchError(f"{display_url(url)} has {len(body)} bytes; the index says {size}", code="digest-mismatch")
        return body

    def _accept_response(self, request: DownloadRequest, response: HttpResponse) -> Download | None:
        """Return what came, or the newest that was seen when what came is older; keep what came for later."""
        url = request.url
        if response.status in _GONE_STATUSES:
            self.cache.mark_gone(url)
            return None
        if response.status != HTTPStatus.OK:  # not modified, though nobody asked for that
            raise FetchError(f"{display_url(url)} is answered with status {response.status}", code="http-status")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        download = Download(response.body, response.url, media_type)
        hashes = request.hash_parts(response.body)
        if hashes is None or self.fetcher.has_query:  # nothing to compare, and nothing to remember
            return download
        record, body = self._read_cache(request)
        reason = _find_rollback(record, response, hashes) if record is not None and not self._allow_rollback else ""
        if record is not None and reason:
            return self._use_newest(record, body, reason)
        seconds, is_secret = _parse_freshness(response.headers.get("cache-control", ""), request.default_seconds)
        if is_secret:  # no-store: the server forbids to keep it
            self.cache.mark_gone(url)
        else:
            before = (request.hash_parts(body) if body is not None else None) or frozenset()
            self._store_response(url, response, seconds, self._merge_hashes(record, before, hashes))
        return download

    def _use_newest(self, record: CacheRecord, body: bytes | None, reason: str) -> Download:
        """Return the newest bytes that were seen, in place of older ones.

        Raises ``FetchError`` when they are no longer in the cache, or too old.
        """
        age = time.time() - record.stored_at
        if body is None or age > self.limits.max_stale_seconds:
            state = "is not here any more" if body is None else f"is {_format_days(age)} old, which is too old"
            raise FetchError(
                f"{display_url(record.url)} went back: {reason}; the newest that was seen {state}", code="rolled-back"
            )
        return Download(body, record.final_url, rollback_reason=reason)

    def _merge_hashes(self, record: CacheRecord | None, before: frozenset[str], now: frozenset[str]) -> tuple[str, ...]:
        """Return the hashes of what was replaced so far, the latest last. Past the limit, the oldest are forgotten."""
        if record is None:
            return ()
        whole = record.digest[:16]
        # The hash of the whole comes last, so that the limit drops those of its parts first.
        latest = (*sorted(before - {whole}), whole)
        earliest = (known_hash for known_hash in record.replaced if known_hash not in latest)
        return tuple(known_hash for known_hash in (*earliest, *latest) if known_hash not in now)[
            -self.limits.max_replaced_marks :
        ]

    def _store_response(self, url: str, response: HttpResponse, seconds: int, replaced: tuple[str, ...]) -> None:
        now = time.time()
        record = CacheRecord(
            url,
            response.url,
            self.cache.write(response.body),
            len(response.body),
            now,
            now + min(seconds, self.limits.max_cache_seconds),
            response.headers.get("etag", ""),
            response.headers.get("last-modified", ""),
            replaced,
        )
        self.cache.write_record(record)
        self.cache.prune_daily(self.limits)

    def _extend_freshness(self, record: CacheRecord, response: HttpResponse, default_seconds: int) -> None:
        seconds, _ = _parse_freshness(response.headers.get("cache-control", ""), default_seconds)
        now = time.time()
        fresh_until = now + min(seconds, self.limits.max_cache_seconds)
        self.cache.write_record(replace(record, stored_at=now, fresh_until=fresh_until))


def _find_rollback(record: CacheRecord, response: HttpResponse, hashes: frozenset[str]) -> str:
    """Return why a response is older than the newest that was seen; ``""`` when it is not."""
    if record.digest[:16] in hashes:
        return ""  # the newest bytes again
    if not hashes.isdisjoint(record.replaced):
        return "what it gives was replaced before"
    before, now = _parse_date(record.last_modified), _parse_date(response.headers.get("last-modified", ""))
    if before is not None and now is not None and now < before:
        return f"its date went back from {before:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M}"
    return ""


def _parse_date(written: str) -> datetime | None:
    """Parse a date of HTTP; return ``None`` for a string that is not a date, or has no time zone."""
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


def _format_days(seconds: float) -> str:
    return format_count(int(seconds // 86_400), "day")


def _make_validators(record: CacheRecord) -> dict[str, str]:
    """Return the headers with which a server answers 304 when its file is still the one in the cache."""
    pairs = {"If-None-Match": record.etag, "If-Modified-Since": record.last_modified}
    return {name: value for name, value in pairs.items() if value}


def _parse_freshness(cache_control: str, default: int) -> tuple[int, bool]:
    """Return for how many seconds a response is fresh, and whether it must not be kept at all."""
    directives = dict(_DIRECTIVE.findall(cache_control.lower()))
    if "no-store" in directives or "no-cache" in directives:
        return 0, "no-store" in directives
    age = directives.get("max-age", "")
    # Cut, because a server may send a number of any length, and Python refuses to convert thousands of digits.
    return (int(age[:12]) if age.isascii() and age.isdigit() else default), False

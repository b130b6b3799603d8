"""Fetched or from the cache: a fresh copy is used as it is, an old one stands in for a server that is away."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import FetchError
from prowess.fetch.cache import Kept, mark_of, sha256
from prowess.fetch.client import AWAY
from prowess.fetch.url_policy import shown
from prowess.spec.plural import counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from prowess.fetch.cache import Cache
    from prowess.fetch.client import Answer, Fetcher
    from prowess.limits import Limits

_GONE = frozenset((404, 410))
_DIRECTIVE = re.compile(r'([a-z-]+)(?:\s*=\s*"?([^",\s]*)"?)?')


class Copy(NamedTuple):
    """What a URL gives: the bytes, the URL in the end, and the media type where it is known.

    ``stale`` says why the bytes are a copy of before, ``older`` why they are the newest seen in place of what came.
    """

    body: bytes
    url: str
    media_type: str = ""
    stale: str = ""
    older: str = ""


class Request(NamedTuple):
    """What is asked for, and how the answer is judged."""

    url: str
    most: int
    bound: str
    """The name of the limit that ``most`` is."""
    default_seconds: int
    """For how long an answer is fresh if the server does not say."""
    states_of: Callable[[bytes], tuple[str, ...] | None] = lambda _: ()
    """What an answer says of each of its parts, a text each; ``None`` when it is not what was asked for at all."""

    def marks_of(self, body: bytes) -> frozenset[str] | None:
        """What the bytes, and each of their parts, are recognised by; ``None`` when they are not what was asked for."""
        states = self.states_of(body)
        return None if states is None else frozenset((sha256(body)[:16], *map(mark_of, states)))


class Downloads:
    """A fetcher with a cache, in which the newest that each URL gave is known.

    What a URL gives is old news when it, or a part of it, was replaced by something else before, or when its date
    (``Last-Modified``) went back; then the newest seen is given in its place, unless ``allow_rollback``.
    """

    def __init__(self, fetcher: Fetcher, cache: Cache, limits: Limits, *, allow_rollback: bool = False) -> None:
        self.fetcher = fetcher
        self.cache = cache
        self.limits = limits
        self._allow_rollback = allow_rollback

    def get(self, request: Request) -> Copy | None:
        """What a URL gives now, or gave while that is fresh; ``None`` when the server has no such thing.

        Raises ``FetchError`` when neither the server nor a copy that is young enough gives anything.
        """
        kept, body = self._copy(request)
        if kept is None or body is None or kept.is_gone:
            return self._fetched(request, self._answer(request, {}))
        if kept.is_fresh(time.time(), self.limits):
            return Copy(body, kept.final_url)
        try:
            # Without validators where going back is accepted: a file with an earlier date is "not modified since".
            answer = self._answer(request, {} if self._allow_rollback else _validators(kept))
        except FetchError as error:
            if error.code in AWAY:
                return self._stand_in(kept, body, error)
            raise
        if answer.status == 304:  # noqa: PLR2004 - not modified
            self._still_good(kept, answer, request.default_seconds)
            return Copy(body, kept.final_url)
        return self._fetched(request, answer)

    def _copy(self, request: Request) -> tuple[Kept | None, bytes | None]:
        kept = self._record(request.url)
        return kept, self.cache.read(kept.digest, request.most) if kept is not None else None

    def _answer(self, request: Request, validators: dict[str, str]) -> Answer:
        return self.fetcher.get(request.url, request.most, bound=request.bound, headers=validators)

    def kept(self, request: Request, error: FetchError) -> Copy | None:
        """The copy of a URL that stands in while the server is away, as ``error`` says; ``None`` when none is here."""
        kept, body = self._copy(request)
        return None if kept is None or body is None or kept.is_gone else self._stand_in(kept, body, error)

    def _stand_in(self, kept: Kept, body: bytes, error: FetchError) -> Copy:
        age = time.time() - kept.stored_at
        if age > self.limits.max_stale_seconds:
            message = f"{error.message}; the copy that is here is {_days(age)} old, which is too old to stand in"
            raise FetchError(message, error.path, "copy-too-old")
        return Copy(body, kept.final_url, stale=error.message)

    def _record(self, url: str) -> Kept | None:
        """What is kept of a URL; nothing where the site is asked with a query.

        What is asked with a query is not kept by its URL: the answers depend on the query, and no name or record in the
        cache may hold it, nor a hash of it, by which a guess could be confirmed.
        """
        return None if self.fetcher.has_query else self.cache.record(url)

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

    def _fetched(self, request: Request, answer: Answer) -> Copy | None:
        url = request.url
        if answer.status in _GONE:
            self.cache.forget(url)
            return None
        if answer.status != 200:  # noqa: PLR2004 - not modified, though nobody asked for that
            raise FetchError(f"{shown(url)} is answered with status {answer.status}", code="http-status")
        media_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        came = Copy(answer.body, answer.url, media_type)
        marks = request.marks_of(answer.body)
        if marks is None or self.fetcher.has_query:  # nothing to compare, and nothing to remember
            return came
        kept, body = self._copy(request)
        older = _why_older(kept, answer, marks) if kept is not None and not self._allow_rollback else ""
        if kept is not None and older:
            return self._newest(kept, body, older)
        seconds, secret = _freshness(answer.headers.get("cache-control", ""), request.default_seconds)
        if secret:
            self.cache.forget(url)
        else:
            before = (request.marks_of(body) if body is not None else None) or frozenset()
            self._keep(url, answer, seconds, self._replaced(kept, before, marks))
        return came

    def _newest(self, kept: Kept, body: bytes | None, older: str) -> Copy:
        """The newest seen, in place of old news; raises ``FetchError`` when it is not here any more, or too old."""
        age = time.time() - kept.stored_at
        if body is None or age > self.limits.max_stale_seconds:
            here = "is not here any more" if body is None else f"is {_days(age)} old, which is too old to stand in"
            message = f"{shown(kept.url)} went back: {older}; the newest that was seen {here}"
            raise FetchError(message, code="rolled-back")
        return Copy(body, kept.final_url, older=older)

    def _replaced(self, kept: Kept | None, before: frozenset[str], now: frozenset[str]) -> tuple[str, ...]:
        """The marks of what was replaced so far, the latest last; of more than the limit the oldest are forgotten."""
        if kept is None:
            return ()
        whole = kept.digest[:16]
        # The mark of the whole comes last, so that it outlives those of its parts where there are too many of these.
        lately = (*sorted(before - {whole}), whole)
        earlier = (mark for mark in kept.replaced if mark not in lately)
        return tuple(mark for mark in (*earlier, *lately) if mark not in now)[-self.limits.max_replaced_marks :]

    def _keep(self, url: str, answer: Answer, seconds: int, replaced: tuple[str, ...]) -> None:
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
            replaced,
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


def _why_older(kept: Kept, answer: Answer, marks: frozenset[str]) -> str:
    """Why an answer is older than the newest that was seen; ``""`` when nothing says so."""
    if kept.digest[:16] in marks:
        return ""
    if not marks.isdisjoint(kept.replaced):
        return "what it gives was replaced before"
    before, now = _date(kept.last_modified), _date(answer.headers.get("last-modified", ""))
    if before is not None and now is not None and now < before:
        return f"its date went back from {before:%Y-%m-%d %H:%M} to {now:%Y-%m-%d %H:%M}"
    return ""


def _date(written: str) -> datetime | None:
    """A date of HTTP; ``None`` for what is none, or has no time zone."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - only where answers differ

    try:
        date = parsedate_to_datetime(written)
    except (ValueError, TypeError, OverflowError):
        return None
    return date if date.tzinfo is not None else None


def _days(seconds: float) -> str:
    return counted(int(seconds // 86_400), "day")


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

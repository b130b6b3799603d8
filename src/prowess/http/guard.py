"""The application that stands before the HTTP server, and lets only allowed requests within the limits through."""

from __future__ import annotations

import asyncio
import math
import time
from typing import TYPE_CHECKING

from prowess.http.access import WRONG_TOKEN, Refusal, read_headers
from prowess.http.rate_limits import ClientRateLimiter, WrongTokens
from prowess.http.request_body import TOO_LARGE, BodyQuota, QuotaShare, read_body, replay_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.http.access import Access, App, Receive, Scope, Send
    from prowess.limits import Limits

_MAX_LENGTH_DIGITS = 20
_PLAIN_TEXT_HEADERS = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]


class RequestGuard:
    """An ASGI application that passes allowed requests on to another one, and refuses the rest."""

    def __init__(self, app: App, access: Access, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._rate_limiter = ClientRateLimiter(limits.max_http_requests)
        self._wrong_tokens = WrongTokens(limits.max_http_wrong_tokens, limits.max_http_token_wait_seconds, clock)
        self._body_quota = BodyQuota(limits.max_http_waiting_bytes)
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Access before limits: a stranger behind a shared address must not use up the requests of those who may ask.
        refusal = self._find_access_refusal(scope) or self._find_limit_refusal(scope)
        if refusal is not None:
            await _send_refusal(refusal, send)
        elif scope["method"] != "GET":
            await self._forward_with_body(scope, receive, send)
        else:
            self._streams += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._streams -= 1

    async def _forward_with_body(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on once its body is whole; a request that breaks off gets no answer."""
        with QuotaShare(self._body_quota) as share:
            try:
                async with asyncio.timeout(self._limits.max_http_body_seconds):
                    body = await read_body(receive, self._limits.max_http_body_bytes, share)
            except TimeoutError:
                body = Refusal(408, "the request takes too long")
            if isinstance(body, Refusal):
                await _send_refusal(body, send)
            elif body is not None:
                await self._app(scope, replay_body(body, receive), share.wrap_send(send))

    def _find_access_refusal(self, scope: Scope) -> Refusal | None:
        """Return why a client may not ask: ``Access`` refuses it, or its address has sent too many wrong tokens."""
        if self._access.token is None:
            return self._access.find_refusal(scope)
        address = _client_address(scope)
        wait = self._wrong_tokens.wait_seconds(address) if b"authorization" in read_headers(scope) else 0.0
        if wait:
            return _make_guess_refusal(wait)
        refusal = self._access.find_refusal(scope)
        if refusal is None:
            self._wrong_tokens.record_right(address)
        elif refusal is WRONG_TOKEN and (wait := self._wrong_tokens.record_wrong(address)):
            return _make_guess_refusal(wait)
        return refusal

    def _find_limit_refusal(self, scope: Scope) -> Refusal | None:
        if not self._rate_limiter.allow_request(_client_address(scope)):
            return Refusal(429, "too many requests", ((b"retry-after", b"1"),))
        headers = read_headers(scope)
        if _parse_content_length(headers.get(b"content-length", "0")) > self._limits.max_http_body_bytes:
            return TOO_LARGE
        # A few compressed bytes can stand for gigabytes.
        if headers.get(b"content-encoding", "identity").lower() != "identity":
            return Refusal(415, "send the request as it is, not compressed")
        if scope["method"] == "GET" and self._streams >= self._limits.max_http_streams:
            return Refusal(429, "too many open streams", ((b"retry-after", b"10"),))
        return None


def _make_guess_refusal(wait: float) -> Refusal:
    return Refusal(429, "too many wrong tokens", ((b"retry-after", b"%d" % math.ceil(wait)),))


def _client_address(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _parse_content_length(length: str) -> float:
    """Return the bytes that a request announces; infinity for anything but a number of reasonable length."""
    return float(length) if length.isdecimal() and len(length) < _MAX_LENGTH_DIGITS else float("inf")


async def _send_refusal(refusal: Refusal, send: Send) -> None:
    # The connection ends with a refusal, since the rest of a refused body may still be on its way.
    headers = [*_PLAIN_TEXT_HEADERS, *refusal.headers, (b"connection", b"close")]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{refusal.message}\n".encode()})

"""The application in front of the HTTP server, and lets only allowed requests within the limits through."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from prowess.serving.access import (
    WRONG_TOKEN,
    Refusal,
    make_guess_refusal,
    read_client_address,
    read_headers,
    send_refusal,
)
from prowess.serving.rate_limits import ClientRateLimiter, WrongTokens
from prowess.serving.request_body import TOO_LARGE, BodyForwarder

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.limits import Limits
    from prowess.serving.access import Access, App, Receive, Scope, Send

_MAX_LENGTH_DIGITS = 20


class RequestGuard:
    """An ASGI application that passes allowed requests on to another one, and refuses the rest."""

    def __init__(self, app: App, access: Access, limits: Limits, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._access = access
        self._limits = limits
        self._rate_limiter = ClientRateLimiter(limits.max_http_requests)
        self._wrong_tokens = WrongTokens(limits.max_http_wrong_tokens, limits.max_http_token_wait_seconds, clock)
        self._bodies = BodyForwarder(app, limits)
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Access before limits: a stranger behind a shared address must not use up the requests of those who may ask.
        refusal = self._find_access_refusal(scope) or self._find_limit_refusal(scope)
        if refusal is not None:
            await send_refusal(refusal, send)
        elif scope["method"] != "GET":
            await self._bodies.forward(scope, receive, send)
        else:
            self._streams += 1
            try:
                await self._app(scope, receive, send)
            finally:
                self._streams -= 1

    def _find_access_refusal(self, scope: Scope) -> Refusal | None:
        """Return why a client may not ask: ``Access`` refuses it, or its address has sent too many wrong tokens."""
        if self._access.token is None:
            return self._access.find_refusal(scope)
        address = read_client_address(scope)
        wait = self._wrong_tokens.wait_seconds(address) if b"authorization" in read_headers(scope) else 0.0
        if wait:
            return make_guess_refusal(wait)
        refusal = self._access.find_refusal(scope)
        if refusal is None:
            self._wrong_tokens.record_right(address)
        elif refusal is WRONG_TOKEN and (wait := self._wrong_tokens.record_wrong(address)):
            return make_guess_refusal(wait)
        return refusal

    def _find_limit_refusal(self, scope: Scope) -> Refusal | None:
        if not self._rate_limiter.allow_request(read_client_address(scope)):
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


def _parse_content_length(length: str) -> float:
    """Return the bytes that a request announces; infinity for anything but a number of reasonable length."""
    return float(length) if length.isdecimal() and len(length) < _MAX_LENGTH_DIGITS else float("inf")

"""The bodies of requests: each is read whole before it is passed on, and all together have a quota."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from prowess.serving.access import Refusal, send_refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.limits import Limits
    from prowess.serving.access import App, Message, Receive, Scope, Send

# Bodies up to this size need no quota: large requests that wait must not keep a small one from being answered.
_FREE_BODY_BYTES = 64 * 1024

TOO_LARGE = Refusal(413, "the request is too large")
TOO_SLOW = Refusal(408, "the request takes too long")
QUOTA_EXCEEDED = Refusal(429, "too many large requests", ((b"retry-after", b"1"),))


class BodyQuota:
    """The bytes of requests that may wait at one time."""

    def __init__(self, limit: int) -> None:
        self.bytes_left = limit


class QuotaShare:
    """The part of a quota that one request takes until it is answered; a context manager."""

    def __init__(self, quota: BodyQuota) -> None:
        self._quota = quota
        self._taken = 0

    def grow_to(self, size: int) -> bool:
        """Take the bytes that a body of ``size`` needs; return ``False`` when the quota has too few."""
        wanted = max(0, size - _FREE_BODY_BYTES) - self._taken
        if wanted > self._quota.bytes_left:
            return False
        self._quota.bytes_left -= wanted
        self._taken += wanted
        return True

    def release(self) -> None:
        """Give everything back."""
        self._quota.bytes_left += self._taken
        self._taken = 0

    def wrap_send(self, send: Send) -> Send:
        """Return a ``send`` that gives the share back first: once an answer begins, the body is no longer needed.

        An answer may be a stream that stays open for hours.
        """

        async def release_and_send(message: Message) -> None:
            self.release()
            await send(message)

        return release_and_send

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class BodyForwarder:
    """Passes requests on to an application once their bodies are whole, within the limits."""

    def __init__(self, app: App, limits: Limits) -> None:
        self._app = app
        self._limits = limits
        self._quota = BodyQuota(limits.max_http_waiting_bytes)

    async def forward(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        find_refusal: Callable[[bytes], Refusal | None] = lambda _body: None,
    ) -> None:
        """Pass a request on, unless ``find_refusal`` refuses its body. A request that breaks off gets no answer."""
        with QuotaShare(self._quota) as share:
            try:
                async with asyncio.timeout(self._limits.max_http_body_seconds):
                    body = await read_body(receive, self._limits.max_http_body_bytes, share)
            except TimeoutError:
                body = TOO_SLOW
            if isinstance(body, bytes):
                body = find_refusal(body) or body
            if isinstance(body, Refusal):
                await send_refusal(body, send)
            elif body is not None:
                await self._app(scope, replay_body(body, receive), share.wrap_send(send))


async def read_body(receive: Receive, limit: int, share: QuotaShare) -> bytes | Refusal | None:
    """Return the whole body of a request, why it is refused, or ``None`` when the client hangs up before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        if len(body) > limit:
            return TOO_LARGE
        if not share.grow_to(len(body)):
            return QUOTA_EXCEEDED
        if not message.get("more_body", False):
            return bytes(body)


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives the body again, and then whatever comes after it."""
    waiting = [body]
    del body  # an answer may stay open for long, and this function's frame with it

    async def receive_again() -> Message:
        return {"type": "http.request", "body": waiting.pop(), "more_body": False} if waiting else await receive()

    return receive_again

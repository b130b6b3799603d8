"""Limits the sessions of clients of the older protocols: a new one ends the one that was idle for longest.

The SDK keeps the sessions and gives no access to them, so they are counted from outside. A session begins with the
header that an answer carries, and it is ended with the ``DELETE`` request that its client would send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.http.access import App, Message, Receive, Scope, Send

_SESSION_HEADER = b"mcp-session-id"
_FIRST_ERROR_STATUS = 400
_NOT_FOUND_STATUS = 404


class SessionLimiter:
    """An ASGI application before another one that keeps sessions; it lets that one have ``limit`` sessions."""

    def __init__(self, app: App, limit: int) -> None:
        self._app = app
        self._limit = limit
        self._open_requests: dict[bytes, int] = {}
        """How many requests of each session are being answered; the session that asked last comes last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = dict(scope["headers"]).get(_SESSION_HEADER)
        if known is None:
            await self._end_idle_sessions(scope)
            await self._app(scope, receive, self._wrap_send(send))
            return
        self._open_requests[known] = self._open_requests.pop(known, 0) + 1
        try:
            await self._app(scope, receive, self._wrap_send(send, known))
        finally:
            # The session may have been ended while the request was being answered.
            if known in self._open_requests:
                self._open_requests[known] -= 1
            if scope["method"] == "DELETE":
                self._open_requests.pop(known, None)

    def _wrap_send(self, send: Send, known: bytes | None = None) -> Send:
        """Return a ``send`` that records sessions that begin, and forgets those that the SDK has ended."""

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                session = dict(message["headers"]).get(_SESSION_HEADER)
                if known is None and session is not None and message["status"] < _FIRST_ERROR_STATUS:
                    self._open_requests.setdefault(session, 0)
                if known is not None and message["status"] == _NOT_FOUND_STATUS:
                    self._open_requests.pop(known, None)
            await send(message)

        return record_and_send

    async def _end_idle_sessions(self, scope: Scope) -> None:
        idle = [session for session, count in self._open_requests.items() if not count]
        for session in idle[: max(0, len(self._open_requests) - self._limit + 1)]:
            self._open_requests.pop(session, None)
            headers = [header for header in scope["headers"] if header[0] in {b"host", b"authorization"}]
            request = {**scope, "method": "DELETE", "headers": [*headers, (_SESSION_HEADER, session)]}
            await self._app(request, _receive_empty, _discard_message)


async def _receive_empty() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard_message(_: Message) -> None:
    """Do nothing: no client waits for the answer."""

"""Sessions of clients of the older protocol: of too many, the one that was idle for longest ends for the newest.

They are counted from outside: a session begins with the header that an answer carries, and is ended by the very request
that its client would send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.mcp.http.access import App, Message, Receive, Scope, Send

_SESSION_HEADER = b"mcp-session-id"
_FIRST_ERROR_STATUS = 400
_NOT_FOUND_STATUS = 404


class SessionLimiter:
    """An application before another one that keeps sessions; at most so many."""

    def __init__(self, app: App, most: int) -> None:
        self._app = app
        self._most = most
        self._open_requests: dict[bytes, int] = {}
        """How many requests of each are being answered; the one that asked last comes last."""

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
            if known in self._open_requests:
                self._open_requests[known] -= 1
            if scope["method"] == "DELETE":
                self._open_requests.pop(known, None)

    def _wrap_send(self, send: Send, known: bytes | None = None) -> Send:
        """The way out, on which sessions that begin, and those that are no more, are noted."""

        async def record_and_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun = dict(message["headers"]).get(_SESSION_HEADER)
                if known is None and begun is not None and message["status"] < _FIRST_ERROR_STATUS:
                    self._open_requests.setdefault(begun, 0)
                if known is not None and message["status"] == _NOT_FOUND_STATUS:
                    self._open_requests.pop(known, None)
            await send(message)

        return record_and_send

    async def _end_idle_sessions(self, scope: Scope) -> None:
        idle = [name for name, count in self._open_requests.items() if not count]
        for name in idle[: max(0, len(self._open_requests) - self._most + 1)]:
            self._open_requests.pop(name, None)
            headers = [row for row in scope["headers"] if row[0] in {b"host", b"authorization"}]
            asked = {**scope, "method": "DELETE", "headers": [*headers, (_SESSION_HEADER, name)]}
            await self._app(asked, _receive_empty, _discard_message)


async def _receive_empty() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard_message(_: Message) -> None:
    """Nobody waits for the answer."""

"""Sessions of clients of the older protocol: of too many, the one that was idle for longest ends for the newest.

They are counted from outside: a session begins with the header that an answer carries, and is ended by the very request
that its client would send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prowess.mcp.http.guard import App, Message, Receive, Scope, Send

_ID = b"mcp-session-id"
_REFUSED = 400
_GONE = 404


class Sessions:
    """An application before another one that keeps sessions; at most so many."""

    def __init__(self, app: App, most: int) -> None:
        self._app = app
        self._most = most
        self._at_work: dict[bytes, int] = {}
        """How many requests of each are being answered; the one that asked last comes last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        known = dict(scope["headers"]).get(_ID)
        if known is None:
            await self._make_room(scope)
            await self._app(scope, receive, self._hearing(send))
            return
        self._at_work[known] = self._at_work.pop(known, 0) + 1
        try:
            await self._app(scope, receive, self._hearing(send, known))
        finally:
            if known in self._at_work:
                self._at_work[known] -= 1
            if scope["method"] == "DELETE":
                self._at_work.pop(known, None)

    def _hearing(self, send: Send, known: bytes | None = None) -> Send:
        """The way out, on which sessions that begin, and those that are no more, are noted."""

        async def heard(message: Message) -> None:
            if message["type"] == "http.response.start":
                begun = dict(message["headers"]).get(_ID)
                if known is None and begun is not None and message["status"] < _REFUSED:
                    self._at_work.setdefault(begun, 0)
                if known is not None and message["status"] == _GONE:
                    self._at_work.pop(known, None)
            await send(message)

        return heard

    async def _make_room(self, scope: Scope) -> None:
        idle = [name for name, count in self._at_work.items() if not count]
        for name in idle[: max(0, len(self._at_work) - self._most + 1)]:
            self._at_work.pop(name, None)
            headers = [row for row in scope["headers"] if row[0] in {b"host", b"authorization"}]
            asked = {**scope, "method": "DELETE", "headers": [*headers, (_ID, name)]}
            await self._app(asked, _nothing, _nowhere)


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _nowhere(_: Message) -> None:
    """Nobody waits for the answer."""

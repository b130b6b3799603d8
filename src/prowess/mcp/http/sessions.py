"""Limits the sessions of clients of the older protocols: one too many ends the one that was idle for longest.

The SDK keeps the sessions and gives no access to them, so they are counted from outside. A session counts from the
answer that issues its id until a ``DELETE`` request for it succeeds, and an id that no answer has issued counts for
nothing. A session that the SDK ends because nobody used it is among those that were idle for longest, so it goes next.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prowess.serving.access import read_client_address

if TYPE_CHECKING:
    from prowess.serving.access import App, Message, Receive, Scope, Send

_SESSION_HEADER = b"mcp-session-id"
_FIRST_ERROR_STATUS = 400


class _Session:
    """A session: the address of the client that began it, and how many of its requests are being answered."""

    __slots__ = ("address", "open_requests")

    def __init__(self, address: str) -> None:
        self.address = address
        self.open_requests = 0


class SessionLimiter:
    """An ASGI application before another one that keeps sessions at ``path``; it lets that one have ``limit`` of them.

    Of too many, those of the address that has the most end first, so that nobody ends the sessions of others by
    beginning many.
    """

    def __init__(self, app: App, path: str, limit: int) -> None:
        self._app = app
        self._path = path
        self._limit = limit
        self._sessions: dict[bytes, _Session] = {}
        """The sessions by their ids; the one that asked last comes last."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        # The first one of several, as the SDK reads them.
        named = next((value for name, value in scope["headers"] if name == _SESSION_HEADER), None)
        if named is None:
            await self._begin(scope, receive, send)
        elif named in self._sessions:
            await self._pass_on(named, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _pass_on(self, session_id: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request of a session, which is not idle meanwhile."""
        session = self._sessions[session_id] = self._sessions.pop(session_id)
        session.open_requests += 1
        is_ended = False

        async def note_end_and_send(message: Message) -> None:
            nonlocal is_ended
            if message["type"] == "http.response.start":
                is_ended = scope["method"] == "DELETE" and message["status"] < _FIRST_ERROR_STATUS
            await send(message)

        try:
            await self._app(scope, receive, note_end_and_send)
        finally:
            session.open_requests -= 1
            if is_ended:
                self._sessions.pop(session_id, None)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that may begin a session, and count the session if the answer has an id."""
        issued: bytes | None = None

        async def record_and_send(message: Message) -> None:
            nonlocal issued
            if message["type"] == "http.response.start" and message["status"] < _FIRST_ERROR_STATUS:
                issued = dict(message["headers"]).get(_SESSION_HEADER)
                if issued is not None:
                    self._sessions[issued] = _Session(read_client_address(scope))
            await send(message)

        await self._app(scope, receive, record_and_send)
        if issued is not None:
            await self._end_idle_sessions(scope, issued)

    async def _end_idle_sessions(self, scope: Scope, spared: bytes) -> None:
        """End idle sessions until there are no more than the limit, with the request that their clients would send."""
        headers = [header for header in scope["headers"] if header[0] in {b"host", b"authorization"}]
        while len(self._sessions) > self._limit and (session_id := self._find_idle_session(spared)):
            self._sessions.pop(session_id)
            request = {**scope, "method": "DELETE", "headers": [*headers, (_SESSION_HEADER, session_id)]}
            await self._app(request, _receive_empty, _discard_message)

    def _find_idle_session(self, spared: bytes) -> bytes:
        """Return the session that was idle for longest, of the address with the most; ``b""`` where none is idle."""
        counts = Counter(session.address for session in self._sessions.values())
        idle = (key for key, session in self._sessions.items() if not session.open_requests and key != spared)
        return max(idle, key=lambda key: counts[self._sessions[key].address], default=b"")


async def _receive_empty() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _discard_message(_: Message) -> None:
    """Do nothing: no client waits for the answer."""

"""Runs the server on HTTP with uvicorn: on loopback unless a token protects it, within limits on sessions too."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from prowess.serving.access import (
    WRONG_TOKEN,
    Refusal,
    make_access,
    make_guess_refusal,
    read_client_address,
    read_headers,
    send_refusal,
)
from prowess.serving.bind import check_token, parse_bind, parse_host_names, parse_origins
from prowess.serving.listen import bind_socket, make_config, server_address
from prowess.serving.rate_limits import ClientRateLimiter, WrongTokens
from prowess.serving.request_body import TOO_LARGE, BodyForwarder

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from prowess.limits import Limits
    from prowess.mcp.server import Server
    from prowess.serving.access import Access, App, Message, Receive, Scope, Send


MCP_PATH = "/mcp"
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in the C library's malloc.h
_LARGE_BLOCK = 1 << 20


def make_guarded_app(
    server: Server, host: str, *, token: str | None = None, hosts: Sequence[str] = (), origins: Sequence[str] = ()
) -> App:
    """Return the server as an ASGI application behind its guard, for the ``host`` that it will be bound to.

    Raises ``SourceError`` when ``host`` can be reached from other machines without a token.
    """
    check_token(host, token)
    access = make_access(host, parse_host_names(hosts), parse_origins(origins), token)
    limits = server.limits
    inner = server.lowlevel.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=True,
        max_request_body_size=limits.max_http_body_bytes,
        session_idle_timeout=limits.max_http_session_seconds,
        max_sessions=2 * limits.max_http_sessions,  # SessionLimiter ends idle sessions before the SDK refuses new ones
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard is stricter
    )
    return RequestGuard(SessionLimiter(inner, MCP_PATH, limits.max_http_sessions), access, limits)


def run_http(  # noqa: PLR0917 - one caller
    server: Server,
    bind: str,
    token: str | None,
    hosts: Sequence[str],
    origins: Sequence[str],
    ready: Callable[[str], None] | None,
) -> None:
    """Serve until the process gets a signal to end."""
    _release_large_blocks()
    host, port = parse_bind(bind)
    app = make_guarded_app(server, host, token=token, hosts=hosts, origins=origins)
    listener = bind_socket(host, port)
    with listener:
        report_ready = partial(ready, f"{server_address(host, listener)}{MCP_PATH}") if ready else lambda: None
        _HttpServer(make_config(app, server.limits), server, report_ready).run(sockets=[listener])


def _release_large_blocks() -> None:
    """Have the C library return the memory of large answers to the system, which it might keep otherwise."""
    with suppress(OSError, AttributeError, TypeError):  # another system, or another C library
        import ctypes

        ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, _LARGE_BLOCK)


class _HttpServer(uvicorn.Server):
    """uvicorn's server, which reports when it is ready and ends open streams before it shuts down."""

    def __init__(self, config: uvicorn.Config, server: Server, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._skills = server
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report that the server is ready."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the subscriptions, then shut down: an open stream would keep uvicorn waiting for its timeout."""
        self._skills.listening.close()
        await super().shutdown(sockets)


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

"""The socket that a server listens on, the configuration of uvicorn, and connections within the limits."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from prowess.errors import SourceError

if TYPE_CHECKING:
    import asyncio

    from prowess.limits import Limits
    from prowess.serving.access import App


_SHUTDOWN_SECONDS = 3


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises ``SourceError`` (``cannot-listen``) when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_accept_backlog())
    except OSError as error:
        raise SourceError(f"cannot listen on {host}:{port}: {error.strerror}", code="cannot-listen") from None


def server_address(host: str, listener: socket.socket) -> str:
    """Return the address of a server without a path, such as ``http://127.0.0.1:8848``."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def make_config(app: App, limits: Limits) -> uvicorn.Config:
    """Return the configuration of uvicorn for an application: nothing is logged, and every limit is kept."""
    return uvicorn.Config(
        app,
        http=LimitedConnection.with_limits(limits),
        backlog=_accept_backlog(),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.max_http_header_seconds),
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        h11_max_incomplete_event_size=limits.max_http_header_bytes,
    )


_RESERVED_HANDLES = 48
"""Handles that a server needs besides its connections: files of skills, the watcher, the log."""
_MIN_CONNECTIONS = 8
_MANY_HANDLES = 1_024
_NO_LIMIT = 10**9


class LimitedConnection(H11Protocol):
    """A connection that is closed when its headers take too long, or when its client does not take the answer.

    Beyond ``max_connections`` the connection that has been idle for longest is closed. Beyond ``max_unsent_bytes``, for
    all connections together, those are closed whose bytes have been waiting for longest.
    """

    max_connections = 0
    max_seconds = 0.0
    max_unsent_bytes = 0

    @classmethod
    def with_limits(cls, limits: Limits) -> type[LimitedConnection]:
        """Return a subclass with these limits: uvicorn takes a class, and makes the instances itself."""
        # A process has only so many file handles: without this bound a crowd of idle clients would take them all.
        handles = max(_MIN_CONNECTIONS, _max_open_files() - _accept_backlog() - _RESERVED_HANDLES)
        bounds = {
            "max_connections": min(limits.max_http_connections, handles),
            "max_seconds": limits.max_http_header_seconds,
            "max_unsent_bytes": limits.max_http_unsent_bytes,
        }
        return type(cls.__name__, (cls,), bounds)

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._header_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self.last_request_at = 0.0
        """When its last request began, by the clock of the event loop."""
        self.blocked_since = 0.0
        """When its client last ceased to take bytes, by the clock of the event loop."""

    # -- too many, or too slow to ask --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for the headers, and close the most idle connection when there are too many."""
        super().connection_made(transport)
        self.last_request_at = self.loop.time()
        self._header_timer = self.loop.call_later(self.max_seconds, transport.abort)
        if len(self.connections) > self.max_connections:
            self._find_most_idle().transport.abort()

    def _find_most_idle(self) -> LimitedConnection:
        """Return the connection that has been idle for longest; this new one when all others are at work."""
        idle = [other for other in self._all_connections() if other.is_idle and not other.transport.is_closing()]
        return min(idle, key=lambda other: other.last_request_at)

    def _all_connections(self) -> set[LimitedConnection]:
        return cast("set[LimitedConnection]", self.connections)

    @property
    def is_idle(self) -> bool:
        """Whether no request of this connection is being answered."""
        return bool(getattr(self.cycle, "response_complete", True)) and self._send_timer is None

    def data_received(self, data: bytes) -> None:
        """Pass bytes on to uvicorn; stop the timer once the headers are whole, start it when others begin."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self.last_request_at = self.loop.time()
            self._cancel_header_timer()
        elif getattr(self.cycle, "response_complete", True):  # the first bytes of another request
            self._header_timer = self._header_timer or self.loop.call_later(self.max_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._cancel_header_timer()
        self._cancel_send_timer()
        super().connection_lost(exc)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    # -- too slow to take what was asked for -------------------------------------------------------------------------

    def pause_writing(self) -> None:
        """Watch whether the client takes its bytes, and close the slowest connections when too many bytes wait."""
        super().pause_writing()
        self.blocked_since = self.loop.time()
        self._watch_sending(self.unsent_bytes)
        blocked = [other for other in self._all_connections() if other.unsent_bytes]
        blocked.sort(key=lambda other: other.blocked_since)
        total = sum(other.unsent_bytes for other in blocked)
        for other in blocked[:-1]:  # the newest may be a large answer, whose client had no time to take it yet
            if total <= self.max_unsent_bytes:
                return
            total -= other.unsent_bytes
            other.transport.abort()

    def resume_writing(self) -> None:
        """Stop watching: the client has taken its bytes."""
        super().resume_writing()
        self._cancel_send_timer()

    @property
    def unsent_bytes(self) -> int:
        """How many bytes wait to be sent."""
        return self.transport.get_write_buffer_size() if not self.transport.is_closing() else 0

    def _watch_sending(self, before: int) -> None:
        """Close the connection after a while unless its client has taken some of the ``before`` bytes."""

        def check_progress() -> None:
            now = self.unsent_bytes
            if now >= before:
                self.transport.abort()
            else:
                self._watch_sending(now)

        self._cancel_send_timer()
        self._send_timer = self.loop.call_later(self.max_seconds, check_progress)

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def _accept_backlog() -> int:
    """Return how many connections the system accepts in one go; idle ones are closed only after that."""
    # With few handles a small backlog: connections that wait there hold handles too.
    return 128 if _max_open_files() >= _MANY_HANDLES else 16


def _max_open_files() -> int:
    """Return how many file handles this process may have."""
    with suppress(ImportError):
        import resource

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft != resource.RLIM_INFINITY:
            return soft
    return _NO_LIMIT

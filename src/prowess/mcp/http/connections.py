"""Connections that are not waited for without end: for their headers, for another request, or to take their answer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from prowess.limits import Limits

_RESERVED_HANDLES = 48
"""Handles that a server needs besides its connections."""
_MIN_CONNECTIONS = 8
_MANY_HANDLES = 1_024


class LimitedConnection(H11Protocol):
    """A connection that is closed when its headers take too long, when nobody takes its answer, or for a newer one.

    Of too many connections the most idle goes; of too many bytes that wait to be sent, those that wait for longest.
    """

    most = 0
    seconds = 0.0
    unsent = 0

    @classmethod
    def with_limits(cls, limits: Limits) -> type[LimitedConnection]:
        """The same with these bounds."""
        bounds = {
            "most": min(
                limits.max_http_connections,
                max(_MIN_CONNECTIONS, _max_open_files() - accept_backlog() - _RESERVED_HANDLES),
            ),
            "seconds": limits.max_http_header_seconds,
            "unsent": limits.max_http_unsent_bytes,
        }
        return type("Patient", (cls,), bounds)

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        self._header_timer: asyncio.TimerHandle | None = None
        self._send_timer: asyncio.TimerHandle | None = None
        self._last_request_at = 0.0
        self._blocked_since = 0.0

    # -- too many, or too slow to ask --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._last_request_at = self.loop.time()
        self._header_timer = self.loop.call_later(self.seconds, transport.abort)
        if len(self.connections) > self.most:
            self._find_most_idle().transport.abort()

    def _find_most_idle(self) -> LimitedConnection:
        """The one of all connections that has been idle for longest; this one where all others are at work."""
        idle = [other for other in self._all_connections() if other.is_idle and not other.transport.is_closing()]
        return min(idle, key=lambda other: other._last_request_at)  # noqa: SLF001 - of the same class

    def _all_connections(self) -> set[LimitedConnection]:
        return cast("set[LimitedConnection]", self.connections)

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return bool(getattr(self.cycle, "response_complete", True)) and self._send_timer is None

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._last_request_at = self.loop.time()
            self._cancel_header_timer()
        elif getattr(self.cycle, "response_complete", True):  # the first bytes of another request
            self._header_timer = self._header_timer or self.loop.call_later(self.seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_header_timer()
        self._cancel_send_timer()
        super().connection_lost(exc)

    def _cancel_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    # -- too slow to take what was asked for -------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._blocked_since = self.loop.time()
        self._watch_sending(self.unsent_bytes)
        waiting = [other for other in self._all_connections() if other.unsent_bytes]
        full = sorted(waiting, key=lambda other: other._blocked_since)  # noqa: SLF001 - connections of this very class
        total = sum(other.unsent_bytes for other in full)
        for other in full[:-1]:  # the newest may be large, and nobody was slow to take it yet
            if total <= self.unsent:
                return
            total -= other.unsent_bytes
            other.transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._cancel_send_timer()

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait to be sent."""
        return self.transport.get_write_buffer_size() if not self.transport.is_closing() else 0

    def _watch_sending(self, before: int) -> None:
        """Close it unless some of its bytes have gone meanwhile."""

        def check_progress() -> None:
            now = self.unsent_bytes
            if now >= before:
                self.transport.abort()
            else:
                self._watch_sending(now)

        self._cancel_send_timer()
        self._send_timer = self.loop.call_later(self.seconds, check_progress)

    def _cancel_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def accept_backlog() -> int:
    """How many connections are taken in one go: only then are those that are too many let go."""
    return 128 if _max_open_files() >= _MANY_HANDLES else 16


def _max_open_files() -> int:
    """How many handles this process may have."""
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - POSIX only

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft != resource.RLIM_INFINITY:
            return soft
    return 10**9

"""Connections that are not waited for without end: for their headers, for another request, or to take their answer."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

    from prowess.limits import Limits

_RESERVE = 48
"""Handles that a server needs besides its connections."""
_LEAST = 8
_MANY = 1_024


class Patient(H11Protocol):
    """A connection that is closed when its headers take too long, when nobody takes its answer, or for a newer one.

    Of too many connections the most idle goes; of too many bytes that wait to be sent, those that wait for longest.
    """

    most = 0
    seconds = 0.0
    unsent = 0

    @classmethod
    def bounded(cls, limits: Limits) -> type[Patient]:
        """The same with these bounds."""
        bounds = {
            "most": min(limits.max_http_connections, max(_LEAST, _handles() - backlog() - _RESERVE)),
            "seconds": limits.max_http_header_seconds,
            "unsent": limits.max_http_unsent_bytes,
        }
        return type("Patient", (cls,), bounds)

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        self._waits: asyncio.TimerHandle | None = None
        self._sends: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._full_since = 0.0

    # -- too many, or too slow to ask --------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._since = self.loop.time()
        self._waits = self.loop.call_later(self.seconds, transport.abort)
        if len(self.connections) > self.most:
            self._most_idle().transport.abort()

    def _most_idle(self) -> Patient:
        """The one of all connections that has been idle for longest; this one where all others are at work."""
        idle = [other for other in self._all() if other.is_idle and not other.transport.is_closing()]
        return min(idle, key=lambda other: other._since)  # noqa: SLF001 - of the same class

    def _all(self) -> set[Patient]:
        return cast("set[Patient]", self.connections)

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return bool(getattr(self.cycle, "response_complete", True)) and self._sends is None

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._since = self.loop.time()
            self._rest()
        elif getattr(self.cycle, "response_complete", True):  # the first bytes of another request
            self._waits = self._waits or self.loop.call_later(self.seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest()
        self._sent()
        super().connection_lost(exc)

    def _rest(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

    # -- too slow to take what was asked for -------------------------------------------------------------------------

    def pause_writing(self) -> None:
        super().pause_writing()
        self._full_since = self.loop.time()
        self._look_again(self.waiting)
        full = sorted((other for other in self._all() if other.waiting), key=lambda other: other._full_since)  # noqa: SLF001
        total = sum(other.waiting for other in full)
        for other in full[:-1]:  # the newest may be large, and nobody was slow to take it yet
            if total <= self.unsent:
                return
            total -= other.waiting
            other.transport.abort()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._sent()

    @property
    def waiting(self) -> int:
        """Bytes that wait to be sent."""
        return self.transport.get_write_buffer_size() if not self.transport.is_closing() else 0

    def _look_again(self, before: int) -> None:
        """Close it unless some of its bytes have gone meanwhile."""

        def look() -> None:
            now = self.waiting
            if now >= before:
                self.transport.abort()
            else:
                self._look_again(now)

        self._sent()
        self._sends = self.loop.call_later(self.seconds, look)

    def _sent(self) -> None:
        if self._sends is not None:
            self._sends.cancel()
            self._sends = None


def backlog() -> int:
    """How many connections are taken in one go: only then are those that are too many let go."""
    return 128 if _handles() >= _MANY else 16


def _handles() -> int:
    """How many handles this process may have."""
    with suppress(ImportError):
        import resource  # noqa: PLC0415 - POSIX only

        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if soft != resource.RLIM_INFINITY:
            return soft
    return 10**9

"""The server on HTTP: on loopback unless a token protects it, bounded in every direction, ending in good order."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from uvicorn.protocols.http.h11_impl import H11Protocol

from prowess.errors import SourceError
from prowess.mcp.binding import check_token, parse_bind
from prowess.mcp.guard import Guard, access

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from prowess.limits import Limits
    from prowess.mcp.guard import App
    from prowess.mcp.server import Server

PATH = "/mcp"
_GRACE = 3


def guarded_app(
    server: Server, host: str, *, token: str | None = None, hosts: Sequence[str] = (), origins: Sequence[str] = ()
) -> App:
    """The server as an ASGI application, with its guard; for ``host``, which it will be bound to."""
    check_token(host, token)
    limits = server.limits
    inner = server.lowlevel.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        max_request_body_size=limits.max_http_body_bytes,
        session_idle_timeout=limits.max_http_session_seconds,
        max_sessions=limits.max_http_sessions,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # the guard is stricter
    )
    return Guard(inner, access(host, hosts, origins, token), limits)


def run_http(  # noqa: PLR0917 - one caller
    server: Server,
    bind: str,
    token: str | None,
    hosts: Sequence[str],
    origins: Sequence[str],
    ready: Callable[[str], None] | None,
) -> None:
    """Serve until the process is told to end."""
    host, port = parse_bind(bind)
    app = guarded_app(server, host, token=token, hosts=hosts, origins=origins)
    listener = _bound(host, port)
    with listener:
        own = _Running(_config(app, server.limits), server, lambda: ready(_url(host, listener)) if ready else None)
        own.run(sockets=[listener])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise SourceError(f"cannot listen on {host}:{port}: {error.strerror}", code="cannot-listen") from None


def _url(host: str, listener: socket.socket) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}{PATH}"


def _config(app: App, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Patient.bounded(limits),
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=int(limits.max_http_header_seconds),
        timeout_graceful_shutdown=_GRACE,
        h11_max_incomplete_event_size=limits.max_http_header_bytes,
    )


class _Running(uvicorn.Server):
    """Says when it is ready, and ends open streams in good order."""

    def __init__(self, config: uvicorn.Config, server: Server, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._skills = server
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._skills.listening.close()
        await super().shutdown(sockets)


class Patient(H11Protocol):
    """A connection that is closed when its headers take too long, or when it is the most idle of too many."""

    most = 0
    seconds = 0.0

    @classmethod
    def bounded(cls, limits: Limits) -> type[Patient]:
        """The same with these bounds."""
        bounds = {"most": limits.max_http_connections, "seconds": limits.max_http_header_seconds}
        return type("Patient", (cls,), bounds)

    def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - uvicorn's own
        super().__init__(*given, **named)
        self._waits: asyncio.TimerHandle | None = None
        self._since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._since = self.loop.time()
        self._waits = self.loop.call_later(self.seconds, transport.abort)
        if len(self.connections) > self.most:
            self._most_idle().transport.abort()

    def _most_idle(self) -> Patient:
        """The one of all connections that has been idle for longest; this one where all others are at work."""
        others = cast("set[Patient]", self.connections)
        idle = [other for other in others if other.is_idle and not other.transport.is_closing()]
        return min(idle, key=lambda other: other._since)  # noqa: SLF001 - of the same class

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being answered."""
        return bool(getattr(self.cycle, "response_complete", True))

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
        super().connection_lost(exc)

    def _rest(self) -> None:
        if self._waits is not None:
            self._waits.cancel()
            self._waits = None

"""Runs the server on HTTP with uvicorn: on loopback unless a token protects it, and within limits."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from prowess.mcp.http.sessions import SessionLimiter
from prowess.serving.access import make_access
from prowess.serving.bind import check_token, parse_bind, parse_host_names, parse_origins
from prowess.serving.guard import RequestGuard
from prowess.serving.listen import bind_socket, make_config, server_address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from prowess.mcp.server import Server
    from prowess.serving.access import App

MCP_PATH = "/mcp"
_MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD in the C library's malloc.h
_LARGE_BLOCK = 1 << 20


def make_guarded_app(
    server: Server, host: str, *, token: str | None = None, hosts: Sequence[str] = (), origins: Sequence[str] = ()
) -> App:
    """Return the server as an ASGI application behind its guard, for the ``host`` that it will be bound to.

    Raises ``SourceError`` when ``host`` can be reached from other machines and there is no token.
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
    """Serve until the process is told to end."""
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

"""The socket that a server listens on, and the configuration of uvicorn, within the limits."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from prowess.errors import SourceError
from prowess.serving.connections import LimitedConnection, accept_backlog

if TYPE_CHECKING:
    from prowess.limits import Limits
    from prowess.serving.access import App

_SHUTDOWN_SECONDS = 3


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises ``SourceError`` (``cannot-listen``) when the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=accept_backlog())
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
        backlog=accept_backlog(),
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

"""Runs the console: serves the pages of a library until the process is told to end."""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from prowess.serving.bind import check_token, parse_bind
from prowess.serving.listen import bind_socket, make_config, server_address
from prowess.web.app import ALL_ACTIONS, create_app
from prowess.web.change_feed import ChangeFeed
from prowess.web.guard import TOKEN_PARAMETER

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from prowess.web.library import Library
    from prowess.web.result_file import ResultFile

DEFAULT_BIND = "127.0.0.1:0"
"""Loopback, on a port that is free."""


def run_console(
    library: Library,
    *,
    read_only: bool = False,
    bind: str = DEFAULT_BIND,
    token: str | None = None,
    hosts: Sequence[str] = (),
    results: ResultFile | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the console until the process is told to end; ``ready`` is called with the first address, and its token.

    With ``read_only`` it refuses every change. ``results`` keeps the results of changes. On loopback
    a token is made where none is given. Raises ``SourceError`` for any other address without a ``token``, for a
    token that is too short, and where nothing can listen.
    """
    host, port = parse_bind(bind)
    check_token(host, token)
    chosen = token if token is not None else secrets.token_urlsafe(32)
    actions, feed = frozenset() if read_only else ALL_ACTIONS, ChangeFeed(library)
    app = create_app(library, token=chosen, actions=actions, host=host, hosts=hosts, feed=feed, results=results)
    with bind_socket(host, port) as listener, suppress(KeyboardInterrupt):
        address = f"{server_address(host, listener)}/?{TOKEN_PARAMETER}={chosen}"
        config = make_config(app, library.limits)
        _ConsoleServer(config, lambda: ready(address) if ready else None, feed).run([listener])


class _ConsoleServer(uvicorn.Server):
    """uvicorn's server, which reports when it is ready, and ends the streams of events when it ends."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], feed: ChangeFeed) -> None:
        super().__init__(config)
        self._ready = ready
        self._feed = feed

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report that the server is ready."""
        await super().startup(sockets)
        self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams of events, for which uvicorn would wait, and then the server."""
        self._feed.close()
        await super().shutdown(sockets)

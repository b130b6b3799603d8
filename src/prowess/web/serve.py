"""Runs the console: makes the library of some folders, and serves its pages until the process is told to end."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from prowess.discovery.live import live
from prowess.discovery.scan import discover, scan
from prowess.http.bind import check_token, parse_bind
from prowess.http.listen import bind_socket, make_config, server_address
from prowess.install.installer import Installer
from prowess.lockfile.scopes import standard_scopes
from prowess.runtime.acting.trust import Trust
from prowess.web.app import ALL_ACTIONS, create_app
from prowess.web.guard import TOKEN_PARAMETER
from prowess.web.library import Library

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator, Sequence

DEFAULT_BIND = "127.0.0.1:0"
"""Loopback, on a port that is free."""


@contextmanager
def open_library(
    roots: Sequence[str] = (),
    *,
    agents: Sequence[str] = (),
    project: bool = True,
    budget: int | None = None,
    watch: bool = True,
) -> Iterator[Library]:
    """Yield the library of the skills below ``roots``, or, without any, in the standard places.

    With ``watch`` it follows changes of the files. ``agents`` and ``project`` are those of ``prowess.discover``. Raises
    ``SourceError`` for a root that does not exist.
    """
    options: dict[str, Any] = {"missing": "error"} if roots else {"agents": agents, "project": project}
    home = os.path.expanduser("~")
    make_library = partial(
        Library,
        installer=Installer(),
        scopes=standard_scopes(os.getcwd(), home, os.environ, project=project),
        trust=Trust(),
        budget=budget,
    )
    if not watch:
        yield make_library(scan(*roots, **options) if roots else discover(**options))
        return
    with live(*roots, **options) as following:
        yield make_library(following)


def run_console(
    library: Library,
    *,
    read_only: bool = False,
    bind: str = DEFAULT_BIND,
    token: str | None = None,
    hosts: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve the console until the process is told to end; ``ready`` is called with the first address, and its token.

    With ``read_only`` it refuses every change. On loopback a token is made where none is given. Raises ``SourceError``
    for any other address without a ``token``, for a token that is too short, and where nothing can listen.
    """
    host, port = parse_bind(bind)
    check_token(host, token)
    chosen = token if token is not None else secrets.token_urlsafe(32)
    app = create_app(library, token=chosen, actions=frozenset() if read_only else ALL_ACTIONS, host=host, hosts=hosts)
    with bind_socket(host, port) as listener, suppress(KeyboardInterrupt):
        address = f"{server_address(host, listener)}/?{TOKEN_PARAMETER}={chosen}"
        _ConsoleServer(make_config(app, library.limits), lambda: ready(address) if ready else None).run([listener])


class _ConsoleServer(uvicorn.Server):
    """uvicorn's server, which reports when it is ready."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report that the server is ready."""
        await super().startup(sockets)
        self._ready()

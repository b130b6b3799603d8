"""Serves one client on standard input and output."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anyio import AsyncFile

    from prowess.mcp.served_skills import LeftOut
    from prowess.mcp.server import Server


def serve_stdio(make_server: Callable[[], Server], left_out: Callable[[LeftOut], None] | None) -> None:
    """Serve one client on standard input and output, until it closes them.

    ``make_server`` loads the SDK and makes the server. ``left_out`` is called with how many skills are not served, if
    there are any.
    """
    import asyncio

    with _exit_on_interrupt():
        server = make_server()
        if left_out is not None:
            server.tell_left_out(left_out)
        server.tell_arrivals()
        asyncio.run(_run_server(server))


@contextmanager
def _exit_on_interrupt() -> Iterator[None]:
    """Let an interrupt end the process at once: a thread waits for input, and no exception wakes it up."""
    if current_thread() is not main_thread():  # only the main thread may set a signal handler
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _open_output() -> AsyncFile[str] | None:
    r"""Return standard output with ``\n`` at the end of a line; ``None`` where the SDK's own has that."""
    if os.linesep == "\n":
        return None
    import anyio

    return anyio.wrap_file(TextIOWrapper(os.fdopen(os.dup(1), "wb"), encoding="utf-8", newline="\n"))


async def _run_server(server: Server) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server(stdout=_open_output()) as (read, write):
        await server.lowlevel.run(read, write)

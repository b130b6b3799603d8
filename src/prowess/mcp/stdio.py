"""Serves one client on standard input and output; it is answered while the MCP SDK loads."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from prowess.mcp.early.client import make_early_client
from prowess.mcp.options import ServeOptions, make_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anyio import AsyncFile

    from prowess.mcp.early.client import EarlyLines
    from prowess.mcp.served_skills import LeftOut
    from prowess.mcp.server import Server


def serve_stdio(
    make_server: Callable[[], Server],
    roots: tuple[str | os.PathLike[str], ...],
    options: dict[str, Any],
    left_out: Callable[[LeftOut], None] | None,
) -> None:
    """Serve one client on standard input and output, until it closes them.

    ``make_server`` loads the SDK and makes the server for ``roots`` with ``options``. ``left_out`` is called with how
    many skills are not served, if there are any. Raises ``SourceError`` for options that cannot be.
    """
    import asyncio

    serve_options = make_options(**{name: options[name] for name in ServeOptions._fields if name in options})
    early = (
        None if options.get("catalog") is not None else make_early_client(roots, serve_options, options.get("limits"))
    )
    with _exit_on_interrupt():
        server = make_server() if early is None else early.answer_while(make_server)
        if left_out is not None:
            server.tell_left_out(left_out)
        server.tell_arrivals()
        lines = None if early is None else early.take_lines()
        if lines is not None and lines.snapshot is not None:
            server.begin_with(lines.snapshot)  # the client need not wait for a second load
        asyncio.run(_run_server(server, lines))


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


async def _run_server(server: Server, early: EarlyLines | None) -> None:
    from mcp.server.stdio import stdio_server

    async with stdio_server(stdout=_open_output()) as (read, write):
        if early is None or not early.lines:
            await server.lowlevel.run(read, write)
        else:
            await server.lowlevel.run(*early.replay(read, write, partial(server.renew_early_answers, early.snapshot)))

"""Serving skills until the client, or the person who started it, has enough; and what would not be served."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

from prowess.errors import Issue, SkillError, SourceError
from prowess.files.folders import Folder, folder_info
from prowess.library.mcp_rules import reasons
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.binding import check_token, is_loopback, parse_bind
from prowess.mcp.keeper import Loader
from prowess.mcp.manifests import Manifests
from prowess.mcp.shelf import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.limits import Limits
    from prowess.mcp.server import Server

_LEAST, _PART, _FEW = 0.05, 10, 256


def serve(
    *roots: str | os.PathLike[str],
    http: str | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
    left_out: Callable[[int], None] | None = None,
    **options: Any,  # noqa: ANN401 - those of Server
) -> None:
    """Serve the skills below ``roots`` (none: the standard places) over standard input and output.

    ``http``: serve on HTTP instead, at ``HOST:PORT``; anything but loopback needs a ``token``. ``hosts`` are further
    names that the server goes by, ``origins`` further pages that may ask; ``ready`` is called with its address, then
    ``left_out`` with how many skills are not served, if any are not (``check`` says which, and why).
    ``options`` are those of ``Server``. Returns when the client is gone, or when the process is told to end.
    """
    _refuse_missing(roots)
    host = parse_bind(http)[0] if http is not None else ""
    if http is not None:
        check_token(host, token)
    options.setdefault("show_folders", http is None or is_loopback(host))
    began = time.monotonic()
    made = server_class()
    limits = options.get("limits") or DEFAULT_LIMITS
    options["limits"] = limits if are_small(roots) else in_step(limits, time.monotonic() - began)
    server = made(*roots, **options)
    with suppress(KeyboardInterrupt):
        if http is None:
            run_stdio(server)
            return
        from prowess.mcp.http import run_http  # noqa: PLC0415 - not needed for stdio

        def started(url: str) -> None:
            if ready is not None:
                ready(url)
            if left_out is not None:
                server.tell_left_out(left_out)

        run_http(server, http, token, hosts, origins, started)


def are_small(roots: tuple[str | os.PathLike[str], ...]) -> bool:
    """Whether so little lies in the folders that it is worth waiting for: it takes a moment, however busy all is."""
    for root in roots:
        try:
            with Folder(os.path.abspath(os.fspath(root))) as folder:
                if not folder.entries(_FEW).complete:
                    return False
        except OSError:
            return False
    return True


def in_step(limits: Limits, spent: float) -> Limits:
    """The limits with a first answer that waits for the listing no longer than a small part of the start took."""
    return replace(limits, max_handshake_seconds=min(limits.max_handshake_seconds, max(_LEAST, spent / _PART)))


def _refuse_missing(roots: tuple[str | os.PathLike[str], ...]) -> None:
    """A folder that was named and is not there is a mistake in somebody's configuration."""
    for root in roots:
        if folder_info(os.fspath(root)) is None:
            raise SourceError(f"there is no folder {os.fspath(root)!r}", code="missing-root")


def server_class() -> type[Server]:
    """The class of servers. The SDK makes many objects that all stay, so collecting garbage meanwhile is in vain."""
    import gc  # noqa: PLC0415 - only when serving

    collects = gc.isenabled()
    gc.disable()
    try:
        from prowess.mcp.server import Server  # noqa: PLC0415 - the SDK takes a second to load
    except ModuleNotFoundError as error:
        if error.name not in {"mcp", "mcp_types"}:
            raise
        raise SourceError("serving needs the SDK: pip install 'prowess[mcp]'", code="missing-extra") from None
    finally:
        if collects:
            gc.enable()
    return Server


def run_stdio(server: Server) -> None:
    """Serve one client on standard input and output, until it closes them."""
    import asyncio  # noqa: PLC0415 - only when serving

    with _ended_by_interrupt():
        asyncio.run(_stdio(server))


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Let an interrupt end the process at once: a thread waits for input, and no exception wakes it up."""
    import signal  # noqa: PLC0415 - only when serving

    if current_thread() is not main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _stdio(server: Server) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - the SDK takes a second to load

    async with stdio_server() as (read, write):
        await server.lowlevel.run(read, write)


def check(*roots: str | os.PathLike[str], limits: Limits | None = None) -> tuple[Refused, ...]:
    """What below ``roots`` (none: the standard places) would not be served, and every reason, by location."""
    _refuse_missing(roots)
    bounds = limits or DEFAULT_LIMITS
    shelf = Loader(tuple(os.path.abspath(os.fspath(root)) for root in roots), bounds).load()
    manifests = Manifests(bounds)
    found = [*shelf.refused]
    for skill in shelf.skills.values():
        try:
            manifests.of(skill)
        except SkillError as error:
            found.append(Refused(skill.location, reasons(error)))
    found += [Refused(issue.path, (issue,)) for issue in shelf.issues if _is_error(issue)]
    return tuple(sorted(found))


def _is_error(issue: Issue) -> bool:
    return issue.severity == "error"

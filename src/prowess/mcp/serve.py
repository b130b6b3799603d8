"""Serving skills until the client, or the person who started it, has enough; and what would not be served."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import SkillError, SourceError
from prowess.files.directory import stat_folder
from prowess.hints import explain_extra
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.http.bind import check_token, is_loopback, parse_bind
from prowess.mcp.live_catalog import SkillLoader
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import resolve_roots
from prowess.mcp.served_skills import Refused
from prowess.skills.mcp_rules import as_issues

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from prowess.limits import Limits
    from prowess.mcp.served_skills import LeftOut
    from prowess.mcp.server import Server

_MIN_HANDSHAKE_SECONDS, _HANDSHAKE_DIVISOR = 0.05, 10


def serve(
    *roots: str | os.PathLike[str],
    http: str | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
    left_out: Callable[[LeftOut], None] | None = None,
    **options: Any,  # noqa: ANN401 - those of Server
) -> None:
    """Serve the skills below ``roots`` (none: the standard places) over standard input and output.

    ``http``: serve on HTTP instead, at ``HOST:PORT``; anything but loopback needs a ``token``. ``hosts`` are further
    names that the server goes by, ``origins`` further pages that may ask; ``ready`` is called with its address.
    ``left_out`` is called with how many skills are not served, if any are not (``check`` says which, and why).
    ``options`` are those of ``Server``. Returns when the client is gone, or when the process is told to end.
    """
    _check_folders(roots)
    host = parse_bind(http)[0] if http is not None else ""
    if http is not None:
        check_token(host, token)
    # A further name is that of a proxy: it asks from this machine, and its clients are elsewhere.
    options.setdefault("show_folders", http is None or (is_loopback(host) and not hosts))
    began = time.monotonic()
    made = load_server_class()
    limits = options.get("limits") or DEFAULT_LIMITS
    options["limits"] = with_handshake_seconds(limits, time.monotonic() - began)
    server = made(*roots, **options)
    with suppress(KeyboardInterrupt):
        if http is None:
            if left_out is not None:
                server.tell_left_out(left_out)
            server.tell_arrivals()
            run_stdio(server)
            return
        from prowess.mcp.http.app import run_http  # noqa: PLC0415 - not needed for stdio

        def report_ready(url: str) -> None:
            if ready is not None:
                ready(url)
            if left_out is not None:
                server.tell_left_out(left_out)

        run_http(server, http, token, hosts, origins, report_ready)


def with_handshake_seconds(limits: Limits, spent: float) -> Limits:
    """The limits with a first answer that waits for a large listing no longer than a small part of the start took."""
    return replace(
        limits,
        max_handshake_seconds=min(
            limits.max_handshake_seconds, max(_MIN_HANDSHAKE_SECONDS, spent / _HANDSHAKE_DIVISOR)
        ),
    )


def _check_folders(roots: tuple[str | os.PathLike[str], ...]) -> tuple[str, ...]:
    """The folders that were named; raises ``SourceError`` for one that is not there: a configuration is wrong."""
    folders = resolve_roots(roots)
    for folder in folders:
        if stat_folder(folder) is None:
            raise SourceError(f"there is no folder {folder!r}", code="missing-root")
    return folders


def load_server_class() -> type[Server]:
    """The class of servers. The SDK makes many objects that all stay, so collecting garbage meanwhile is in vain."""
    import gc  # noqa: PLC0415 - only when serving

    collects = gc.isenabled()
    gc.disable()
    try:
        from prowess.mcp.server import Server  # noqa: PLC0415 - the SDK takes a second to load
    except ModuleNotFoundError as error:
        if error.name not in {"mcp", "mcp_types"}:
            raise
        raise SourceError(f"the MCP SDK is not installed: {explain_extra('mcp')}", code="missing-extra") from None
    finally:
        if collects:
            gc.enable()
    return Server


def run_stdio(server: Server) -> None:
    """Serve one client on standard input and output, until it closes them."""
    import asyncio  # noqa: PLC0415 - only when serving

    with _exit_on_interrupt():
        asyncio.run(_serve_stdio(server))


@contextmanager
def _exit_on_interrupt() -> Iterator[None]:
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


async def _serve_stdio(server: Server) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - the SDK takes a second to load

    async with stdio_server() as (read, write):
        await server.lowlevel.run(read, write)


class Survey(NamedTuple):
    """What a server would serve."""

    loaded: int
    """How many skills tools, prompts and the listing would serve: all that load, each name once."""
    served: int
    """How many skills the extension would serve."""
    refused: tuple[Refused, ...]
    """Those that it would not, and every reason, by location."""


def check(*roots: str | os.PathLike[str], limits: Limits | None = None) -> tuple[Refused, ...]:
    """What below ``roots`` (none: the standard places) the extension would not serve, and every reason, by location.

    Raises ``SourceError`` for a folder that is not there.
    """
    return survey(*roots, limits=limits).refused


def survey(*roots: str | os.PathLike[str], limits: Limits | None = None) -> Survey:
    """What below ``roots`` (none: the standard places) would be served, in numbers, and what ``check`` returns.

    Raises ``SourceError`` for a folder that is not there.
    """
    bounds = limits or DEFAULT_LIMITS
    shelf = SkillLoader(_check_folders(roots), bounds).load()
    manifests = ManifestCache(bounds)
    different = {lost.location for lost in shelf.catalog.shadowed} if shelf.copies else set()
    found = [*shelf.refused, *(copy for copy in shelf.copies if copy.location in different)]
    served = 0
    for skill in shelf.skills.values():
        try:
            manifests.get_manifest(skill)
        except SkillError as error:
            found.append(Refused(skill.location, as_issues(error), shelf.catalog.get(skill.name) is skill))
        else:
            served += 1
    found += [Refused(issue.path, (issue,), loads=False) for issue in shelf.failures]
    return Survey(len(shelf.catalog), served, tuple(sorted(found)))

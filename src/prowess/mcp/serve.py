"""Runs a server until its client is gone, and reports which skills a server would leave out."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import SkillError, SourceError
from prowess.files.directory import exists, stat_folder
from prowess.hints import explain_extra
from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import resolve_roots
from prowess.mcp.served_skills import Refused, SkillLoader
from prowess.serving.bind import check_token, is_loopback, parse_bind
from prowess.skills.mcp_rules import as_issues

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from anyio import AsyncFile

    from prowess.limits import Limits
    from prowess.mcp.served_skills import LeftOut
    from prowess.mcp.server import Server


def serve(
    *roots: str | os.PathLike[str],
    http: str | None = None,
    token: str | None = None,
    hosts: Sequence[str] = (),
    origins: Sequence[str] = (),
    ready: Callable[[str], None] | None = None,
    left_out: Callable[[LeftOut], None] | None = None,
    **options: Any,
) -> None:
    """Serve the skills below ``roots`` (none: the standard places) over standard input and output.

    ``http``: serve on HTTP instead, at ``HOST:PORT``; any address but loopback needs a ``token``. ``hosts`` are further
    names that the server goes by, ``origins`` further pages that may ask; ``ready`` is called with its address.
    ``left_out`` is called with how many skills are not served, if there are any (``check`` says which, and why), and
    with zeros where there is no skill at all.
    ``options`` are those of ``Server``. Returns when the client is gone, or on a signal to end. Raises
    ``SourceError`` for a folder that does not exist, and for an address beyond loopback without a token.
    """
    _check_folders(roots)
    host = parse_bind(http)[0] if http is not None else ""
    if http is not None:
        check_token(host, token)
    # A further name belongs to a proxy: the proxy asks from this machine, but its clients are elsewhere, and to them
    # the folders of this machine are of no use.
    options.setdefault("show_folders", http is None or (is_loopback(host) and not hosts))
    make_server = partial(_make_server, roots, options)
    with suppress(KeyboardInterrupt):
        if http is None:
            serve_stdio(make_server, left_out)
        else:
            from prowess.mcp.http import run_http

            server = make_server()
            run_http(server, http, token, hosts, origins, partial(_report_start, server, ready, left_out))


def _make_server(roots: tuple[str | os.PathLike[str], ...], options: dict[str, Any]) -> Server:
    return load_server_class()(*roots, **options)


def _report_start(
    server: Server, ready: Callable[[str], None] | None, left_out: Callable[[LeftOut], None] | None, url: str = ""
) -> None:
    """Call ``ready`` with the address, which people wait for, and only then begin to report what is left out."""
    if ready is not None:
        ready(url)
    if left_out is not None:
        server.tell_left_out(left_out)


def _check_folders(roots: tuple[str | os.PathLike[str], ...]) -> tuple[str, ...]:
    """Return the named folders; raises ``SourceError`` for one that does not exist, since a configuration is wrong."""
    folders = resolve_roots(roots)
    for folder in folders:
        require_folder(folder)
    return folders


def require_folder(path: str) -> None:
    """Raise ``SourceError`` for a path without a folder to serve; the error says if it is a file."""
    if stat_folder(path) is not None:
        return
    if exists(path):
        raise SourceError(
            f"{path!r} is not a folder: name a skill's folder or a folder of skills", code="not-a-directory"
        )
    raise SourceError(f"there is no folder {path!r}", code="missing-root")


def load_server_class() -> type[Server]:
    """Return the class ``Server``; raises ``SourceError`` (code ``missing-extra``) when the SDK is not installed."""
    try:
        from prowess.mcp.server import Server
    except ModuleNotFoundError as error:
        if error.name not in {"mcp", "mcp_types"}:
            raise
        raise SourceError(f"the MCP SDK is not installed: {explain_extra('mcp')}", code="missing-extra") from None
    return Server


class Survey(NamedTuple):
    """What a server would serve, and what it would not."""

    loaded: int
    """How many skills the tools, the prompts and the listing would serve: all that load, each name once."""
    served: int
    """How many skills the extension would serve."""
    refused: tuple[Refused, ...]
    """The skills that the extension would leave out, with every reason, sorted by location."""


def check(*roots: str | os.PathLike[str], limits: Limits | None = None) -> tuple[Refused, ...]:
    """Return the skills below ``roots`` (none: the standard places) that the extension would leave out, and why.

    Raises ``SourceError`` for a folder that does not exist.
    """
    return survey(*roots, limits=limits).refused


def survey(*roots: str | os.PathLike[str], limits: Limits | None = None) -> Survey:
    """Return how many skills below ``roots`` (none: the standard places) would be served, and what ``check`` returns.

    Raises ``SourceError`` for a folder that does not exist.
    """
    bounds = limits or DEFAULT_LIMITS
    served = SkillLoader(_check_folders(roots), bounds).load()
    manifests = ManifestCache(bounds)
    # A copy of a served skill is not a finding. Whether it is one takes hashing, which asking for ``shadowed`` does.
    different = {lost.location for lost in served.catalog.shadowed} if served.extension.copies else set()
    refused = [*served.extension.refused, *(copy for copy in served.extension.copies if copy.location in different)]
    count = 0
    for skill in served.skills.values():
        try:
            manifests.get_manifest(skill)
        except SkillError as error:
            refused.append(Refused(skill.location, as_issues(error), served.catalog.get(skill.name) is skill))
        else:
            count += 1
    refused += [Refused(issue.path, (issue,), loads=False) for issue in served.catalog.failures]
    return Survey(len(served.catalog), count, tuple(sorted(refused)))


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

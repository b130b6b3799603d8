"""A connection to an MCP server for code that is not asynchronous: its own thread, a bound on every wait.

It connects when it is first needed, again when the server went away meanwhile, and ends with the program at the latest.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from importlib import import_module
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import FetchError, SourceError
from prowess.hints import explain_extra
from prowess.sources.mcp_allowance import Allowance
from prowess.work import stop_with

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from contextlib import AbstractAsyncContextManager

    from prowess.limits import Limits

EXTENSION = "io.modelcontextprotocol/skills"


class Server(NamedTuple):
    """How to reach a server: a command to start, or an address."""

    label: str
    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    cwd: str | None = None


class Link:
    """The connection to one server. ``until``, by the monotonic clock, is when whoever asks has waited enough."""

    def __init__(self, server: Server, limits: Limits) -> None:
        self.server = server
        self.limits = limits
        self.allowance = Allowance(limits)
        self._lock = Lock()
        self._live: _Live | None = None

    def begin(self) -> None:
        """Begin to connect, and do not wait."""
        with self._lock:
            self._connecting()

    def capabilities(self, until: float = math.inf) -> dict[str, Any]:
        """What the server declares; raises ``FetchError`` when it cannot be reached in time."""
        return self._connected(until).capabilities

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; raises ``FetchError`` for an error, for too much, or for none in time."""
        with self.allowance.asking("max_mcp_message_bytes"):
            return self.ask(method, params)

    def ask(self, method: str, params: Mapping[str, Any], until: float = math.inf) -> dict[str, Any]:
        """The same as a part of something larger, for which there is an allowance already."""
        live = self._connected(until)
        try:
            return live.ask(method, params, until)
        except FetchError as error:
            if error.code == "download-too-large":
                self._leave(live)
            if error.code != "server-away":
                raise
        self._leave(live)
        return self._connected(until).ask(method, params, until)  # it went away meanwhile, and may be back

    def close(self) -> None:
        """End the connection, and the program that was started for it."""
        with self._lock:
            live, self._live = self._live, None
        if live is not None:
            live.end()

    def _leave(self, live: _Live) -> None:
        live.leave()
        self._forget(live)

    def _forget(self, live: _Live) -> None:
        with self._lock:
            if self._live is live:
                self._live = None

    def _connecting(self) -> _Live:
        if self._live is None or self._live.is_over:
            self._live = _Live(self.server, self.limits, self.allowance)
            weakref.finalize(self, self._live.end)
        return self._live

    def _connected(self, until: float) -> _Live:
        with self._lock:
            live = self._connecting()
        try:
            live.wait(until)
        except FetchError:
            self._forget(live)
            raise
        return live


class _Live:
    """One connection, in its thread."""

    def __init__(self, server: Server, limits: Limits, allowance: Allowance) -> None:
        self._server = server
        self._limits = limits
        self._allowance = allowance
        load_sdk()  # before the clock starts: how long that takes is no fault of the server
        self._began = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._client: Any = None
        self._over = asyncio.Event()
        self._up: Future[dict[str, Any]] = Future()
        self._thread = Thread(target=self._run, name=f"prowess-mcp-{server.label}", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive() or self._loop.is_closed()

    @property
    def capabilities(self) -> dict[str, Any]:
        return self._up.result(0)

    def wait(self, until: float) -> None:
        """Until the server has answered."""
        seconds = self._limits.max_mcp_connect_seconds
        answered = Event()  # not ``_up`` itself: others may wait for it when the call of one is cancelled
        self._up.add_done_callback(lambda _: answered.set())
        with stop_with(answered.set):
            answered.wait(_left(self._began + seconds, until))
        try:
            self._up.result(0)
        except TimeoutError:
            self.leave()
            raise self._away("no answer in time to the first word", "mcp-timeout") from None

    def ask(self, method: str, params: Mapping[str, Any], until: float) -> dict[str, Any]:
        """One request and its answer."""
        seconds = _left(time.monotonic() + self._limits.max_mcp_call_seconds, until)
        if not seconds:
            raise self._away(f"no time is left for {method}", "mcp-timeout")
        waiting = self._begin(self._ask(method, params))

        def cancel() -> None:
            waiting.cancel()

        try:
            with stop_with(cancel):
                return waiting.result(seconds)
        except TimeoutError:
            waiting.cancel()
            raise self._away(f"no answer in time to {method}", "mcp-timeout") from None
        except CancelledError:
            raise self._gone("the connection was closed meanwhile") from None

    def leave(self) -> None:
        """Close the connection, and do not wait."""
        with suppress(RuntimeError):  # closed already
            self._loop.call_soon_threadsafe(self._over.set)

    def end(self) -> None:
        """Close the connection and wait for that, a little."""
        self.leave()
        if current_thread() is not self._thread:  # a collected source is finalized by whichever thread collects
            self._thread.join(self._limits.max_mcp_connect_seconds)

    def _begin(self, work: Coroutine[Any, Any, dict[str, Any]]) -> Future[dict[str, Any]]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise self._away("the connection is closed", "server-away") from None

    def _away(self, why: str, code: str) -> FetchError:
        return FetchError(f"MCP server {self._server.label!r}: {why}", code=code)

    def _gone(self, why: str) -> FetchError:
        """What to raise when a connection ended: it sent too much, did not let us in, or else ``why``."""
        over, refused = self._allowance.over, self._allowance.refused
        if refused and not over:
            return self._away(refused, "request-refused")
        return self._away(over or why, "download-too-large" if over else "server-away")

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._connection())
        except BaseException as error:  # noqa: BLE001 - whatever ends a connection, whoever waits for it learns so
            self._fail(_reason(error))
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._fail("the connection ended")

    def _fail(self, why: str) -> None:
        """Tell whoever waits for the first answer that there will be none."""
        if not self._up.done():
            self._up.set_exception(self._gone(why))

    async def _connection(self) -> None:
        talking = asyncio.create_task(self._talk())
        over = asyncio.create_task(self._over.wait())
        await asyncio.wait({talking, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if not self._up.done():
            talking.cancel()
        await talking

    async def _talk(self) -> None:
        from mcp import Client  # noqa: PLC0415 - an extra
        from mcp.client.extension import advertise  # noqa: PLC0415

        async with Client(self._way(), extensions=[advertise(EXTENSION)], cache=None) as client:
            self._client = client
            self._up.set_result(client.server_capabilities.model_dump(by_alias=True, exclude_none=True))
            await self._over.wait()

    def _way(self) -> AbstractAsyncContextManager[Any]:
        from prowess.sources.mcp_pipe import program, site  # noqa: PLC0415 - an extra

        server, most, allowance = self._server, self._limits.max_mcp_message_bytes, self._allowance
        if server.command:
            return program(server.command, env=server.env, cwd=server.cwd, most=most, allowance=allowance)
        seconds = self._limits.max_mcp_call_seconds
        return site(server.url, headers=server.headers, most=most, seconds=seconds, allowance=allowance)

    async def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - an extra
        from mcp_types import CONNECTION_CLOSED, Request  # noqa: PLC0415
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

        request = Request[dict[str, Any], str](method=method, params=dict(params))
        try:
            return await self._client.session.send_request(request, TypeAdapter(dict[str, Any]))  # type: ignore[no-any-return]
        except ValidationError:
            raise self._away(f"{method}: the answer is not what the protocol says", "bad-entry") from None
        except Exception as error:  # noqa: BLE001 - whatever a server makes of its answers is said in one way
            why = f"{method}: {_clean(error.message) if isinstance(error, MCPError) else _reason(error)}"
            answered = isinstance(error, MCPError) and error.code != CONNECTION_CLOSED
            if answered and not self._allowance.over:
                raise self._away(why, "request-refused") from None
            self._over.set()
            raise self._gone(why) from None


def _left(*ends: float) -> float:
    """How long it is to the first of these moments."""
    return max(0.0, min(ends) - time.monotonic())


def _reason(error: BaseException) -> str:
    """What ended a connection, in a few words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return _clean(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _clean(text: str) -> str:
    from prowess.spec.hidden import one_line  # noqa: PLC0415 - only when something went wrong
    from prowess.spec.redaction import scrub_text  # noqa: PLC0415

    return one_line(scrub_text(text))[:200]


def check_installed(find: Callable[[str], object] | None = None) -> None:
    """Raise ``SourceError`` where the SDK is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - only for those who connect

    if (find or find_spec)("mcp") is None:
        raise SourceError(f"the MCP SDK is not installed: {explain_extra('mcp')}", code="missing-extra")


def load_sdk() -> None:
    """Import the SDK, which takes a while the first time; raises ``SourceError`` where that cannot be done."""
    check_installed()
    try:
        for module in ("mcp", "mcp.client.extension", "prowess.sources.mcp_pipe"):
            import_module(module)
    except ImportError as error:
        raise SourceError(f"the MCP SDK cannot be imported: {error.name}", code="missing-extra") from None

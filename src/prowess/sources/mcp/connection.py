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
from prowess.sources.mcp.quota import ReceiveQuota
from prowess.thread_work import call_on_cancel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from contextlib import AbstractAsyncContextManager

    from prowess.limits import Limits

EXTENSION = "io.modelcontextprotocol/skills"


class McpServer(NamedTuple):
    """How to reach a server: a command to start, or an address."""

    label: str
    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    cwd: str | None = None


class McpConnection:
    """The connection to one server. ``until``, by the monotonic clock, is when whoever asks has waited enough."""

    def __init__(self, server: McpServer, limits: Limits) -> None:
        self.server = server
        self.limits = limits
        self.quota = ReceiveQuota(limits)
        self._lock = Lock()
        self._current: _ConnectionThread | None = None

    def start_connecting(self) -> None:
        """Begin to connect, and do not wait."""
        with self._lock:
            self._start_thread()

    def capabilities(self, until: float = math.inf) -> dict[str, Any]:
        """What the server declares; raises ``FetchError`` when it cannot be reached in time."""
        return self._get_ready_thread(until).capabilities

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; raises ``FetchError`` for an error, for too much, or for none in time."""
        with self.quota.reserve("max_mcp_message_bytes"):
            return self.send_request(method, params)

    def send_request(self, method: str, params: Mapping[str, Any], until: float = math.inf) -> dict[str, Any]:
        """The same as a part of something larger, for which there is an allowance already."""
        live = self._get_ready_thread(until)
        try:
            return live.send_request(method, params, until)
        except FetchError as error:
            if error.code == "download-too-large":
                self._drop_thread(live)
            if error.code != "server-away":
                raise
        self._drop_thread(live)
        return self._get_ready_thread(until).send_request(
            method, params, until
        )  # it went away meanwhile, and may be back

    def close(self) -> None:
        """End the connection, and the program that was started for it."""
        with self._lock:
            live, self._current = self._current, None
        if live is not None:
            live.close()

    def _drop_thread(self, live: _ConnectionThread) -> None:
        live.request_close()
        self._forget_thread(live)

    def _forget_thread(self, live: _ConnectionThread) -> None:
        with self._lock:
            if self._current is live:
                self._current = None

    def _start_thread(self) -> _ConnectionThread:
        if self._current is None or self._current.is_closed:
            self._current = _ConnectionThread(self.server, self.limits, self.quota)
            weakref.finalize(self, self._current.close)
        return self._current

    def _get_ready_thread(self, until: float) -> _ConnectionThread:
        with self._lock:
            live = self._start_thread()
        try:
            live.wait_until_ready(until)
        except FetchError:
            self._forget_thread(live)
            raise
        return live


class _ConnectionThread:
    """One connection, in its thread."""

    def __init__(self, server: McpServer, limits: Limits, allowance: ReceiveQuota) -> None:
        self._server = server
        self._limits = limits
        self._quota = allowance
        load_sdk()  # before the clock starts: how long that takes is no fault of the server
        self._began = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._client: Any = None
        self._closing = asyncio.Event()
        self._ready: Future[dict[str, Any]] = Future()
        self._thread = Thread(target=self._run, name=f"prowess-mcp-{server.label}", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        return not self._thread.is_alive() or self._loop.is_closed()

    @property
    def capabilities(self) -> dict[str, Any]:
        return self._ready.result(0)

    def wait_until_ready(self, until: float) -> None:
        """Until the server has answered."""
        seconds = self._limits.max_mcp_connect_seconds
        answered = Event()  # not ``_ready`` itself: others may wait for it when the call of one is cancelled
        self._ready.add_done_callback(lambda _: answered.set())
        with call_on_cancel(answered.set):
            answered.wait(_seconds_left(self._began + seconds, until))
        try:
            self._ready.result(0)
        except TimeoutError:
            self.request_close()
            raise self._make_error("no answer in time to the first word", "mcp-timeout") from None

    def send_request(self, method: str, params: Mapping[str, Any], until: float) -> dict[str, Any]:
        """One request and its answer."""
        seconds = _seconds_left(time.monotonic() + self._limits.max_mcp_call_seconds, until)
        if not seconds:
            raise self._make_error(f"no time is left for {method}", "mcp-timeout")
        waiting = self._submit(self._send_request(method, params))

        def cancel() -> None:
            waiting.cancel()

        try:
            with call_on_cancel(cancel):
                return waiting.result(seconds)
        except TimeoutError:
            waiting.cancel()
            raise self._make_error(f"no answer in time to {method}", "mcp-timeout") from None
        except CancelledError:
            raise self._make_closed_error("the connection was closed meanwhile") from None

    def request_close(self) -> None:
        """Close the connection, and do not wait."""
        with suppress(RuntimeError):  # closed already
            self._loop.call_soon_threadsafe(self._closing.set)

    def close(self) -> None:
        """Close the connection and wait for that, a little."""
        self.request_close()
        if current_thread() is not self._thread:  # a collected source is finalized by whichever thread collects
            self._thread.join(self._limits.max_mcp_connect_seconds)

    def _submit(self, work: Coroutine[Any, Any, dict[str, Any]]) -> Future[dict[str, Any]]:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError:
            work.close()
            raise self._make_error("the connection is closed", "server-away") from None

    def _make_error(self, why: str, code: str) -> FetchError:
        return FetchError(f"MCP server {self._server.label!r}: {why}", code=code)

    def _make_closed_error(self, why: str) -> FetchError:
        """What to raise when a connection ended: it sent too much, did not let us in, or else ``why``."""
        over, refused = self._quota.excess_reason, self._quota.refusal_reason
        if refused and not over:
            return self._make_error(refused, "request-refused")
        return self._make_error(over or why, "download-too-large" if over else "server-away")

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._run_connection())
        except BaseException as error:  # noqa: BLE001 - whatever ends a connection, whoever waits for it learns so
            self._fail_waiting(_describe_error(error))
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._fail_waiting("the connection ended")

    def _fail_waiting(self, why: str) -> None:
        """Tell whoever waits for the first answer that there will be none."""
        if not self._ready.done():
            self._ready.set_exception(self._make_closed_error(why))

    async def _run_connection(self) -> None:
        talking = asyncio.create_task(self._run_client())
        over = asyncio.create_task(self._closing.wait())
        await asyncio.wait({talking, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if not self._ready.done():
            talking.cancel()
        await talking

    async def _run_client(self) -> None:
        from mcp import Client  # noqa: PLC0415 - an extra
        from mcp.client.extension import advertise  # noqa: PLC0415

        async with Client(self._open_transport(), extensions=[advertise(EXTENSION)], cache=None) as client:
            self._client = client
            self._ready.set_result(client.server_capabilities.model_dump(by_alias=True, exclude_none=True))
            await self._closing.wait()

    def _open_transport(self) -> AbstractAsyncContextManager[Any]:
        from prowess.sources.mcp.transport import open_program, open_site  # noqa: PLC0415 - an extra

        server, most, allowance = self._server, self._limits.max_mcp_message_bytes, self._quota
        if server.command:
            return open_program(server.command, env=server.env, cwd=server.cwd, most=most, allowance=allowance)
        seconds = self._limits.max_mcp_call_seconds
        return open_site(server.url, headers=server.headers, most=most, seconds=seconds, allowance=allowance)

    async def _send_request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415 - an extra
        from mcp_types import CONNECTION_CLOSED, Request  # noqa: PLC0415
        from pydantic import TypeAdapter, ValidationError  # noqa: PLC0415

        request = Request[dict[str, Any], str](method=method, params=dict(params))
        try:
            return await self._client.session.send_request(request, TypeAdapter(dict[str, Any]))  # type: ignore[no-any-return]
        except ValidationError:
            raise self._make_error(f"{method}: the answer is not what the protocol says", "bad-entry") from None
        except Exception as error:  # noqa: BLE001 - whatever a server makes of its answers is said in one way
            why = f"{method}: {_clean_text(error.message) if isinstance(error, MCPError) else _describe_error(error)}"
            answered = isinstance(error, MCPError) and error.code != CONNECTION_CLOSED
            if answered and not self._quota.excess_reason:
                raise self._make_error(why, "request-refused") from None
            self._closing.set()
            raise self._make_closed_error(why) from None


def _seconds_left(*ends: float) -> float:
    """How long it is to the first of these moments."""
    return max(0.0, min(ends) - time.monotonic())


def _describe_error(error: BaseException) -> str:
    """What ended a connection, in a few words."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return _clean_text(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _clean_text(text: str) -> str:
    from prowess.spec.hidden_characters import to_one_line  # noqa: PLC0415 - only when something went wrong
    from prowess.spec.redaction import scrub_text  # noqa: PLC0415

    return to_one_line(scrub_text(text))[:200]


def check_sdk_installed(find: Callable[[str], object] | None = None) -> None:
    """Raise ``SourceError`` where the SDK is not installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - only for those who connect

    if (find or find_spec)("mcp") is None:
        raise SourceError(f"the MCP SDK is not installed: {explain_extra('mcp')}", code="missing-extra")


def load_sdk() -> None:
    """Import the SDK, which takes a while the first time; raises ``SourceError`` where that cannot be done."""
    check_sdk_installed()
    try:
        for module in ("mcp", "mcp.client.extension", "prowess.sources.mcp.transport"):
            import_module(module)
    except ImportError as error:
        raise SourceError(f"the MCP SDK cannot be imported: {error.name}", code="missing-extra") from None

"""A connection to an MCP server for synchronous code: it runs in a thread of its own, and every wait has a limit.

It connects when it is first needed, and again after the server closed the connection. It ends with the program at the
latest.
"""

from __future__ import annotations

import asyncio
import math
import time
import weakref
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from threading import Event, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import FetchError, SourceError
from prowess.hints import explain_extra
from prowess.sources.mcp import EXTENSION
from prowess.sources.mcp.quota import ReceiveQuota
from prowess.text.hidden_characters import to_one_line
from prowess.text.redaction import scrub_text
from prowess.thread_work import call_on_cancel

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from contextlib import AbstractAsyncContextManager

    from prowess.limits import Limits


class McpServer(NamedTuple):
    """How to reach a server: a command to start, or an address."""

    label: str
    command: tuple[str, ...] = ()
    url: str = ""
    headers: Mapping[str, str] = {}
    env: Mapping[str, str] = {}
    cwd: str | None = None


class McpConnection:
    """The connection to one server. A ``deadline`` is the time of the monotonic clock at which a caller gives up."""

    def __init__(self, server: McpServer, limits: Limits) -> None:
        self.server = server
        self.limits = limits
        self.quota = ReceiveQuota(limits)
        self._lock = Lock()
        self._current: _ConnectionThread | None = None

    def start_connecting(self) -> None:
        """Begin to connect, without waiting."""
        with self._lock:
            self._start_thread()

    def capabilities(self, deadline: float = math.inf) -> dict[str, Any]:
        """Return what the server declares; raises ``FetchError`` when it cannot be reached in time."""
        return self._get_ready_thread(deadline).capabilities

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and return the answer; raises ``FetchError`` when it is an error, too long, or too late."""
        with self.quota.reserve("max_mcp_message_bytes"):
            return self.send_request(method, params)

    def send_request(self, method: str, params: Mapping[str, Any], deadline: float = math.inf) -> dict[str, Any]:
        """Send one request within a quota that the caller has reserved, and return the answer.

        Raises ``FetchError`` when the answer is an error, too long, or too late.
        """
        thread = self._get_ready_thread(deadline)
        try:
            return thread.send_request(method, params, deadline)
        except FetchError as error:
            if error.code == "download-too-large":  # the rest of the answer would come in before the next one
                self._drop_thread(thread)
            if error.code != "server-away":
                raise
        self._drop_thread(thread)
        # The server closed the connection since the last request. It may have restarted, so one more try is fair.
        return self._get_ready_thread(deadline).send_request(method, params, deadline)

    def close(self) -> None:
        """Close the connection, and end the program that was started for it."""
        with self._lock:
            thread, self._current = self._current, None
        if thread is not None:
            thread.close()

    def _drop_thread(self, thread: _ConnectionThread) -> None:
        thread.request_close()
        self._forget_thread(thread)

    def _forget_thread(self, thread: _ConnectionThread) -> None:
        with self._lock:
            if self._current is thread:  # another caller may have connected again already
                self._current = None

    def _start_thread(self) -> _ConnectionThread:
        if self._current is None or self._current.is_closed:
            self._current = _ConnectionThread(self.server, self.limits, self.quota)
            weakref.finalize(self, self._current.close)  # a source that nobody closes must not leave its program behind
        return self._current

    def _get_ready_thread(self, deadline: float) -> _ConnectionThread:
        with self._lock:
            thread = self._start_thread()
        try:
            thread.wait_until_ready(deadline)
        except FetchError:
            self._forget_thread(thread)
            raise
        return thread


class _ConnectionThread:
    """One connection, and the thread with the event loop that it runs in."""

    def __init__(self, server: McpServer, limits: Limits, quota: ReceiveQuota) -> None:
        self._server = server
        self._limits = limits
        self._quota = quota
        load_sdk()  # before the clock starts: a slow import is not the fault of the server
        self._began = time.monotonic()
        self._loop = asyncio.new_event_loop()
        self._client: Any = None
        self._closing = asyncio.Event()
        self._ready: Future[dict[str, Any]] = Future()
        self._thread = Thread(target=self._run, name=f"prowess-mcp-{server.label}", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """True when nothing can be sent on it any more."""
        return not self._thread.is_alive() or self._loop.is_closed()

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the server declared when it was connected."""
        return self._ready.result(0)

    def wait_until_ready(self, deadline: float) -> None:
        """Wait until the server has answered the first message; raises ``FetchError`` when it fails or is too late."""
        seconds = self._limits.max_mcp_connect_seconds
        answered = Event()  # of this caller: when its call is cancelled, others still wait for ``_ready``
        self._ready.add_done_callback(lambda _: answered.set())
        with call_on_cancel(answered.set):
            answered.wait(_seconds_left(self._began + seconds, deadline))
        try:
            self._ready.result(0)
        except TimeoutError:
            self.request_close()
            raise self._make_error("the server did not answer the handshake in time", "mcp-timeout") from None

    def send_request(self, method: str, params: Mapping[str, Any], deadline: float) -> dict[str, Any]:
        """Send one request and return the answer; raises ``FetchError`` when it is an error or too late."""
        seconds = _seconds_left(time.monotonic() + self._limits.max_mcp_call_seconds, deadline)
        if not seconds:  # sending what nobody will wait for would only cost the quota
            raise self._make_error(f"the time ran out before {method}", "mcp-timeout")
        future = self._submit(self._send_request(method, params))

        def cancel() -> None:
            future.cancel()

        try:
            with call_on_cancel(cancel):
                return future.result(seconds)
        except TimeoutError:
            future.cancel()
            raise self._make_error(f"the server did not answer {method} in time", "mcp-timeout") from None
        except CancelledError:
            raise self._make_closed_error("the connection was closed meanwhile") from None

    def request_close(self) -> None:
        """Begin to close the connection, without waiting."""
        with suppress(RuntimeError):  # closed already
            self._loop.call_soon_threadsafe(self._closing.set)

    def close(self) -> None:
        """Close the connection, and wait a little for its end."""
        self.request_close()
        if current_thread() is not self._thread:  # garbage is collected in any thread, also in this one
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
        """Return the error for a connection that ended: the server sent too much, refused us, or else ``why``."""
        excess, refusal = self._quota.excess_reason, self._quota.refusal_reason
        if refusal and not excess:
            return self._make_error(refusal, "request-refused")
        return self._make_error(excess or why, "download-too-large" if excess else "server-away")

    # -- in the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._run_connection())
        except BaseException as error:  # noqa: BLE001 - those who wait for the connection get the error
            self._fail_waiting(_describe_error(error))
        finally:
            # In this order: tasks end, then generators that they left open, and only then the loop can close.
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()
            self._fail_waiting("the connection ended")

    def _fail_waiting(self, why: str) -> None:
        """Raise an error in the threads that wait for the first answer."""
        if not self._ready.done():
            self._ready.set_exception(self._make_closed_error(why))

    async def _run_connection(self) -> None:
        client = asyncio.create_task(self._run_client())
        closing = asyncio.create_task(self._closing.wait())
        await asyncio.wait({client, closing}, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        if not self._ready.done():  # it still connects, and does not look at ``_closing``
            client.cancel()
        await client

    async def _run_client(self) -> None:
        from mcp import Client
        from mcp.client.extension import advertise

        async with Client(self._open_transport(), extensions=[advertise(EXTENSION)], cache=None) as client:
            self._client = client
            self._ready.set_result(client.server_capabilities.model_dump(by_alias=True, exclude_none=True))
            await self._closing.wait()

    def _open_transport(self) -> AbstractAsyncContextManager[Any]:
        from prowess.sources.mcp.transport import open_program, open_site

        server, max_bytes, quota = self._server, self._limits.max_mcp_message_bytes, self._quota
        if server.command:
            return open_program(server.command, env=server.env, cwd=server.cwd, max_bytes=max_bytes, quota=quota)
        seconds = self._limits.max_mcp_call_seconds
        return open_site(server.url, headers=server.headers, max_bytes=max_bytes, seconds=seconds, quota=quota)

    async def _send_request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        from mcp.shared.exceptions import MCPError
        from mcp_types import CONNECTION_CLOSED, Request
        from pydantic import TypeAdapter, ValidationError

        request = Request[dict[str, Any], str](method=method, params=dict(params))
        try:
            return await self._client.session.send_request(request, TypeAdapter(dict[str, Any]))  # type: ignore[no-any-return]
        except ValidationError:
            raise self._make_error(f"{method}: the answer is not what the protocol says", "bad-entry") from None
        except Exception as error:  # noqa: BLE001 - the SDK raises many kinds for what a server sends
            why = f"{method}: {_clean_text(error.message) if isinstance(error, MCPError) else _describe_error(error)}"
            is_answer = isinstance(error, MCPError) and error.code != CONNECTION_CLOSED
            if is_answer and not self._quota.excess_reason:
                raise self._make_error(why, "request-refused") from None
            self._closing.set()  # the connection is broken; the next request begins a new one
            raise self._make_closed_error(why) from None


def _seconds_left(*moments: float) -> float:
    """Return the seconds to the earliest of these moments; 0 when it has passed."""
    return max(0.0, min(moments) - time.monotonic())


def _describe_error(error: BaseException) -> str:
    """Return in a few words what ended a connection; of a group of errors, the first one."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return _clean_text(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)


def _clean_text(text: str) -> str:
    """Return a string that may come from a server as one short line, without secrets and control characters."""
    return to_one_line(scrub_text(text))[:200]


def load_sdk() -> None:
    """Import the MCP SDK, which takes a while the first time; raises ``SourceError`` when it cannot be imported."""
    if find_spec("mcp") is None:
        raise SourceError(f"the MCP SDK is not installed: {explain_extra('mcp')}", code="missing-extra")
    try:
        for module in ("mcp", "mcp.client.extension", "prowess.sources.mcp.transport"):
            import_module(module)
    except ImportError as error:
        raise SourceError(f"the MCP SDK cannot be imported: {error.name}", code="missing-extra") from None

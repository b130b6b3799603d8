"""The transports to an MCP server, a program's pipes or HTTP, with a limit on what the server may send.

The transports of the SDK read without a limit, so a server could fill the memory.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import httpx2
import mcp_types as types
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from prowess.sources.mcp.quota import JsonMeter

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from prowess.sources.mcp.quota import ReceiveQuota

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_EXIT_SECONDS = 2.0  # how long a program may take to end by itself, and then after each signal
_REFUSAL_HINTS = {
    401: "it wants a token that it knows, headers={'Authorization': 'Bearer …'}",
    403: "it does not let us in",
    421: "it does not go by that name",
}
_CLOSED_ERRORS = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@asynccontextmanager
async def open_program(
    command: Sequence[str], *, env: Mapping[str, str] | None, cwd: str | None, max_bytes: int, quota: ReceiveQuota
) -> AsyncIterator[Streams]:
    """Start a program that speaks MCP on its pipes, and yield the two streams of messages.

    The program ends with the ``with`` block, and so do all processes in its session. A process that it moved into a
    session of its own (``setsid``) is not found, and may live on. The program sees a few of our environment variables,
    and ``env``. A line longer than ``max_bytes`` ends the connection, and so does more in all than the quota.
    """
    process = await anyio.open_process(
        list(command),
        env={**get_default_environment(), **(env or {})},
        cwd=cwd,
        stderr=subprocess.DEVNULL,  # nobody reads it, and a full pipe would stop the program
        start_new_session=os.name != "nt",
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read_messages, process, incoming, max_bytes, quota)
        group.start_soon(_write_messages, process, outgoing, incoming)
        try:
            yield received, sent
        finally:
            with anyio.CancelScope(shield=True):  # a cancelled caller must not leave the program behind
                await _end_process(process)
                for stream in (received, sent, incoming, outgoing):
                    await stream.aclose()
            group.cancel_scope.cancel()


async def _read_messages(process: Process, incoming: Incoming, max_bytes: int, quota: ReceiveQuota) -> None:
    assert process.stdout is not None
    async with incoming:
        with suppress(*_CLOSED_ERRORS):
            async for line in _read_lines(process.stdout, max_bytes, quota):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:  # a line that is not a message; the SDK decides what that means
                    await incoming.send(error)
                    continue
                await incoming.send(SessionMessage(message))


async def _read_lines(stream: ByteReceiveStream, max_bytes: int, quota: ReceiveQuota) -> AsyncIterator[bytes]:
    """Yield lines as they come; stop when one line, or all together, are too long."""
    rest, meter = bytearray(), JsonMeter()
    async for chunk in stream:
        if not quota.consume(meter.measure(chunk)):
            return
        rest += chunk
        if b"\n" in chunk:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                if line.strip():
                    yield line
        if len(rest) > max_bytes:
            quota.report_excess("max_mcp_message_bytes")
            return


async def _write_messages(
    process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: Incoming
) -> None:
    assert process.stdin is not None
    try:
        async with outgoing:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
    except _CLOSED_ERRORS:
        await incoming.aclose()  # so that requests that wait for an answer fail now


async def _end_process(process: Process) -> None:
    """Close the input of a program, wait a little, then end it and its children."""
    if process.stdin is not None:
        with suppress(*_CLOSED_ERRORS):
            await process.stdin.aclose()
    for signal_number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with anyio.move_on_after(_EXIT_SECONDS):
            while process.returncode is None:  # noqa: ASYNC110 - waiting for it also waits for children with its pipes
                await anyio.sleep(0.01)
        with suppress(OSError):
            if hasattr(os, "killpg"):  # the whole group, because the children of a process may outlive it
                os.killpg(process.pid, signal_number)
            elif process.returncode is None:
                process.kill()
    with anyio.move_on_after(_EXIT_SECONDS):
        await process.aclose()


# -- HTTP --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def open_site(
    url: str, *, headers: Mapping[str, str], max_bytes: int, seconds: float, quota: ReceiveQuota
) -> AsyncIterator[Streams]:
    """Connect to a server at an address, and yield the two streams of messages.

    A message of more than ``max_bytes`` bytes, or a compressed one, is refused. More in all than the quota ends the
    answer that it comes in.
    """
    timeout = httpx2.Timeout(seconds)
    transport = _BoundedTransport(max_bytes, quota)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout, transport=transport) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=max_bytes) as streams,
    ):
        yield streams  # type: ignore[misc]  # the SDK's own kind of stream, with the same methods


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """The usual HTTP transport, which measures what comes in."""

    def __init__(self, max_bytes: int, quota: ReceiveQuota) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._max_bytes = max_bytes
        self._quota = quota

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # Compressed bytes would be measured before they unfold.
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for", request=request)
        if response.status_code in _REFUSAL_HINTS:
            self._quota.refusal_reason = f"it answers {response.status_code}: {_REFUSAL_HINTS[response.status_code]}"
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        max_bytes = math.inf if is_stream else self._max_bytes  # the SDK counts the messages of a stream one by one
        response.stream = _BoundedStream(response.stream, max_bytes, self._quota)  # type: ignore[arg-type]  # asynchronous here
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends in an error when it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream, max_bytes: float, quota: ReceiveQuota) -> None:
        self._inner = inner
        self._max_bytes = max_bytes
        self._quota = quota

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, meter = self._max_bytes, JsonMeter()
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                self._quota.report_excess("max_mcp_message_bytes")
            if not self._quota.consume(meter.measure(chunk)):
                raise httpx2.ReadError(self._quota.excess_reason)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

"""Ways to a server that no server can overload: a program's pipes, or HTTP, with a bound on what comes in."""

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

_EXIT_SECONDS = 2.0
_REFUSAL_HINTS = {
    401: "it wants a token that it knows, headers={'Authorization': 'Bearer …'}",
    403: "it does not let us in",
    421: "it does not go by that name",
}
_CLOSED_ERRORS = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@asynccontextmanager
async def open_program(
    command: Sequence[str], *, env: Mapping[str, str] | None, cwd: str | None, most: int, allowance: ReceiveQuota
) -> AsyncIterator[Streams]:
    """A program that speaks on its standard output; it ends with the block, and so does all that stays in its session.

    A process that it moved into a session of its own (``setsid``) is not found and may live on.
    It sees few of our variables, and ``env``. A line longer than ``most`` bytes ends the connection, and so does more
    in all than the ``allowance``.
    """
    own = os.name != "nt"
    process = await anyio.open_process(
        list(command),
        env={**get_default_environment(), **(env or {})},
        cwd=cwd,
        stderr=subprocess.DEVNULL,
        start_new_session=own,
    )
    incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read_messages, process, incoming, most, allowance)
        group.start_soon(_write_messages, process, outgoing, incoming)
        try:
            yield received, sent
        finally:
            with anyio.CancelScope(shield=True):
                await _end_process(process)
                for stream in (received, sent, incoming, outgoing):
                    await stream.aclose()
            group.cancel_scope.cancel()


async def _read_messages(process: Process, incoming: Incoming, most: int, allowance: ReceiveQuota) -> None:
    assert process.stdout is not None  # noqa: S101 - opened with pipes
    async with incoming:
        with suppress(*_CLOSED_ERRORS):
            async for line in _read_lines(process.stdout, most, allowance):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await incoming.send(error)
                    continue
                await incoming.send(SessionMessage(message))


async def _read_lines(stream: ByteReceiveStream, most: int, allowance: ReceiveQuota) -> AsyncIterator[bytes]:
    """Lines as they come; the end of the stream when one is too long, or all of them together."""
    rest, scale = bytearray(), JsonMeter()
    async for chunk in stream:
        if not allowance.consume(scale.measure(chunk)):
            return
        rest += chunk
        if b"\n" in chunk:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                if line.strip():
                    yield line
        if len(rest) > most:
            allowance.mark_exceeded("max_mcp_message_bytes")
            return


async def _write_messages(
    process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: Incoming
) -> None:
    assert process.stdin is not None  # noqa: S101 - opened with pipes
    try:
        async with outgoing:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
    except _CLOSED_ERRORS:
        await incoming.aclose()  # whoever waits for an answer learns that none will come


async def _end_process(process: Process) -> None:
    """Close its input, wait a little, then end it and its children."""
    if process.stdin is not None:
        with suppress(*_CLOSED_ERRORS):
            await process.stdin.aclose()
    for ask in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with anyio.move_on_after(_EXIT_SECONDS):
            while process.returncode is None:  # noqa: ASYNC110 - waiting for it also waits for children with its pipes
                await anyio.sleep(0.01)
        _signal_group(process, ask)
    with anyio.move_on_after(_EXIT_SECONDS):
        await process.aclose()


def _signal_group(process: Process, ask: signal.Signals) -> None:
    """To its whole group: children that outlive it go as well."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, ask)
        elif process.returncode is None:
            process.kill()


# -- HTTP --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def open_site(
    url: str, *, headers: Mapping[str, str], most: int, seconds: float, allowance: ReceiveQuota
) -> AsyncIterator[Streams]:
    """A server at an address; a message of more than ``most`` bytes, or a compressed one, is none.

    More in all than the ``allowance`` ends the answer that it came in.
    """
    timeout = httpx2.Timeout(seconds)
    transport = _BoundedTransport(most, allowance)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout, transport=transport) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=most) as streams,
    ):
        yield streams  # type: ignore[misc]  # the SDK's own kind of stream, with the same methods


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """The usual transport, which weighs what comes in."""

    def __init__(self, most: int, allowance: ReceiveQuota) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._most = most
        self._allowance = allowance

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for", request=request)
        if response.status_code in _REFUSAL_HINTS:
            self._allowance.refusal_reason = (
                f"it answers {response.status_code}: {_REFUSAL_HINTS[response.status_code]}"
            )
        several = response.headers.get("content-type", "").startswith("text/event-stream")
        most = math.inf if several else self._most  # the SDK counts the messages of a stream one by one
        response.stream = _BoundedStream(response.stream, most, self._allowance)  # type: ignore[arg-type]  # asynchronous here
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """A body that ends in an error when it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: float, allowance: ReceiveQuota) -> None:
        self._inner = inner
        self._most = most
        self._allowance = allowance

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left, scale = self._most, JsonMeter()
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                self._allowance.mark_exceeded("max_mcp_message_bytes")
            if not self._allowance.consume(scale.measure(chunk)):
                raise httpx2.ReadError(self._allowance.excess_reason)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

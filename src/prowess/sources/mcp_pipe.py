"""Ways to a server that no server can overload: a program's pipes, or HTTP, with a bound on every answer."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from anyio.abc import ByteReceiveStream, Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    Incoming = MemoryObjectSendStream[SessionMessage | Exception]
    Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]

_GRACE = 2.0
_BROKEN = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError)


@asynccontextmanager
async def program(
    command: Sequence[str], *, env: Mapping[str, str] | None, cwd: str | None, most: int
) -> AsyncIterator[Streams]:
    """A program that speaks on its standard output; it ends with the block, and everything that it started.

    It sees few of our variables, and ``env``. A line longer than ``most`` bytes ends the connection.
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
        group.start_soon(_read, process, incoming, most)
        group.start_soon(_write, process, outgoing, incoming)
        try:
            yield received, sent
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
                for stream in (received, sent, incoming, outgoing):
                    await stream.aclose()
            group.cancel_scope.cancel()


async def _read(process: Process, incoming: Incoming, most: int) -> None:
    assert process.stdout is not None  # noqa: S101 - opened with pipes
    async with incoming:
        with suppress(*_BROKEN):
            async for line in _lines(process.stdout, most):
                try:
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError as error:
                    await incoming.send(error)
                    continue
                await incoming.send(SessionMessage(message))


async def _lines(stream: ByteReceiveStream, most: int) -> AsyncIterator[bytes]:
    """Lines as they come; the end of the stream when one is too long."""
    rest = bytearray()
    async for chunk in stream:
        rest += chunk
        if b"\n" in chunk:
            *lines, last = bytes(rest).split(b"\n")
            rest = bytearray(last)
            for line in lines:
                if line.strip():
                    yield line
        if len(rest) > most:
            return


async def _write(process: Process, outgoing: MemoryObjectReceiveStream[SessionMessage], incoming: Incoming) -> None:
    assert process.stdin is not None  # noqa: S101 - opened with pipes
    try:
        async with outgoing:
            async for message in outgoing:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                await process.stdin.send(f"{text}\n".encode())
    except _BROKEN:
        await incoming.aclose()  # whoever waits for an answer learns that none will come


async def _end(process: Process) -> None:
    """Close its input, wait a little, then end it and its children."""
    if process.stdin is not None:
        with suppress(*_BROKEN):
            await process.stdin.aclose()
    for ask in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with anyio.move_on_after(_GRACE):
            while process.returncode is None:  # noqa: ASYNC110 - waiting for it also waits for children with its pipes
                await anyio.sleep(0.01)
        _signal(process, ask)
    with anyio.move_on_after(_GRACE):
        await process.aclose()


def _signal(process: Process, ask: signal.Signals) -> None:
    """To its whole group: children that outlive it go as well."""
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, ask)
        elif process.returncode is None:
            process.kill()


# -- HTTP --------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def site(url: str, *, headers: Mapping[str, str], most: int, seconds: float) -> AsyncIterator[Streams]:
    """A server at an address; an answer of more than ``most`` bytes, or a compressed one, is none."""
    timeout = httpx2.Timeout(seconds)
    async with (
        httpx2.AsyncClient(headers=dict(headers), timeout=timeout, transport=_Bounded(most)) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=most) as streams,
    ):
        yield streams  # type: ignore[misc]  # the SDK's own kind of stream, with the same methods


class _Bounded(httpx2.AsyncBaseTransport):
    """The usual transport, which counts what comes in."""

    def __init__(self, most: int) -> None:
        self._inner = httpx2.AsyncHTTPTransport()
        self._most = most

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["accept-encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.DecodingError("the answer is compressed, which was not asked for", request=request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _Counted(response.stream, self._most)  # type: ignore[arg-type]  # asynchronous here
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx2.AsyncByteStream):
    """A body that ends in an error when it is too long."""

    def __init__(self, inner: httpx2.AsyncByteStream, most: int) -> None:
        self._inner = inner
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        async for chunk in self._inner:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer has more than {self._most} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

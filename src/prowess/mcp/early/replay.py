"""Streams that replay to the MCP SDK what a client sent while the SDK was loading.

Prowess has answered some of these lines already. The SDK still handles every line, in order, so that its state is that
of a server which has answered everything itself. Its answer to a request that was answered early is not sent again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from prowess.mcp.early.answers import EarlyReply


class ReplayedInput:
    """The SDK's stream of messages from the client, with the early lines in front of it.

    After a line that has been answered, the SDK gets the next one only when it has answered too. ``on_difference`` is
    called after the early lines if the SDK has answered any of them differently.
    """

    def __init__(
        self,
        stream: Any,
        lines: list[tuple[str, EarlyReply | None]],
        output: ReplayedOutput,
        on_difference: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._lines = lines
        self._output = output
        self._on_difference = on_difference
        self._messages = self._read_messages()  # one for all loops: the SDK begins a second loop where the first ended

    def __aiter__(self) -> AsyncIterator[SessionMessage | Exception]:
        return self._messages

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def _read_messages(self) -> AsyncIterator[SessionMessage | Exception]:
        for line, reply in self._lines:
            if reply is None or reply.result is None:
                yield _parse_line(line)
            else:
                answered = self._output.expect_answer(reply)
                yield _parse_line(line)
                await answered.wait()
        if not self._output.are_equal:
            self._on_difference()
        async for message in self._stream:
            yield message


class ReplayedOutput:
    """The SDK's stream of messages to the client, without the answers that the client has already."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._expected: EarlyReply | None = None
        self._answered = anyio.Event()
        self.are_equal = True
        """Whether the SDK has answered every request as it was answered before."""

    def expect_answer(self, reply: EarlyReply) -> anyio.Event:
        """Drop the next answer to the request of ``reply``; returns what is set when it has come."""
        self._expected, self._answered = reply, anyio.Event()
        return self._answered

    async def send(self, item: SessionMessage) -> None:
        """Send a message, unless it answers the request that was answered early."""
        message, expected = item.message, self._expected
        is_answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
        if expected is None or not is_answer or getattr(message, "id", None) != expected.request_id:
            await self._stream.send(item)
            return
        self.are_equal = self.are_equal and getattr(message, "result", None) == expected.result
        self._expected = None
        self._answered.set()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _parse_line(line: str) -> SessionMessage | Exception:
    """Return the message of a line, or what is wrong with it, as the SDK's own reader does."""
    try:
        return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error

"""The client on standard input and output while the MCP SDK loads: its lines are answered, and kept for the SDK."""

from __future__ import annotations

import io
import os
import select
import sys
from importlib.util import find_spec
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from prowess.limits import DEFAULT_LIMITS
from prowess.mcp.early.answers import EarlyAnswers
from prowess.mcp.handlers import make_snapshot
from prowess.mcp.manifests import ManifestCache
from prowess.mcp.options import resolve_roots
from prowess.mcp.served_skills import SkillLoader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from prowess.limits import Limits
    from prowess.mcp.early.answers import EarlyReply
    from prowess.mcp.handlers import ServerSnapshot
    from prowess.mcp.options import ServeOptions


T = TypeVar("T")
_STDIN, _STDOUT = 0, 1
_READ_BYTES = 65_536
_MAX_LINES = 100
"""How many lines are answered here at most. A handshake has about ten, and the SDK gets all of them once more."""
_QUIET_SECONDS = 0.02
"""How long the client must be silent before the SDK begins to load. Two threads of Python do not run at the same time,
so a client that sends its next request at once gets its answer sooner."""


class EarlyLines(NamedTuple):
    """The lines that the client has sent so far, as the SDK would have read them."""

    lines: list[tuple[str, EarlyReply | None]]
    """The lines in their order, each with the reply to it; ``None`` for a line that nobody has looked at."""
    snapshot: ServerSnapshot | None
    """What the answers were made from, ``None`` if nothing has been answered."""

    def replay(self, read: Any, write: Any, on_difference: Callable[[], None]) -> tuple[ReplayedInput, ReplayedOutput]:
        """Return the SDK's streams with these lines in front; ``on_difference``: it answers one of them differently."""
        output = ReplayedOutput(write)
        return ReplayedInput(read, self.lines, output, on_difference), output


def make_early_client(
    roots: tuple[str | os.PathLike[str], ...], options: ServeOptions, limits: Limits | None
) -> EarlyClient | None:
    """Return what answers the client while the SDK loads, or ``None`` where the client has to wait for the SDK."""
    if not _can_answer_early() or find_spec("mcp") is None:
        return None
    from prowess import __version__  # a cycle: the package loads this module on first use

    bounds = limits or DEFAULT_LIMITS
    loader = SkillLoader(resolve_roots(roots), bounds)

    def load() -> ServerSnapshot:
        return make_snapshot(loader.load(), ManifestCache(bounds), options, bounds)

    return EarlyClient(EarlyAnswers(options, load, loader.is_small, __version__))


def _can_answer_early() -> bool:
    """Return whether the standard streams are those of the process, and lead to a program that can be waited for."""
    try:
        is_usual = (sys.stdin.fileno(), sys.stdout.fileno()) == (_STDIN, _STDOUT)
        # A terminal reports only once that its input has ended, and the SDK has to hear it.
        is_program = not os.isatty(_STDIN) and os.get_blocking(_STDIN) and os.get_blocking(_STDOUT)
    except (AttributeError, OSError, ValueError):  # somebody has replaced or closed them
        return False
    return os.name == "posix" and is_usual and is_program


class EarlyClient:
    """Reads and answers the first lines of the client, without an event loop."""

    def __init__(self, answers: EarlyAnswers) -> None:
        self._answers = answers
        self._lines: list[tuple[str, EarlyReply | None]] = []
        self._unread = bytearray()  # what has come and is not a line of the list
        self._has_ended = False
        self._needs_sdk = False  # a request waits for it

    def answer_while(self, load: Callable[[], T]) -> T:
        """Answer the client until ``load`` has returned, or until a line comes that only the SDK can answer.

        Returns what ``load`` returns, and raises what it raises.
        """
        loading = _BackgroundCall(load)
        while self._answer_lines() and not self._has_ended and not loading.is_over:
            if self._needs_sdk:
                loading.start()
            if select.select([_STDIN], [], [], _QUIET_SECONDS)[0]:
                self._read_more()
            else:
                loading.start()
        return loading.wait()

    def take_lines(self) -> EarlyLines:
        """Return the lines for the SDK; waits for the end of a line that has come only in part."""
        while self._unread and not self._unread.endswith(b"\n") and not self._has_ended:
            self._read_more()
        # The SDK's own way to read: what it would have taken for a line, and how it replaces bytes that are not UTF-8.
        rest = io.TextIOWrapper(io.BytesIO(bytes(self._unread)), encoding="utf-8", errors="replace")
        return EarlyLines([*self._lines, *((line, None) for line in rest)], self._answers.snapshot)

    def _answer_lines(self) -> bool:
        """Answer every whole line that has come; returns whether the client may go on to be answered here."""
        while (end := self._unread.find(b"\n")) >= 0:
            line = bytes(self._unread[: end + 1])
            try:
                reply = self._answers.reply(line)
                answer = reply.encode() if reply is not None and reply.result is not None else b""
            except Exception:  # noqa: BLE001 - the server finds out as well, and says what is wrong
                return False
            if reply is None:
                return False
            self._write(answer)
            del self._unread[: end + 1]
            self._lines.append((line.decode(), reply))
            self._needs_sdk = self._needs_sdk or (reply.result is None and reply.request_id is not None)
            if len(self._lines) == _MAX_LINES:
                return False
        return len(self._unread) < _READ_BYTES

    def _read_more(self) -> None:
        data = os.read(_STDIN, _READ_BYTES)
        self._unread += data
        self._has_ended = not data

    def _write(self, data: bytes) -> None:
        # A client may send many requests before it reads an answer: it would wait for us while we wait for it.
        while data:
            inputs = [] if self._has_ended else [_STDIN]
            readable, writable, _ = select.select(inputs, [_STDOUT], [])
            if readable:
                self._read_more()
            if writable:
                # A pipe that is ready takes this many bytes without waiting for its reader.
                data = data[os.write(_STDOUT, data[: select.PIPE_BUF]) :]


class _BackgroundCall(Generic[T]):
    """A call in a thread."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._thread: Thread | None = None
        self._result: list[T] = []
        self._error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether the call has ended."""
        return self._thread is not None and not self._thread.is_alive()

    def start(self) -> None:
        """Begin the call, if it has not begun."""
        if self._thread is None:
            self._thread = Thread(target=self._run, name="prowess-sdk", daemon=True)
            self._thread.start()

    def wait(self) -> T:
        """Return what the call returns, or raise what it raises; a call that has not begun runs in this thread."""
        if self._thread is None:
            return self._call()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error


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

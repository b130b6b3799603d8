"""The client on standard input and output while the MCP SDK loads: its lines are answered, and kept for the SDK."""

from __future__ import annotations

import io
import os
import select
import sys
from threading import Thread
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.mcp.early_answers import EarlyAnswers, EarlyReply
    from prowess.mcp.snapshot import ServerSnapshot

T = TypeVar("T")
_STDIN, _STDOUT = 0, 1
_READ_BYTES = 65_536
_WRITE_BYTES = 512  # POSIX: a pipe that can be written to takes as many bytes without waiting for its reader
_QUIET_SECONDS = 0.02
"""How long the client must be silent before the SDK begins to load. A client that sends its next request at once gets
its answer sooner, since two threads of Python do not run at the same time."""


class EarlyLines(NamedTuple):
    """The lines that the client has sent so far, as the SDK would have read them."""

    lines: list[tuple[str, EarlyReply | None]]
    """The lines in their order, each with the reply to it; ``None`` for a line that nobody has looked at."""
    snapshot: ServerSnapshot | None
    """What the answers were made from, ``None`` if nothing has been answered."""


def can_answer_early() -> bool:
    """Return whether the standard streams are those of the process, and can be waited for."""
    try:
        return os.name == "posix" and (sys.stdin.fileno(), sys.stdout.fileno()) == (_STDIN, _STDOUT)
    except (AttributeError, OSError, ValueError):  # somebody has replaced or closed them
        return False


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
        work = _BackgroundCall(load)
        try:
            while self._answer_lines() and not self._has_ended:
                if self._needs_sdk:
                    work.start()
                seconds = None if work.has_started else _QUIET_SECONDS
                ready = select.select([_STDIN, work.done_fd], [], [], seconds)[0]
                if work.done_fd in ready:
                    break
                if _STDIN in ready:
                    self._read_more()
                else:
                    work.start()
            return work.wait()
        finally:
            work.close()

    def take_lines(self) -> EarlyLines:
        """Return the lines for the SDK; waits for the end of a line that has come only in part."""
        while self._unread and not self._unread.endswith(b"\n") and not self._has_ended:
            self._read_more()
        # The SDK's own way to read: what it would have taken for a line, and how it replaces bytes that are no UTF-8.
        rest = io.TextIOWrapper(io.BytesIO(bytes(self._unread)), encoding="utf-8", errors="replace")
        return EarlyLines([*self._lines, *((line, None) for line in rest)], self._answers.snapshot)

    def _answer_lines(self) -> bool:
        """Answer every whole line that has come; returns whether the client may go on to be answered here."""
        while (end := self._unread.find(b"\n")) >= 0:
            line = bytes(self._unread[: end + 1])
            reply = self._answers.reply(line)
            if reply is None:
                return False
            try:
                answer = reply.encode() if reply.result is not None else b""
            except UnicodeEncodeError:  # the SDK says what is wrong
                return False
            self._write(answer)
            del self._unread[: end + 1]
            self._lines.append((line.decode(), reply))
            self._needs_sdk = self._needs_sdk or (reply.result is None and reply.request_id is not None)
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
                data = data[os.write(_STDOUT, data[:_WRITE_BYTES]) :]


class _BackgroundCall(Generic[T]):
    """A call in a thread; ``done_fd`` can be read from once it is over."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._thread = Thread(target=self._run, name="prowess-sdk", daemon=True)
        self._result: list[T] = []
        self._error: BaseException | None = None
        self.has_started = False
        self.done_fd, self._finish_fd = os.pipe()

    def start(self) -> None:
        """Begin the call, if it has not begun."""
        if not self.has_started:
            self.has_started = True
            self._thread.start()

    def wait(self) -> T:
        """Return what the call returns, or raise what it raises; a call that has not begun runs in this thread."""
        if not self.has_started:
            return self._call()
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._result[0]

    def close(self) -> None:
        os.close(self.done_fd)
        os.close(self._finish_fd)

    def _run(self) -> None:
        try:
            self._result.append(self._call())
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._error = error
        os.write(self._finish_fd, b"1")

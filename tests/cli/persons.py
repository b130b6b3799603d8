"""A person at a real pseudo-terminal: a command that was forked, what its screen shows, what is typed.

As the program of a nursery, this file runs the command line with the terminal as its controlling one.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import pty
import select
import signal
import struct
import sys
import termios
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import IO

Stream = Literal["stdin", "stdout", "stderr"]
EVERY: tuple[Stream, ...] = ("stdin", "stdout", "stderr")
SECONDS = 60


class Person:
    """A command line on a terminal of its own; the streams that are not among ``at`` are files."""

    def __init__(
        self,
        *words: str,
        at: tuple[Stream, ...] = EVERY,
        rows: int = 24,
        columns: int = 80,
        env: dict[str, str] | None = None,
    ) -> None:
        from tests.nursery import nursery_of  # noqa: PLC0415 - the nursery itself runs this file

        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        self._files: dict[Stream, IO[bytes]] = {name: TemporaryFile() for name in EVERY if name not in at}  # noqa: SIM115
        self.screen = ""
        self._forked = nursery_of(Path(__file__)).fork(
            list(words),
            {"TERM": "xterm-256color", **(env or {})},
            EVERY.index(at[0]) if at else None,
            **{name: self._files.get(name, slave) for name in EVERY},
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._forked.is_over:
            self._forked.end(signal.SIGKILL)
        os.close(self._master)
        for file in self._files.values():
            file.close()

    @property
    def pid(self) -> int:
        """The process of the command."""
        return self._forked.pid

    def resize(self, rows: int, columns: int) -> None:
        """Give the screen another size; whoever draws on it is told by the system."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, words: str) -> str:
        """What the screen has shown since the last call, up to ``words`` and what came with them."""
        begin = len(self.screen)
        while words not in self.screen[begin:]:
            assert self.read_some(), f"{words!r} is not in {self.screen!r}"
        return self.screen[begin:]

    def read_some(self) -> str:
        """What the screen shows next; nothing when the command has ended, or nothing comes."""
        return self._read() if select.select([self._master], [], [], SECONDS)[0] else ""

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def settings(self) -> list[object]:
        """How the terminal treats keys: whether it shows them, and sends them one by one."""
        return list(termios.tcgetattr(self._master))

    def wait(self) -> int:
        """The status with which the command ended; the screen is read to its end, as a terminal does."""
        while self.read_some():
            pass
        return self._forked.wait(SECONDS)

    def text(self, name: Stream) -> str:
        """What is in the file that a stream was."""
        file = self._files[name]
        file.seek(0)
        return file.read().decode()

    def _read(self) -> str:
        try:
            part = os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # the other end is closed
            return ""
        self.screen += part.replace("\r\n", "\n")
        return part


# -- in the nursery ----------------------------------------------------------------------------------------------------


def prepare() -> Callable[..., None]:
    """Import what most commands import."""
    for name in (
        *("prowess", "prowess.cli.main", "prowess.cli.commands.install", "prowess.cli.commands.trust"),
        *("prowess.cli.flow", "prowess.cli.coloured", "prowess.cli.bars", "prowess.library.scan"),
    ):
        importlib.import_module(name)
    return run_command


def run_command(words: list[str], env: dict[str, str], terminal: int | None) -> None:
    """Run a command line as the installed program does, in a session whose terminal is the stream of that number."""
    os.setsid()
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        os.environ.pop(name, None)
    os.environ.update(env)
    sys.argv = ["prowess", *words]
    importlib.import_module("prowess.cli.main").run()

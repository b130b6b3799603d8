"""A person at a real pseudo-terminal: a command that was forked, what its screen shows, what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import termios
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal, Self

from tests import cli_processes
from tests.cli_processes import SECONDS, fork_command

if TYPE_CHECKING:
    from types import TracebackType
    from typing import IO

Stream = Literal["stdin", "stdout", "stderr"]
EVERY: tuple[Stream, ...] = ("stdin", "stdout", "stderr")


class Person:
    """A command line on a terminal of its own; the streams that are not among ``at`` are files."""

    def __init__(
        self,
        *words: str,
        at: tuple[Stream, ...] = EVERY,
        rows: int = 24,
        columns: int = 80,
        env: dict[str, str] | None = None,
        program: Path = Path(cli_processes.__file__),
    ) -> None:
        self._master, slave = pty.openpty()
        self.resize(rows, columns)
        self._files: dict[Stream, IO[bytes]] = {name: TemporaryFile() for name in EVERY if name not in at}  # noqa: SIM115
        self.screen = ""
        self._forked = fork_command(
            words,
            env={"TERM": "xterm-256color", **(env or {})},
            terminal=EVERY.index(at[0]) if at else None,
            program=program,
            **{name: self._files.get(name, slave) for name in EVERY},
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forked.kill()
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

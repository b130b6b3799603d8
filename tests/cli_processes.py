"""Processes that run the command line ``prowess``, forked instead of started, so that they cost little.

Their streams are files, pipes or a terminal. A fork server runs this file as its program. A test of the start of the
program, or of what a command imports, starts Python instead.
"""

from __future__ import annotations

import fcntl
import importlib
import os
import sys
import termios
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from subprocess import CompletedProcess
    from typing import IO

    from tests.fork_server import ForkedProcess

SECONDS = 60


def fork_command(
    words: Sequence[str],
    *,
    stdin: IO[Any] | int,
    stdout: IO[Any] | int,
    stderr: IO[Any] | int,
    env: Mapping[str, str] | None = None,
    terminal: int | None = None,
    program: Path = Path(__file__),
) -> ForkedProcess:
    """Fork a process that runs ``prowess`` with these words, and return the process.

    It has our working folder and our environment with ``env`` added. ``terminal``: the number of the stream that is the
    terminal of its session. ``program``: the program of the fork server, which imports what the command needs.
    """
    from tests.fork_server import fork_server_for

    fork_server = fork_server_for(program)
    return fork_server.fork(list(words), dict(env or {}), terminal, stdin=stdin, stdout=stdout, stderr=stderr)


def run_command(
    words: Sequence[str], *, given: str = "", env: Mapping[str, str] | None = None
) -> CompletedProcess[bytes]:
    """Run ``prowess`` with these words and with ``given`` as its input, and return its status and its output."""
    import subprocess

    with TemporaryFile() as stdin, TemporaryFile() as stdout, TemporaryFile() as stderr:
        stdin.write(given.encode())
        stdin.seek(0)
        forked = fork_command(words, stdin=stdin, stdout=stdout, stderr=stderr, env=env)
        try:
            status = forked.wait(SECONDS)
        finally:
            forked.kill()
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(words, status, stdout.read(), stderr.read())


# -- in the fork server ------------------------------------------------------------------------------------------------


def prepare() -> Callable[..., None]:
    """Import what most commands import, and return the function that runs a command line."""
    for name in (
        *("prowess", "prowess.cli.main", "prowess.cli.commands.install", "prowess.cli.commands.trust"),
        *(
            "prowess.cli.change_flow",
            "prowess.cli.entry_point",
            "prowess.cli.render.rich_text",
            "prowess.cli.render.printer",
            "prowess.discovery.scan",
        ),
        *("prowess.authoring", "prowess.install", "prowess.conversation", "prowess.sources", "prowess.tools"),
        *("rich.console", "rich.progress", "rich.table", "yaml"),
    ):
        importlib.import_module(name)
    return run_line


def run_line(words: list[str], env: dict[str, str], terminal: int | None) -> None:
    """Run a command line as the installed program does, in a session of its own."""
    os.setsid()
    if terminal is not None:
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    os.environ.update(env)
    _open_streams()
    sys.argv = ["prowess", *words]
    importlib.import_module("prowess.cli.entry_point").run()


def _open_streams() -> None:
    """Open the standard streams as Python does when it starts, since those of the fork server belong to it."""
    for number, (name, mode, errors) in enumerate(
        (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))
    ):
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = os.fdopen(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)

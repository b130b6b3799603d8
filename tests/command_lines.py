"""Command lines as processes of their own, in files, pipes or on a terminal, without the cost of starting Python.

As the program of a nursery, this file runs the command line that is asked for. Where the start itself is tested, or
what a command imports, a test starts Python.
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

    from tests.nursery import Forked

SECONDS = 60


def fork_command(
    words: Sequence[str],
    *,
    stdin: IO[Any] | int,
    stdout: IO[Any] | int,
    stderr: IO[Any] | int,
    env: Mapping[str, str] | None = None,
    terminal: int | None = None,
) -> Forked:
    """A process that runs ``prowess`` with these words, in our environment with ``env`` added, and our working folder.

    ``terminal``: the number of the stream that is the terminal of its session.
    """
    from tests.nursery import nursery_of  # noqa: PLC0415 - the nursery itself runs this file

    nursery = nursery_of(Path(__file__))
    return nursery.fork(list(words), dict(env or {}), terminal, stdin=stdin, stdout=stdout, stderr=stderr)


def run_command(
    words: Sequence[str], *, given: str = "", env: Mapping[str, str] | None = None
) -> CompletedProcess[bytes]:
    """What ``prowess`` with these words printed into files, and its status, with ``given`` as its input."""
    import subprocess  # noqa: PLC0415 - a fresh command has not imported it

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


# -- in the nursery ----------------------------------------------------------------------------------------------------


def prepare() -> Callable[..., None]:
    """Import what most commands import."""
    for name in (
        *("prowess", "prowess.cli.main", "prowess.cli.commands.install", "prowess.cli.commands.trust"),
        *(
            "prowess.cli.change_flow",
            "prowess.cli.render.rich_text",
            "prowess.cli.render.progress_bar",
            "prowess.discovery.scan",
        ),
        *("prowess.authoring", "prowess.install", "prowess.runtime", "prowess.sources", "prowess.tools"),
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
    importlib.import_module("prowess.cli.main").run()


def _open_streams() -> None:
    """Make the standard streams anew, as Python does when it starts: those of the nursery were made for others."""
    for number, (name, mode, errors) in enumerate(
        (("stdin", "r", "strict"), ("stdout", "w", "strict"), ("stderr", "w", "backslashreplace"))
    ):
        buffering = 1 if name == "stderr" or os.isatty(number) else -1
        stream = os.fdopen(number, mode, buffering, encoding="utf-8", errors=errors, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)

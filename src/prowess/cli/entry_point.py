"""The entry point of the program ``prowess``: it answers ``--version`` and ``--help`` itself, and hands on the rest.

Other programs ask for the version before they do anything else. click takes three times as long to load as Python takes
to start (the bench row "prowess --version"), and these two answers do without it. ``cli.main`` gives the same answers
when other words follow these; tests/cli/test_frame.py compares the two.
"""

from __future__ import annotations

import io
import sys
from typing import IO, NoReturn

from prowess import __version__


def run() -> NoReturn:
    """Run the command line of this process, and exit with its status."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        use_utf8_in_pipe(stream)
    if _print_answer(sys.argv[1:]):
        sys.exit()
    from prowess.cli.main import run as run_command

    run_command()


def use_utf8_in_pipe(stream: IO[str] | None) -> None:
    r"""Make a standard stream that is not a terminal UTF-8, with ``\n`` at the end of each line that is written.

    Programs read what they get from a pipe in the same way on every system. Python takes the encoding from the locale,
    and writes ``\r\n`` on Windows. A terminal keeps its encoding, since a person has to read it.
    """
    try:
        if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
            return
    except ValueError:  # it is closed
        return
    if stream.writable():
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")
    else:
        stream.reconfigure(encoding="utf-8")


def _print_answer(words: list[str]) -> bool:
    """Print the version or the overview, and return True; False when it was not asked for, or cannot be printed."""
    if words == ["--version"]:
        text = f"prowess {__version__}\n"
    elif words in (["--help"], ["-h"]):
        from prowess.cli.command_table import render_overview

        text = render_overview()
    else:
        return False
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (AttributeError, OSError):  # no stream, or nobody who reads it: ``cli.main`` knows the exit status
        return False
    return True

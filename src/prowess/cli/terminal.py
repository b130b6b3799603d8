"""The terminal of the person who started a command. Questions go there even if the streams are redirected."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

import click

from prowess.cli.render.printer import is_terminal
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterator

_TTY = "/dev/tty"
_YES, _NO = frozenset(("y", "yes")), frozenset(("", "n", "no"))


class Terminal(NamedTuple):
    """The two streams of a terminal: what a person types, and what a person reads."""

    keys: IO[str]
    screen: IO[str]


@contextmanager
def open_terminal() -> Iterator[Terminal | None]:
    """Yield the terminal that the person looks at, or ``None`` if no standard stream is a terminal.

    It is opened by its own name, so that a person sees and answers a question even when the output or input is a pipe.
    """
    streams = [stream for stream in (sys.stdin, sys.stderr, sys.stdout) if stream is not None and is_terminal(stream)]
    if not streams:
        # A controlling terminal alone is nobody to ask: a job of a scheduler, or a test, may have inherited one.
        yield None
        return
    handle = _open_handle(streams[0])
    if handle is None:  # Windows, or a container without device files: the streams themselves are what there is
        yield Terminal(sys.stdin, sys.stderr) if is_terminal(sys.stdin) else None
        return
    # Two descriptors of one terminal: a stream that reads and writes would have to seek, and terminals cannot.
    with (
        os.fdopen(handle, "r", encoding="utf-8", errors="replace") as keys,
        os.fdopen(os.dup(handle), "w", encoding="utf-8", errors="replace") as screen,
    ):
        yield Terminal(keys, screen)


def _open_handle(stream: IO[str]) -> int | None:
    """Return a new descriptor of the terminal behind ``stream``, or ``None`` if the system has no name for it."""
    # O_NOCTTY: to ask a question must not make this terminal the one whose Ctrl-C ends us.
    flags = os.O_RDWR | getattr(os, "O_NOCTTY", 0)
    for name in (_find_tty_name(stream), _TTY):
        try:
            return os.open(name, flags)
        except OSError:
            continue
    return None


def _find_tty_name(stream: IO[str]) -> str:
    try:
        return os.ttyname(stream.fileno())
    except (OSError, AttributeError):  # a container without /dev/pts, or a system without names for terminals
        return _TTY


def _ask_line(question: str, terminal: Terminal) -> str:
    """Return the line that a person types, in small letters. Raise ``click.Abort`` if the input ends."""
    terminal.screen.write(f"{escape_line(question)} ")
    terminal.screen.flush()
    answer = terminal.keys.readline()
    if not answer:
        raise click.Abort
    return answer.strip().lower()


def ask_choice(question: str, words: tuple[str, ...], terminal: Terminal) -> str:
    """Ask until a person answers with one of ``words``, or the beginning of one, and return that word.

    Raise ``click.Abort`` if the input ends.
    """
    while True:
        answer = _ask_line(f"{question} [{'/'.join(words)}]", terminal)
        matches = [word for word in words if word.startswith(answer)]
        if len(matches) == 1:
            return matches[0]


def confirm(question: str, terminal: Terminal) -> bool:
    """Ask until a person answers yes or no, and return True for yes. An empty line means no.

    Raise ``click.Abort`` if the input ends.
    """
    while True:
        word = _ask_line(f"{question} [y/N]:", terminal)
        if word in _YES | _NO:
            return word in _YES
        terminal.screen.write("Answer y or n.\n")

"""The one printer: plans and answers on the output stream, everything else on the error stream.

On a terminal through rich; elsewhere as plain text; with ``--json`` as data. Whatever a skill says is made harmless on
the way (``escapes``), in all three.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from prowess.cli.remedies import find_error_remedy, find_remedy
from prowess.errors import SkillError, SkillLoadError
from prowess.escapes import dump_json, escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO

    from prowess.cli.render.blocks import Block
    from prowess.errors import Issue

_REPORTED_KEY = "prowess.said"
"""Where a command remembers the issues that it told."""
SCHEMA_VERSION = 1
"""The version of the shapes that ``--json`` gives; it changes when a field is taken away or changes its meaning."""


def print_answer(
    data: Callable[[], Mapping[str, object]], blocks: Callable[[], Iterable[Block]], *, as_data: bool
) -> None:
    """Print the answer, as data or for people; only what is printed is made."""
    if as_data:
        _write(sys.stdout, dump_json({"version": SCHEMA_VERSION, **data()}) + "\n")
    else:
        print_blocks(blocks())


def print_blocks(blocks: Iterable[Block], stream: IO[str] | None = None, *, error: bool = False) -> None:
    """Blocks for people, on ``stream``, else on the output or the error stream; of no blocks nothing is loaded."""
    stream = stream or (sys.stderr if error else sys.stdout)
    blocks = list(blocks)
    if not blocks:
        return
    if is_terminal(stream):
        from prowess.cli.render.rich_text import make_console  # noqa: PLC0415 - only on a terminal
        from prowess.cli.render.rich_text import print_coloured as show_coloured  # noqa: PLC0415

        show_coloured(blocks, make_console(stream))
        return
    from prowess.cli.render.plain_text import render_text  # noqa: PLC0415 - only elsewhere

    _write(stream, render_text(blocks))


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Whether people look at a stream directly."""
    with suppress(ValueError):
        return (stream or sys.stdout).isatty()
    return False


def write_bytes(data: bytes) -> None:
    """Bytes as they are: not to a terminal, which would obey them."""
    if is_terminal():
        raise SkillError(
            "raw bytes are not written to a terminal: redirect them, or leave --raw out", code="bad-argument"
        )
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def print_text(text: str) -> None:
    """Text of several lines as it is but for control characters, ended by a line break."""
    _write(sys.stdout, escape_text(text).removesuffix("\n") + "\n")


def print_line(text: str) -> None:
    """One line, without colours."""
    _write(sys.stdout, escape_line(text) + "\n")


def print_own_text(text: str) -> None:
    """Text of our own."""
    _write(sys.stdout, text)


# -- what is not the answer --------------------------------------------------------------------------------------------


def print_error_text(text: str) -> None:
    """What a program said on its error stream, passed on to ours."""
    _write(sys.stderr, escape_text(text).removesuffix("\n") + "\n")


def note(text: str, *, quiet: bool = False) -> None:
    """Something worth knowing, on the error stream."""
    if not quiet:
        print_blocks([_make_line(text)], error=True)


def warn(text: str) -> None:
    """Something that may be wrong, on the error stream."""
    from prowess.cli.render.blocks import line  # noqa: PLC0415

    print_blocks([line(("warning: ", "warn"), text)], error=True)


def print_issues(issues: Iterable[Issue]) -> None:
    """Say on the error stream what a command found worth saying, though it went on: each issue once a command."""
    said = click.get_current_context().meta.setdefault(_REPORTED_KEY, set())
    fresh = [issue for issue in dict.fromkeys(issues) if issue not in said]
    said.update(fresh)
    for issue in fresh:
        inner = f"{issue.path}: " if issue.path and not os.path.isabs(issue.path) else ""  # a file of the source
        say = note if issue.severity == "info" else warn
        say(f"[{issue.code}] {inner}{issue.message}")
    if any(issue.code == "rolled-back" for issue in fresh):
        note(f"  hint: {find_remedy('rolled-back')}")


def _make_line(text: str) -> Block:
    from prowess.cli.render.blocks import line  # noqa: PLC0415

    return line(text)


def print_error(error: SkillError, *, as_json: bool = False) -> None:
    """An error: its code, what, where, and what to do."""
    if as_json:
        _write(sys.stderr, _error_to_json(error) + "\n")
        return
    from prowess.cli.render.blocks import line  # noqa: PLC0415

    where = f"{error.path}: " if error.path and error.path not in error.message else ""
    rows = [line((f"error[{error.code}]: ", "bad"), f"{where}{_describe_error(error)}")]
    if isinstance(error, SkillLoadError) and len(error.issues) > 1:
        rows += [line(f"line {i.line}: [{i.code}] {i.field}: {i.message}", indent=2) for i in error.issues]
    said = find_error_remedy(error)
    print_blocks([*rows, *([line(("hint: ", "dim"), said, indent=2)] if said else [])], error=True)


def _describe_error(error: SkillError) -> str:
    several = isinstance(error, SkillLoadError) and len(error.issues) > 1
    return f"{len(error.issues)} violations" if several and isinstance(error, SkillLoadError) else error.message


def _error_to_json(error: SkillError) -> str:
    return _dump_error(error.code, error.message, error.path, find_error_remedy(error))


def _dump_error(code: str, message: str, path: str, hint: str) -> str:
    data = {"code": code, "message": message, "path": path, "hint": hint}
    return dump_json({"version": SCHEMA_VERSION, "error": data}, None)


def print_usage_error(error: click.UsageError, *, as_json: bool = False) -> None:
    """A command line that makes no sense, and where to read how it would."""
    name = error.ctx.command_path if error.ctx else "prowess"
    hint = f"see {name} --help"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        message = f"{name} wants one of its commands"
    else:
        from prowess.spec.redaction import scrub_text  # noqa: PLC0415 - only when something went wrong

        message = scrub_text(" ".join(error.format_message().split()))  # what was typed may be an address
    if as_json:
        _write(sys.stderr, _dump_error("usage", message, "", hint) + "\n")
        return
    from prowess.cli.render.blocks import line  # noqa: PLC0415

    rows = [line(("error[usage]: ", "bad"), message), line(("hint: ", "dim"), hint, indent=2)]
    print_blocks(rows, error=True)


def print_traceback(error: BaseException) -> None:
    """The trace of what should not have happened."""
    from traceback import format_exception  # noqa: PLC0415 - only when something went wrong

    _write(
        sys.stderr, f"{escape_text(''.join(format_exception(error)))}This is a mistake in Prowess: please report it.\n"
    )


def print_interrupted() -> None:
    """Say that it was."""
    with suppress(OSError, ValueError):
        _write(sys.stderr, "interrupted\n")


@contextmanager
def show_progress(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time, and how far it is: the steps that the library tells."""
    if not is_terminal(sys.stderr):
        yield
        return
    from prowess.cli.render.progress_bar import show_bar  # noqa: PLC0415 - only on a terminal

    with show_bar(what, sys.stderr):
        yield


def flush() -> None:
    """Have everything written before the process says that all is well."""
    sys.stdout.flush()


def discard_output() -> None:
    """Nobody reads any more: let Python end without trying to write again."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _write(stream: IO[str], text: str) -> None:
    """Also where the stream has a smaller alphabet."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

"""The one place that prints: answers on the output stream, everything else on the error stream.

On a terminal it prints with colours, through rich; elsewhere as plain text, with ``--json`` as data. In all of them,
control characters in the text of a skill are escaped (``escapes``), so that they cannot command the terminal.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import click

from prowess.cli.issues import find_error_remedy, find_remedy
from prowess.errors import Issue, SkillError, SkillLoadError
from prowess.files.paths import shorten_path
from prowess.progress_steps import progress
from prowess.text.escapes import dump_json, escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import IO

    from prowess.cli.render.blocks import Block, Span


_REPORTED_KEY = "prowess.said"
"""The key under which click's context holds the issues that were printed already."""
SCHEMA_VERSION = 1
"""The version of the ``--json`` shapes. It changes when a field goes or changes its meaning."""


def print_answer(
    data: Callable[[], Mapping[str, object]], blocks: Callable[[], Iterable[Block]], *, as_data: bool
) -> None:
    """Print the answer, as data or for people. Only the function whose result is printed is called."""
    if not as_data:
        print_blocks(blocks())
    elif _kept_answers is not None:
        _kept_answers.append(dict(data()))
    else:
        _write(sys.stdout, dump_json({"version": SCHEMA_VERSION, **data()}) + "\n")


_kept_answers: list[dict[str, object]] | None = None


@contextmanager
def keep_answers() -> Iterator[list[dict[str, object]]]:
    """Keep the answers that are data, instead of printing them, until the block ends."""
    global _kept_answers  # noqa: PLW0603 - the streams are one thing of the process too
    kept: list[dict[str, object]] = []
    _kept_answers = kept
    try:
        yield kept
    finally:
        _kept_answers = None


def print_blocks(blocks: Iterable[Block], stream: IO[str] | None = None, *, error: bool = False) -> None:
    """Print blocks for people on ``stream``, or on the output stream, or on the error stream if ``error``."""
    stream = stream or (sys.stderr if error else sys.stdout)
    blocks = list(blocks)
    if not blocks:  # nothing to print: no renderer has to be loaded
        return
    if is_terminal(stream):
        _print_on_terminal(blocks, stream)
        return
    from prowess.cli.render.plain_text import render_text

    _write(stream, render_text(blocks))


def _print_on_terminal(blocks: list[Block], stream: IO[str]) -> None:
    from prowess.cli.render.rich_text import make_console, print_on_terminal

    if isinstance(stream, io.TextIOWrapper):
        # rich writes by itself, and not with ``_write``: the stream has to escape what its encoding lacks.
        stream.reconfigure(errors="backslashreplace")
    print_on_terminal(blocks, make_console(stream))


def is_terminal(stream: IO[str] | None = None) -> bool:
    """Return True when a stream is a terminal; a closed stream is none."""
    with suppress(ValueError):
        chosen = stream or sys.stdout
        return chosen.isatty() and (os.name != "nt" or _is_console(chosen))
    return False


def _is_console(stream: IO[str]) -> bool:
    """Return True when a stream of Windows is its console: the null device and printers claim to be terminals too."""
    import ctypes
    import msvcrt

    try:
        handle = msvcrt.get_osfhandle(stream.fileno())  # type: ignore[attr-defined]
    except OSError:  # a stream of a test has no handle
        return True
    mode = ctypes.c_ulong()
    return bool(ctypes.windll.kernel32.GetConsoleMode(ctypes.c_void_p(handle), ctypes.byref(mode)))  # type: ignore[attr-defined]


def write_bytes(data: bytes) -> None:
    """Write bytes unchanged. Raise ``SkillError`` if the output is a terminal, which would obey control characters."""
    if is_terminal():
        raise SkillError(
            "raw bytes are not written to a terminal: redirect them, or leave --raw out", code="bad-argument"
        )
    sys.stdout.flush()  # the text layer has a buffer of its own, and must come first
    sys.stdout.buffer.write(data)


def print_text(text: str, *, error: bool = False) -> None:
    """Print text of several lines, escaped and with one line break at its end; on the error stream if ``error``."""
    _write(sys.stderr if error else sys.stdout, escape_text(text).removesuffix("\n") + "\n")


def print_piece(text: str) -> None:
    """Print a piece of a longer text, escaped, at once and without a line break at its end."""
    _write(sys.stdout, escape_text(text))
    sys.stdout.flush()


def print_data_line(data: Mapping[str, object]) -> None:
    """Print one line of data, at once: for commands that report what happens while it happens."""
    _write(sys.stdout, dump_json({"version": SCHEMA_VERSION, **data}, None) + "\n")
    sys.stdout.flush()


def print_line(text: str) -> None:
    """Print one line without colours."""
    _write(sys.stdout, escape_line(text) + "\n")


def print_own_text(text: str) -> None:
    """Print text that Prowess itself wrote, so nothing in it is escaped."""
    _write(sys.stdout, text)


# -- the error stream -------------------------------------------------------------------------------------------------


def note(text: str, *, quiet: bool = False) -> None:
    """Print something worth knowing on the error stream."""
    if not quiet:
        print_blocks([_make_line(text)], error=True)


def warn(text: str) -> None:
    """Print something that may be wrong on the error stream."""
    print_blocks([_make_line(("warning: ", "warn"), text)], error=True)


def print_issues(issues: Iterable[Issue]) -> None:
    """Print issues on the error stream, each once in a command line."""
    printed = click.get_current_context().meta.setdefault(_REPORTED_KEY, set())
    fresh = [issue for issue in dict.fromkeys(issues) if issue not in printed]
    printed.update(fresh)
    for issue in fresh:
        # A relative path is that of a file in the source; messages about other files name them already.
        file = f"{issue.path}: " if issue.path and not os.path.isabs(issue.path) else ""
        print_one = note if issue.severity == "info" else warn
        print_one(f"[{issue.code}] {file}{issue.message}")
    # One hint for all of them: a single command fixes it.
    if any(issue.code == "rolled-back" for issue in fresh):
        note(f"  hint: {find_remedy('rolled-back')}")


def _make_line(*spans: Span, indent: int = 0) -> Block:
    from prowess.cli.render.blocks import line

    return line(*spans, indent=indent)


def print_error(error: SkillError, *, as_json: bool = False) -> None:
    """Print an error: its code, the file, the reason, and what to do."""
    remedy = find_error_remedy(error)
    if as_json:
        _write(sys.stderr, _dump_error(error.code, error.message, error.path, remedy) + "\n")
        return
    violations = error.issues if isinstance(error, SkillLoadError) and len(error.issues) > 1 else ()
    message = f"{len(violations)} violations" if violations else error.message
    path = f"{error.path}: " if error.path and error.path not in error.message else ""
    rows = [_make_line((f"error[{error.code}]: ", "bad"), f"{path}{message}")]
    rows += [_make_line(f"line {i.line}: [{i.code}] {i.field}: {i.message}", indent=2) for i in violations]
    if remedy:
        rows.append(_make_line(("hint: ", "dim"), remedy, indent=2))
    print_blocks(rows, error=True)


def _dump_error(code: str, message: str, path: str, hint: str) -> str:
    data = {"code": code, "message": message, "path": path, "hint": hint}
    return dump_json({"version": SCHEMA_VERSION, "error": data}, None)


def print_usage_error(error: click.UsageError, *, as_json: bool = False) -> None:
    """Print why a command line is malformed, and which help explains the command."""
    name = error.ctx.command_path if error.ctx else "prowess"
    hint = f"see {name} --help"
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        message = f"{name} needs one of its commands"
    else:
        from prowess.text.redaction import scrub_text

        # What was typed may be an address with a password, which must not reach a log.
        message = scrub_text(" ".join(error.format_message().split()))
    if as_json:
        _write(sys.stderr, _dump_error("usage", message, "", hint) + "\n")
        return
    print_blocks(
        [_make_line(("error[usage]: ", "bad"), message), _make_line(("hint: ", "dim"), hint, indent=2)], error=True
    )


def print_traceback(error: BaseException) -> None:
    """Print the traceback of a mistake in Prowess."""
    from traceback import format_exception

    _write(
        sys.stderr, f"{escape_text(''.join(format_exception(error)))}This is a mistake in Prowess: please report it.\n"
    )


def print_interruption() -> None:
    """Print that the command was interrupted."""
    with suppress(OSError, ValueError):  # the terminal may be gone by now
        _write(sys.stderr, "interrupted\n")


@contextmanager
def show_progress(what: str) -> Iterator[None]:
    """Show a progress bar while the block runs, if the error stream is a terminal; the library reports the steps."""
    if not is_terminal(sys.stderr):
        yield
        return

    with _show_bar(what, sys.stderr):
        yield


def flush() -> None:
    """Write out what is buffered, so that a closed pipe shows before the exit status says that all is well."""
    sys.stdout.flush()


def discard_output() -> None:
    """Send the rest of the output nowhere. Otherwise Python writes it at exit, and prints a second error."""
    with suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(stream: IO[str], text: str) -> None:
    """Write text; characters that the encoding of the stream lacks are written as escapes."""
    # A terminal with an old encoding, such as latin-1, must not end a command.
    encoding = getattr(stream, "encoding", None) or "utf-8"
    try:
        stream.write(text)
    except UnicodeEncodeError:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


_MAX_TEXT_WIDTH, _BAR_WIDTH, _OTHER_WIDTH = 48, 16, 32
_COUNT_FORMAT = "{task.completed:.0f}/{task.total:.0f}"


@contextmanager
def _show_bar(what: str, stream: IO[str]) -> Iterator[None]:
    """Show a bar with ``what`` and the steps that the work in the block reports; without steps it only moves."""
    # Neither a pipe nor a command without progress needs rich, which takes as long to load as 'prowess list' runs.
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

    from prowess.cli.render.rich_text import make_console

    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), words, BarColumn(_BAR_WIDTH), TaskProgressColumn(_COUNT_FORMAT, markup=False))
    screen = make_console(stream)
    width = min(_MAX_TEXT_WIDTH, max(screen.width - _OTHER_WIDTH, _BAR_WIDTH))
    # rich would take over the output stream as well, but the answer must reach it unchanged.
    bar = Progress(*columns, console=screen, transient=True, redirect_stdout=False)
    task = bar.add_task(_describe_step(what, "", width), total=None)

    def update_bar(step: str, done: int, total: int) -> None:
        bar.update(task, description=_describe_step(what, step, width), completed=done, total=total or None)

    with bar, progress(update_bar):
        yield


def _describe_step(what: str, step: str, width: int) -> str:
    """Return the text of the bar, at most ``width`` characters."""
    # If both are too long, the step has half of the room: it is the part that changes.
    step = _truncate(f": {escape_line(step)}", width // 2) if step else ""
    return _truncate(escape_line(what), width - len(step)) + step


def _truncate(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def quote_path(path: str) -> str:
    """Return a path for a command that a person pastes into a shell, quoted because anybody may have named it."""
    from shlex import quote

    short_path = shorten_path(path)
    home = "~" + os.sep
    if short_path.startswith(home):  # within quotes a shell does not expand the tilde
        return home + quote(short_path.removeprefix(home))
    is_clear = os.path.isabs(short_path) or short_path.startswith((".", "~"))
    return quote(short_path if is_clear else os.path.join(os.curdir, short_path))


def with_dot_prefix(name: str) -> str:
    """Return a relative path that starts with a dot, so that nothing takes it for the name of a skill."""
    return f".{os.sep}{name}"

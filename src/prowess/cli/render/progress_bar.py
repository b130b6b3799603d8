"""A progress bar on a terminal. It is gone when the work is done."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from prowess.cli.render.rich_text import make_console
from prowess.progress_steps import progress
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_MAX_TEXT_WIDTH, _BAR_WIDTH, _OTHER_WIDTH = 48, 16, 32
_COUNT_FORMAT = "{task.completed:.0f}/{task.total:.0f}"


@contextmanager
def show_bar(what: str, stream: IO[str]) -> Iterator[None]:
    """Show a bar with ``what`` and the steps that the work in the block reports; without steps it only moves."""
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

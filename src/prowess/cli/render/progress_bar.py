"""A bar on a terminal for work that takes its time; it is gone when the work is done."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn

from prowess.cli.render.rich_text import make_console
from prowess.escapes import escape_line
from prowess.progress_steps import progress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_MAX_TEXT_WIDTH, _BAR_WIDTH, _OTHER_WIDTH = 48, 16, 32
_COUNT_FORMAT = "{task.completed:.0f}/{task.total:.0f}"


@contextmanager
def show_bar(what: str, stream: IO[str]) -> Iterator[None]:
    """Show ``what``, and each step that the work in the block tells; without any it only shows that it goes on.

    Only the error stream is drawn around: the answer goes its own way.
    """
    words = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), words, BarColumn(_BAR_WIDTH), TaskProgressColumn(_COUNT_FORMAT, markup=False))
    screen = make_console(stream)
    most = min(_MAX_TEXT_WIDTH, max(screen.width - _OTHER_WIDTH, _BAR_WIDTH))
    drawn = Progress(*columns, console=screen, transient=True, redirect_stdout=False)
    task = drawn.add_task(_describe_step(what, "", most), total=None)

    def update_bar(step: str, done: int, total: int) -> None:
        drawn.update(task, description=_describe_step(what, step, most), completed=done, total=total or None)

    with drawn, progress(update_bar):
        yield


def _describe_step(what: str, step: str, most: int) -> str:
    """What is done, and the step of it; where both are too long, the step is what changes, and has half of the room."""
    step = _truncate(f": {escape_line(step)}", most // 2) if step else ""
    return _truncate(escape_line(what), most - len(step)) + step


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"

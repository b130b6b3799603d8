"""Blocks for a terminal: colours, and columns that fit its width. rich is loaded here and in ``progress_bar`` only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from prowess.cli.render.blocks import Block, Line, Span, Table, Title, Verbatim, cell_spans
from prowess.text.escapes import escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

_COLUMN_GAP, _MIN_LAST_WIDTH = 2, 10
_MAX_COLUMN_WIDTH = 40
"""The largest width of a column other than the last; longer text is wrapped, or cut."""
_RICH_STYLES = {
    "plain": "",
    "title": "bold",
    "name": "bold cyan",
    "dim": "dim",
    "good": "green",
    "warn": "yellow",
    "bad": "bold red",
    "mark": "black on yellow",
    "added": "green",
    "removed": "red",
}


def make_console(file: IO[str], **options: Any) -> Console:
    """Return a console of rich that prints text as it is."""
    # Markup, highlighting and emoji codes are off: the text of a skill must not be able to style the screen.
    return Console(file=file, markup=False, highlight=False, emoji=False, **options)


def print_on_terminal(blocks: Iterable[Block], to: Console) -> None:
    """Print blocks on a console."""
    first = True
    for block in blocks:
        if isinstance(block, Title) and not first:
            to.print()
        if isinstance(block, Line) and block.cut:
            to.print(_to_renderable(block, to.width), no_wrap=True, overflow="ellipsis", crop=True)
        else:
            # The terminal wraps verbatim text itself, so that a copy of it has no false line breaks.
            to.print(_to_renderable(block, to.width), soft_wrap=isinstance(block, Verbatim))
        first = False


def _to_renderable(block: Block, width: int) -> Text | Padding:
    if isinstance(block, Line):
        return Text(" " * block.indent) + _spans_to_text(block.spans)
    if isinstance(block, Title):
        return _spans_to_text(((block.text, "title"), *(((f"  ({block.note})", "dim"),) if block.note else ())))
    return _table_to_grid(block, width) if isinstance(block, Table) else _verbatim_to_text(block)


def _spans_to_text(spans: Iterable[Span]) -> Text:
    text = Text()
    for span in spans:
        words, style = (span, "plain") if isinstance(span, str) else span
        text.append(escape_line(words), _RICH_STYLES[style])
    return text


def _verbatim_to_text(block: Verbatim) -> Text:
    text = Text(style=_RICH_STYLES[block.style])
    done = 0
    for begin, end in block.marks:
        text.append(escape_text(block.text[done:begin]))
        text.append(escape_text(block.text[begin:end]), _RICH_STYLES["mark"])
        done = end
    text.append(escape_text(block.text[done:]).removesuffix("\n"))
    return text


def _table_to_grid(table: Table, width: int) -> Padding:
    """Return a table as a grid of rich."""
    # Only the last column gives way on a narrow screen: the names in the first are what people look for.
    grid = Grid(
        box=None, show_header=bool(table.head), padding=(0, _COLUMN_GAP, 0, 0), pad_edge=False, header_style="dim"
    )
    # The head counts for the widths of the columns, but is not a row of the grid.
    cells = [
        [_spans_to_text(cell_spans(cell)) for cell in row]
        for row in ([*table.rows, table.head] if table.head else table.rows)
    ]
    columns = [*zip(*cells, strict=True)]
    widths = [min(_MAX_COLUMN_WIDTH, max(cell.cell_len for cell in column)) for column in columns]
    room = width - table.indent - sum(widths[:-1]) - _COLUMN_GAP * len(widths)
    for index in range(len(columns)):
        is_last = index == len(columns) - 1
        grid.add_column(
            table.head[index] if table.head else "",
            no_wrap=table.cut,
            overflow="ellipsis" if table.cut else "fold",
            justify="right" if index in table.right else "left",
            **({"max_width": max(room, _MIN_LAST_WIDTH)} if is_last else {"width": widths[index]}),
        )
    for row in cells[: len(table.rows)]:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, table.indent))

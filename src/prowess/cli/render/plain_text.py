"""Blocks as plain text, for pipes, files and logs. Nothing is wrapped or cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.render.blocks import Block, Cell, Line, Table, Title, Verbatim, cell_spans, spans_text
from prowess.text.escapes import escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_COLUMN_GAP = "  "
# White square brackets. By number: to compile a character by its name, Python loads the tables of ``unicodedata``.
_MARK_OPEN, _MARK_CLOSE = "\u27e6", "\u27e7"


def render_text(blocks: Iterable[Block]) -> str:
    """Return the text of the blocks; each line ends with a line break."""
    rows: list[str] = []
    for block in blocks:
        if isinstance(block, Title) and rows:
            rows.append("")
        rows += _block_to_rows(block)
    return "".join(f"{row}\n" for row in rows)


def _block_to_rows(block: Block) -> Iterator[str]:
    if isinstance(block, Line):
        yield " " * block.indent + escape_line(spans_text(block.spans))
    elif isinstance(block, Title):
        yield escape_line(block.text) + (f"  ({escape_line(block.note)})" if block.note else "")
    elif isinstance(block, Table):
        yield from _table_to_rows(block)
    else:
        yield from _verbatim_to_rows(block)


def _verbatim_to_rows(block: Verbatim) -> Iterator[str]:
    text = block.text
    # From the end: each pair of brackets moves what follows it.
    for begin, end in reversed(block.marks):
        text = f"{text[:begin]}{_MARK_OPEN}{text[begin:end]}{_MARK_CLOSE}{text[end:]}"
    yield from escape_text(text).removesuffix("\n").split("\n") if text else ()


def _table_to_rows(table: Table) -> Iterator[str]:
    rows = [[_cell_to_text(cell) for cell in row] for row in ([table.head] if table.head else []) + list(table.rows)]
    columns = list(zip(*rows, strict=True))
    # Blanks at the end of a line are removed, so the last column, often the longest, is measured for numbers alone.
    measured = columns if len(columns) - 1 in table.right else columns[:-1]
    widths = [max(map(cell_width, column)) for column in measured]
    for row in rows:
        padded = [_pad_cell(row[i], width, right=i in table.right) for i, width in enumerate(widths)]
        yield (" " * table.indent + _COLUMN_GAP.join([*padded, *row[len(widths) :]])).rstrip()


def _cell_to_text(cell: Cell) -> str:
    return escape_line(spans_text(cell_spans(cell)))


def _pad_cell(text: str, width: int, *, right: bool) -> str:
    spaces = " " * (width - cell_width(text))
    return spaces + text if right else text + spaces


def cell_width(text: str) -> int:
    """Return how many columns of a terminal a string takes; for an odd character it may be one too many."""
    if text.isascii():  # fast path: nearly every cell of a table
        return len(text)
    import unicodedata

    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)

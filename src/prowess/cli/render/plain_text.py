"""Blocks as plain text: for pipes, files and logs. Nothing is wrapped or cut."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from prowess.cli.render.blocks import Line, Table, Title, Verbatim, cell_spans, words_of
from prowess.escapes import escape_line, escape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prowess.cli.render.blocks import Block, Cell

_GAP = "  "
_OPENS, _CLOSES = "\N{MATHEMATICAL LEFT WHITE SQUARE BRACKET}", "\N{MATHEMATICAL RIGHT WHITE SQUARE BRACKET}"


def rendered(blocks: Iterable[Block]) -> str:
    """The text of the blocks, each line ended."""
    rows: list[str] = []
    for block in blocks:
        if isinstance(block, Title) and rows:
            rows.append("")
        rows += _rows(block)
    return "".join(f"{row}\n" for row in rows)


def _rows(block: Block) -> Iterator[str]:
    if isinstance(block, Line):
        yield " " * block.indent + "".join(escape_line(words_of(span)) for span in block.spans)
    elif isinstance(block, Title):
        yield escape_line(block.text) + (f"  ({escape_line(block.note)})" if block.note else "")
    elif isinstance(block, Table):
        yield from _table(block)
    else:
        yield from _verbatim(block)


def _verbatim(block: Verbatim) -> Iterator[str]:
    text = block.text
    for begin, end in reversed(block.marks):
        text = f"{text[:begin]}{_OPENS}{text[begin:end]}{_CLOSES}{text[end:]}"
    yield from escape_text(text).removesuffix("\n").split("\n") if text else ()


def _table(table: Table) -> Iterator[str]:
    rows = [[_cell(cell) for cell in row] for row in ([table.head] if table.head else []) + list(table.rows)]
    widths = [max(map(cell_width, column)) for column in zip(*rows, strict=True)] if rows else []
    for row in rows:
        padded = (_padded(cell, widths[at], right=at in table.right) for at, cell in enumerate(row))
        yield (" " * table.indent + _GAP.join(padded)).rstrip()


def _cell(cell: Cell) -> str:
    return "".join(escape_line(words_of(span)) for span in cell_spans(cell))


def _padded(text: str, width: int, *, right: bool) -> str:
    blanks = " " * (width - cell_width(text))
    return blanks + text if right else text + blanks


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes; of odd characters rather too many than too few."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)

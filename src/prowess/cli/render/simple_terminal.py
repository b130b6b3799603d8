"""Simple blocks for a terminal, rendered without rich: titles and lines that fit, and tables that need no wrapping.

Fast path of the bench row "prowess list, on a terminal": to load rich takes longer than to make the whole listing. The
slow twin is ``rich_text``, which renders everything else; tests/cli/test_terminal_text.py compares the two.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from prowess.cli.render.blocks import Block, Line, Span, Table, Title, cell_spans
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import IO

COLUMN_GAP, MIN_LAST_WIDTH = 2, 10
MAX_COLUMN_WIDTH = 40
"""The largest width of a column other than the last; longer text is wrapped, or cut."""
_DEFAULT_WIDTH = 80

_STYLE_CODES = {
    "plain": "",
    "title": "1",
    "name": "1;36",
    "dim": "2",
    "good": "32",
    "warn": "33",
    "bad": "1;31",
    "mark": "30;43",
    "added": "32",
    "removed": "31",
}
"""The numbers by which a terminal is told a style, in the order in which rich writes them."""
_ODD_SETTINGS = ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE")
_ODD_TERMINALS = frozenset(("dumb", "unknown"))
# Letters of Europe and the punctuation of books take one column each on every terminal.
_NARROW = re.compile("[ -~\u00a0-\u00ac\u00ae-\u02ff\u0370-\u0482\u2010-\u2027]*")

_StyledText = list[tuple[str, str]]
"""Pieces of one line, each with the code of its style."""


def is_ordinary_terminal(stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Return whether a terminal has colours and UTF-8, and no setting changes what is printed on it."""
    encoding = (getattr(stream, "encoding", None) or "").lower()
    return (
        os.name == "posix"
        and encoding in {"utf-8", "utf8"}
        and environ.get("TERM", "").lower() not in _ODD_TERMINALS
        and not any(name in environ for name in _ODD_SETTINGS)
    )


def find_width(environ: Mapping[str, str]) -> int:
    """Return the columns of the terminal: those that ``COLUMNS`` says, or those of the first stream that is one."""
    columns = environ.get("COLUMNS", "")
    if columns.isdecimal():
        return int(columns)
    for stream in (0, 1, 2):
        try:
            return os.get_terminal_size(stream).columns or _DEFAULT_WIDTH
        except OSError:
            continue
    return _DEFAULT_WIDTH


def render_simple(blocks: Iterable[Block], width: int) -> str | None:
    """Return the text of the blocks for a terminal with ``width`` columns; ``None`` when only rich can render them."""
    rows: list[str] = []
    for number, block in enumerate(blocks):
        if isinstance(block, Title) and number:
            rows.append("")
        block_rows = _render_block(block, width)
        if block_rows is None:
            return None
        rows += block_rows
    return "".join([f"{row}\n" for row in rows])


def _render_block(block: Block, width: int) -> list[str] | None:
    if isinstance(block, Table):
        return _render_table(block, width)
    if isinstance(block, Title):
        note: tuple[Span, ...] = ((f"  ({block.note})", "dim"),) if block.note else ()
        return _render_line(((block.text, "title"), *note), width)
    return _render_line((" " * block.indent, *block.spans), width) if isinstance(block, Line) else None


def _render_line(spans: Iterable[Span], width: int) -> list[str] | None:
    pieces = _style_spans(spans)
    text = "".join([text for text, _ in pieces])
    return [_write_codes(pieces)] if len(text) <= width and _is_narrow(text) else None


def _render_table(table: Table, width: int) -> list[str] | None:
    """Return the rows of a table; ``None`` for a head, for numbers, and where something must be wrapped."""
    if table.head or table.right or not table.rows:
        return None
    rows = [[_style_spans(cell_spans(cell)) for cell in row] for row in table.rows]
    widths = _fit_columns(table, rows, width)
    if widths is None:
        return None
    lines = []
    for row in rows:
        cells = [_fit_cell(pieces, size) for pieces, size in zip(row, widths, strict=True)]
        if None in cells:
            return None
        lines.append(" " * table.indent + "".join(filter(None, cells)))
    end = " " * (width - table.indent - sum(widths) - COLUMN_GAP * len(widths))
    return [row + end for row in lines]


def _fit_columns(table: Table, rows: list[list[_StyledText]], width: int) -> list[int] | None:
    """Return the width of each column, the last one as wide as there is room; ``None`` when a cell must be wrapped."""
    lengths = [[sum([len(text) for text, _ in pieces]) for pieces in row] for row in rows]
    longest = [max(column) for column in zip(*lengths, strict=True)]
    widths = [min(MAX_COLUMN_WIDTH, length) for length in longest]
    room = width - table.indent - sum(widths[:-1]) - COLUMN_GAP * len(widths)
    widths[-1] = min(room, longest[-1])
    return None if room < MIN_LAST_WIDTH or (not table.cut and longest != widths) else widths


def _fit_cell(pieces: _StyledText, width: int) -> str | None:
    """Return a cell with the gap after it, cut if it is too wide; ``None`` when its text has wide or odd characters."""
    text = "".join([text for text, _ in pieces])
    if not _is_narrow(text[: width + 1]) or text[-1:] == " ":
        return None
    if len(text) <= width:
        return _write_codes(pieces) + " " * (width - len(text) + COLUMN_GAP)
    left, shown = width - 1, []
    for piece, code in pieces:
        # The sign of what was cut has the style of the text in its place.
        shown.append((piece if len(piece) <= left else f"{piece[:left]}…", code))
        left -= len(piece)
        if left < 0:
            break
    return _write_codes(shown) + " " * COLUMN_GAP


def _is_narrow(text: str) -> bool:
    return text.isascii() or _NARROW.fullmatch(text) is not None


def _style_spans(spans: Iterable[Span]) -> _StyledText:
    pieces = [(span, "plain") if isinstance(span, str) else span for span in spans]
    return [(escape_line(text), _STYLE_CODES[style]) for text, style in pieces if text]


def _write_codes(pieces: _StyledText) -> str:
    return "".join([f"\x1b[{code}m{text}\x1b[0m" if code else text for text, code in pieces])

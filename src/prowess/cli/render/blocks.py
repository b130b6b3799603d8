"""What commands hand to the printer: lines, tables and strings with named styles, but no colours, escapes or widths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Style = Literal["plain", "title", "name", "dim", "good", "warn", "bad", "mark", "added", "removed"]
Span = str | tuple[str, Style]
"""A piece of text, and its style. Control characters in it are shown as escapes."""

Cell = Span | tuple[Span, ...]


class Line(NamedTuple):
    """One line of text, made of spans."""

    spans: tuple[Span, ...] = ()
    indent: int = 0
    cut: bool = False
    """True when a narrow terminal cuts the line instead of wrapping it."""


class Table(NamedTuple):
    """Rows of cells in columns. On a narrow terminal the last column is wrapped, or cut if ``cut`` is true."""

    rows: Sequence[Sequence[Cell]]
    head: tuple[str, ...] = ()
    indent: int = 0
    cut: bool = False
    right: frozenset[int] = frozenset()
    """The columns that are aligned to the right, because they hold numbers."""


class Verbatim(NamedTuple):
    """Text of several lines, shown as it is except for control characters; ``marks`` are highlighted parts."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    style: Style = "plain"


class Title(NamedTuple):
    """A heading. An empty line is printed above it unless it is the first block."""

    text: str
    note: str = ""


Block = Line | Table | Verbatim | Title


def line(*spans: Span, indent: int = 0, cut: bool = False) -> Line:
    """Return a line of these spans."""
    return Line(spans, indent, cut)


def diff_to_lines(diff: str, *, indent: int = 0, cut: bool = False) -> list[Line]:
    """Return a unified diff as lines, with styles for what was added and removed."""
    styles: dict[str, Style] = {"+": "added", "-": "removed"}
    # Not splitlines(): it also breaks at form feeds and the like, which belong to the line.
    rows = diff.removesuffix("\n").split("\n") if diff else []
    return [line((row, styles.get(row[:1], "plain")), indent=indent, cut=cut) for row in rows]


def show_unseen(block: Block) -> Block:
    """Return a block for a person to decide on: every character that nobody sees is written out, also those of emoji.

    The renderers escape only what could command a terminal: joiners and selectors are part of ordinary writing.
    """
    from prowess.text.hidden_characters import escape_invisible

    def show_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
        return tuple(
            [
                escape_invisible(span) if isinstance(span, str) else (escape_invisible(span[0]), span[1])
                for span in spans
            ]
        )

    match block:
        case Line():
            return Line(show_spans(block.spans), block.indent, block.cut)
        case Table():
            rows = [tuple(show_spans(cell_spans(cell)) for cell in row) for row in block.rows]
            return Table(rows, block.head, block.indent, block.cut, block.right)
        case Title():
            return Title(escape_invisible(block.text), escape_invisible(block.note))
        case Verbatim():
            text = "\n".join(map(escape_invisible, block.text.split("\n")))
            return block if text == block.text else Verbatim(text, (), block.style)


def cell_spans(cell: Cell) -> tuple[Span, ...]:
    """Return the spans of a cell, which may be a single span."""
    return (cell,) if _is_span(cell) else cell  # type: ignore[return-value]  # distinguished by the call


def _is_span(cell: Cell) -> bool:
    # Two plain spans are a pair of strings as well: it is one span only if the second names a style.
    return isinstance(cell, str) or (len(cell) == 2 and isinstance(cell[0], str) and cell[1] in _STYLE_NAMES)  # noqa: PLR2004


_STYLE_NAMES = frozenset(Style.__args__)  # type: ignore[attr-defined]  # what a Literal lists


def spans_text(spans: Iterable[Span]) -> str:
    """Return the text of spans, without their styles."""
    return "".join([span if isinstance(span, str) else span[0] for span in spans])

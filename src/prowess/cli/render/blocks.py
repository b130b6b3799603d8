"""What commands hand to the printer: lines, tables and texts with named styles; no colours, no escapes, no widths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Style = Literal["plain", "title", "name", "dim", "good", "warn", "bad", "mark", "added", "removed"]
Span = str | tuple[str, Style]
"""A piece of text, and how it is meant. Whatever it holds is shown, never obeyed."""

Cell = Span | tuple[Span, ...]


class Line(NamedTuple):
    """One line of spans."""

    spans: tuple[Span, ...] = ()
    indent: int = 0
    cut: bool = False
    """Whether a narrow terminal cuts it instead of wrapping it."""


class Table(NamedTuple):
    """Rows of cells in columns; on a narrow terminal the last column is wrapped, or cut."""

    rows: Sequence[Sequence[Cell]]
    head: tuple[str, ...] = ()
    indent: int = 0
    cut: bool = False
    right: frozenset[int] = frozenset()
    """The columns that hold numbers."""


class Verbatim(NamedTuple):
    """Text of several lines, shown as it is but for control characters; ``marks``: parts that stand out."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()
    style: Style = "plain"


class Title(NamedTuple):
    """A heading, with an empty line above unless it is the first."""

    text: str
    note: str = ""


Block = Line | Table | Verbatim | Title


def line(*spans: Span, indent: int = 0, cut: bool = False) -> Line:
    """A line of those spans."""
    return Line(spans, indent, cut)


def cell_spans(cell: Cell) -> tuple[Span, ...]:
    """The spans of a cell."""
    return (cell,) if _is_span(cell) else cell  # type: ignore[return-value]  # told apart by the call


def _is_span(cell: Cell) -> bool:
    return isinstance(cell, str) or (len(cell) == 2 and isinstance(cell[0], str) and cell[1] in _STYLE_NAMES)  # noqa: PLR2004


_STYLE_NAMES = frozenset(Style.__args__)  # type: ignore[attr-defined]  # what a Literal lists


def span_text(span: Span) -> str:
    """The text of a span."""
    return span if isinstance(span, str) else span[0]

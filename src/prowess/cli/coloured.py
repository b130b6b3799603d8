"""Blocks for a terminal: colours, and columns that fit its width. The one module that imports rich to show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from prowess.cli.blocks import Line, Table, Title, Verbatim, cell_spans
from prowess.cli.harmless import many_rows, one_row

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import IO

    from prowess.cli.blocks import Block, Span

STYLES = {
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


def console(file: IO[str], **options: Any) -> Console:  # noqa: ANN401 - rich's own
    """A console that takes no text for markup, and guesses nothing about it."""
    return Console(file=file, markup=False, highlight=False, emoji=False, **options)


def show(blocks: Iterable[Block], to: Console) -> None:
    """Print the blocks."""
    first = True
    for block in blocks:
        if isinstance(block, Title) and not first:
            to.print()
        if isinstance(block, Line) and block.cut:
            to.print(_renderable(block), no_wrap=True, overflow="ellipsis", crop=True)
        else:
            to.print(_renderable(block), soft_wrap=isinstance(block, Verbatim))
        first = False


def _renderable(block: Block) -> Text | Grid:
    if isinstance(block, Line):
        return Text(" " * block.indent) + _text(block.spans)
    if isinstance(block, Title):
        return _text(((block.text, "title"), *(((f"  ({block.note})", "dim"),) if block.note else ())))
    return _grid(block) if isinstance(block, Table) else _verbatim(block)


def _text(spans: Iterable[Span]) -> Text:
    text = Text()
    for span in spans:
        words, style = (span, "plain") if isinstance(span, str) else span
        text.append(one_row(words), STYLES[style])
    return text


def _verbatim(block: Verbatim) -> Text:
    text = Text(style=STYLES[block.style])
    at = 0
    for begin, end in block.marks:
        text.append(many_rows(block.text[at:begin]))
        text.append(many_rows(block.text[begin:end]), STYLES["mark"])
        at = end
    text.append(many_rows(block.text[at:]).removesuffix("\n"))
    return text


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, show_header=bool(table.head), padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    count = max(map(len, table.rows), default=len(table.head))
    if table.indent:
        grid.add_column("", width=table.indent - 2 if table.indent > 2 else 0)  # noqa: PLR2004 - the padding
    for at in range(count):
        last = at == count - 1
        overflow: Any = "ellipsis" if table.cut else "fold"
        name = table.head[at] if table.head else ""
        grid.add_column(
            name, no_wrap=not last or table.cut, overflow=overflow, justify="right" if at in table.right else "left"
        )
    for row in table.rows:
        grid.add_row(*([Text("")] if table.indent else []), *(_text(cell_spans(cell)) for cell in row))
    return grid

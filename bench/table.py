"""Tables that read well in a terminal and in Markdown, and the places in a document where they go."""

from __future__ import annotations

import os
import platform
import re
import time
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DOCUMENT_NAME = "docs/reference/benchmarks.md"
ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / DOCUMENT_NAME

Row = tuple[str, ...]


def render(head: Row, rows: Sequence[Row], *, numbers: frozenset[int] = frozenset()) -> str:
    """A Markdown table with padded cells; the columns in ``numbers`` stand to the right."""
    widths = [max(_width(row[at]) for row in (head, *rows)) for at in range(len(head))]
    lines = [_line(row, widths, numbers) for row in (head, *rows)]
    rule = "|".join("-" * (width + 1) + (":" if at in numbers else "-") for at, width in enumerate(widths))
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]]) + "\n"


def _line(row: Row, widths: list[int], numbers: frozenset[int]) -> str:
    cells = []
    for at, (cell, width) in enumerate(zip(row, widths, strict=True)):
        gap = " " * (width - _width(cell))
        cells.append(f" {gap}{cell} " if at in numbers else f" {cell}{gap} ")
    return f"|{'|'.join(cells)}|"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def machine() -> str:
    """What the figures depend on: cores, Python, kernel, day."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    kernel = f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}"
    return f"{os.cpu_count()} cores, {python}, {kernel}; {day()}"


def day() -> str:
    """The day of a run."""
    return time.strftime("%Y-%m-%d")


def write_between(name: str, text: str, document: Path = DOCUMENT) -> None:
    """Put ``text`` between the comments ``name:begin`` and ``name:end`` of the document."""
    page = document.read_text(encoding="utf-8")
    begin, end = (re.search(f"<!-- {name}: ?{mark} -->", page) for mark in ("begin", "end"))
    if begin is None or end is None:
        needed = f"<!-- {name}:begin --> and <!-- {name}:end -->"
        raise SystemExit(f"{document.name} has no place for the table: it needs the lines {needed}")
    document.write_text(f"{page[: begin.end()]}\n\n{text}\n{page[end.start() :]}", encoding="utf-8")

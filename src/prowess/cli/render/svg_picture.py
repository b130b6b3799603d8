"""A picture of a screen: blocks as an SVG file, drawn by rich."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from prowess.cli.render.rich_text import make_console, print_on_terminal
from prowess.files.write import write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.cli.render.blocks import Block

WIDTH = 80
_FONT_FACES = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""The fonts that rich names. A viewer would fetch them from another site, so they are taken out."""


def write_svg(blocks: Iterable[Block], path: str) -> None:
    """Write a picture of what a terminal would show. Equal blocks give equal files."""
    screen = make_console(io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    print_on_terminal(blocks, screen)
    # A fixed id: rich would make up one from the content, and every change would touch every line.
    svg = _FONT_FACES.sub("", screen.export_svg(title="prowess demo", unique_id="prowess"))
    write_atomic(path, svg.encode("utf-8"), mode=0o644)

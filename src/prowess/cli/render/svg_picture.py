"""A picture of a screen: blocks as an SVG, drawn by rich."""

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
"""Fonts that would be fetched from elsewhere: a picture shows itself."""


def write_svg(blocks: Iterable[Block], path: str) -> None:
    """Write what a terminal would show; the same blocks give the same picture."""
    screen = make_console(io.StringIO(), record=True, width=WIDTH, force_terminal=True, color_system="truecolor")
    print_on_terminal(blocks, screen)
    drawn = _FONT_FACES.sub("", screen.export_svg(title="prowess demo", unique_id="prowess"))
    write_atomic(path, drawn.encode("utf-8"), mode=0o644)

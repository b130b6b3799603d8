"""What is rendered for a terminal without rich is what rich renders, byte for byte."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess.cli.render.blocks import Block, Cell, Line, Style, Table, Title, Verbatim, line
from prowess.cli.render.rich_text import RICH_STYLES, make_console, print_on_terminal
from prowess.cli.render.simple_terminal import find_width, is_ordinary_terminal, render_simple

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLES: list[Style] = list(RICH_STYLES)  # type: ignore[arg-type]  # its keys are the styles


def render_with_rich(blocks: Sequence[Block], width: int) -> str:
    stream = io.StringIO()
    print_on_terminal(
        blocks, make_console(stream, force_terminal=True, color_system="standard", width=width, _environ={})
    )
    return stream.getvalue()


NARROW = st.text(st.sampled_from("ab c-[]\\:é—"), max_size=30)
ODD = st.text(st.sampled_from("a \u2019…漢😀\x1b\t\n\u200b\u0301"), max_size=8) | st.text(max_size=4)
TEXTS = st.sampled_from([NARROW] * 9 + [ODD]).flatmap(lambda texts: texts)
SPANS = TEXTS | st.tuples(TEXTS, st.sampled_from(STYLES))
CELLS: st.SearchStrategy[Cell] = SPANS | st.lists(SPANS, max_size=3).map(tuple)
ROWS = st.integers(1, 3).flatmap(lambda columns: st.lists(st.tuples(*[CELLS] * columns), max_size=4))
BLOCKS = st.lists(
    st.builds(Title, TEXTS, TEXTS)
    | st.builds(Line, st.lists(SPANS, max_size=3).map(tuple), st.integers(0, 4), st.booleans())
    | st.builds(Table, ROWS, indent=st.integers(0, 4), cut=st.booleans())
    | st.builds(Verbatim, TEXTS),
    max_size=4,
)
LONG = "Fill in the form, and say what is missing — then send it to whoever asked for it."


@given(blocks=BLOCKS, width=st.sampled_from([1, 12, 20, 40, 80]))
@example(blocks=[Title("skills", "2 skills"), Title("more")], width=80)
@example(blocks=[Line(), line("a", ("b", "bad"), indent=2)], width=80)
@example(blocks=[Table([(("pdf", "name"), (("[hidden] ", "warn"), LONG))], indent=2, cut=True)], width=40)
@example(blocks=[Table([(("pdf", "name"), (LONG[:12], "dim"), LONG * 3), ("x" * 50, "", "")], cut=True)], width=100)
@example(blocks=[Table([("a", (("b" * 9, "good"), ("c" * 9, "dim")))], cut=True)], width=14)
@example(blocks=[Table([("a", "b" * 100)], cut=False)], width=40)
def test_simple_blocks_look_as_rich_renders_them(blocks: list[Block], width: int) -> None:
    simple = render_simple(blocks, width)
    assert simple is None or simple == render_with_rich(blocks, width)


def test_every_style_has_the_colours_that_rich_gives_it() -> None:
    blocks = [line((style, style)) for style in STYLES]
    assert render_simple(blocks, 80) == render_with_rich(blocks, 80)


def test_an_ordinary_listing_is_simple() -> None:
    rows = [((f"skill-{number}", "name"), f"{number}. Für alle — {LONG}") for number in range(20)]
    blocks: list[Block] = [Title("skills", "20 skills"), Table(rows, indent=2, cut=True)]
    assert render_simple(blocks, 100) == render_with_rich(blocks, 100)


@pytest.mark.parametrize(
    "setting", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, {"TTY_COMPATIBLE": "0"}, {"TERM": "dumb"}]
)
def test_a_setting_that_changes_colours_is_left_to_rich(setting: dict[str, str]) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    assert is_ordinary_terminal(stream, {"TERM": "xterm"})
    assert not is_ordinary_terminal(stream, {"TERM": "xterm", **setting})
    assert not is_ordinary_terminal(io.TextIOWrapper(io.BytesIO(), encoding="latin-1"), {"TERM": "xterm"})


@pytest.mark.parametrize("columns", ["0", "100", "-1", "wide"])
def test_the_width_is_the_one_that_rich_takes(columns: str) -> None:
    environ = {"COLUMNS": columns}
    assert find_width(environ) == make_console(io.StringIO(), force_terminal=True, _environ=environ).width

"""What is printed on a terminal: styles, columns that fit its width, and text that cannot command it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from prowess.cli.render.blocks import Block, Line, Table, Title, Verbatim, line
from prowess.cli.render.rich_text import make_console, print_on_terminal

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG = "Fill in the form, and say what is missing — then send it to whoever asked for it."


def render(blocks: Sequence[Block], width: int = 80, *, colours: bool = False) -> str:
    stream = io.StringIO()
    system = "standard" if colours else None
    print_on_terminal(
        blocks, make_console(stream, force_terminal=colours, color_system=system, width=width, _environ={})
    )
    return stream.getvalue()


def test_a_listing_has_one_line_for_each_row_and_cuts_the_last_column() -> None:
    rows = [((f"skill-{number}", "name"), f"{number}. Für alle — {LONG}") for number in range(3)]
    shown = render([Title("skills", "3 skills"), Table(rows, indent=2, cut=True)], 40).splitlines()
    assert shown[0] == "skills  (3 skills)"
    assert [row.split()[0] for row in shown[1:]] == ["skill-0", "skill-1", "skill-2"]
    assert all(row.rstrip().endswith("…") and len(row) <= 40 for row in shown[1:])


def test_a_table_that_is_not_cut_wraps_its_last_column_alone() -> None:
    shown = render([Table([("a name of its own", LONG)])], 50).splitlines()
    assert len(shown) > 1
    assert shown[0].startswith("a name of its own  Fill in")
    assert "".join(row[19:].strip() + " " for row in shown).split() == LONG.split()


def test_styles_become_colours_and_text_cannot_set_any() -> None:
    assert (
        render([line(("bad", "bad"), " [red]plain[/red]")], colours=True) == "\x1b[1;31mbad\x1b[0m [red]plain[/red]\n"
    )


@given(st.text(max_size=20), st.sampled_from([12, 40]))
def test_no_text_commands_the_terminal(text: str, width: int) -> None:
    blocks: list[Block] = [Title(text, text), Line((text,)), Table([(text, text)]), Verbatim(text)]
    shown = render(blocks, width)
    assert not {char for char in shown if (ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0}

"""What a person cannot see is found, and gone from listings."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess.text.hidden_characters import (
    _BREAKS,
    _SELECTOR_RUN,
    _UNSEEN,
    ODD_BYTES,
    are_surely_clean,
    find_hidden_points,
    has_hidden,
    to_one_line,
)

if TYPE_CHECKING:
    import random

INVISIBLE = [
    *("\u00ad", "\u034f", "\u061c", "\u115f", "\u1160", "\u17b4", "\u17b5", "\u180e", "\u200b", "\u200c", "\u200d"),
    *("\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2060", "\u2061", "\u2064", "\u2066"),
    *("\u2067", "\u2068", "\u2069", "\u206a", "\u206f", "\u3164", "\ufeff", "\uffa0", "\ufff9", "\ufffb"),
    *("\U0001d173", "\U0001d17a", "\U000e0000", "\U000e0001", "\U000e0020", "\U000e0041", "\U000e007f"),
]
SELECTORS = ["\ufe00", "\ufe0e", "\ufe0f", "\U000e0100", "\U000e01ef"]


@pytest.mark.parametrize("char", INVISIBLE, ids=ascii)
def test_an_invisible_character_is_found_and_left_out(char: str) -> None:
    text = f"a{char}b"
    assert find_hidden_points(text) == (f"U+{ord(char):04X}",)
    assert has_hidden(text)
    assert to_one_line(text) == "ab"


@pytest.mark.parametrize("char", SELECTORS, ids=ascii)
def test_one_variation_selector_is_ordinary_in_text_and_hidden_in_a_name(char: str) -> None:
    assert find_hidden_points(f"☺{char} ok") == ()
    assert to_one_line(f"☺{char} ok") == f"☺{char} ok"
    assert has_hidden(f"a{char}")


def test_a_run_of_variation_selectors_is_a_message() -> None:
    text = "a" + "\ufe00\ufe01\U000e0100" + "b"
    assert find_hidden_points(text) == ("U+FE00", "U+FE01", "U+E0100")
    assert to_one_line(text) == "ab"


def test_each_hidden_code_point_is_named_once_in_order_of_appearance() -> None:
    assert find_hidden_points("\u200ba\u00ad\u200b") == ("U+200B", "U+00AD")


@given(st.text(st.sampled_from([*INVISIBLE, *SELECTORS, "a", " ", "\n"]) | st.characters(), max_size=30))
@example("a\ufe0f\u200b\ufe0f\u200b\ufe0f")
@example("\u200b \u200b \u200b")
def test_nothing_hidden_is_left_on_one_line(text: str) -> None:
    shown = to_one_line(text)
    assert find_hidden_points(shown) == ()
    assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp", "Cs"} for char in shown)
    assert "  " not in shown
    assert shown == shown.strip()
    assert to_one_line(shown) == shown


@given(st.text(st.characters(exclude_categories=["C", "Z", "Mn", "Lo"]), max_size=30))
def test_visible_text_stays_as_it_is(text: str) -> None:
    assert to_one_line(text) == text
    assert find_hidden_points(text) == ()


def test_breaks_and_controls_become_one_blank() -> None:
    assert to_one_line("\n a\r\n\n\tb\x00\x1b\x85\u2028c\u3000d\x9b") == "a b c d"


def test_a_code_point_is_shown_or_left_out_whatever_stands_beside_it(rng: random.Random, full: bool) -> None:
    """The short cut for ordinary text decides as the patterns do."""
    crowded = (*range(0x3300), *range(0xFE00, 0x10000), *range(0x1D150, 0x1D180), *range(0xE0000, 0xE0200))
    for point in range(0x110000) if full else (*crowded, *rng.sample(range(0x110000), 5_000)):
        for text in (f"a{chr(point)}b", f"a{chr(point)}{chr(point)}\u00e9\nb"):
            kept = _SELECTOR_RUN.sub("", _UNSEEN.sub("", text))
            assert to_one_line(text) == _BREAKS.sub(" ", kept).strip(" "), hex(point)
        assert not are_surely_clean(f" a{chr(point)}b ") or to_one_line(f"a{chr(point)}b") == f"a{chr(point)}b"


@pytest.mark.parametrize("fields", ["  a b ", " a  b ", " a b  ", "  ", " a\ud800 ", " a\nb ", " a<b "])
def test_fields_with_something_to_clean_or_unwanted_are_not_taken_for_clean(fields: str) -> None:
    assert not are_surely_clean(fields, ODD_BYTES + b"<")


@pytest.mark.parametrize("fields", [" a b ", " é — ü ", " a<b c&d "])
def test_ordinary_fields_are_seen_to_be_clean(fields: str) -> None:
    assert are_surely_clean(fields)

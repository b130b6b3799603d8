"""Text of skills in elements, for any text: it ends no element, begins none, and says the same to a parser."""

from __future__ import annotations

import unicodedata
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess.text.markup import escape_attribute, escape_xml, neutralize_tags, wrap_in_element
from tests.tag_reader import WHOLE, seen, tags_in

BRACKETS = ["<", "\uff1c", "\ufe64", ">", "/", "\uff0f", '"', "\uff02", "&lt;", "&"]
NAMES = ["skill_content", "SKILL", "_", "\uff3f", "content", "\u017fkill", "name=", "x"]
UNSEEN = ["\u200b", "\u00ad", "\ufe0f", "\u034f", "\u0338", "\x00", "\n", "\u00a0", " "]
PIECES = st.sampled_from([*BRACKETS, *NAMES, *UNSEEN])
TEXT = st.lists(PIECES | st.text(max_size=3), max_size=12).map("".join)


@given(TEXT, TEXT)
def test_the_element_is_the_only_one_whatever_it_holds(name: str, body: str) -> None:
    for tag in ("skill_content", "skill"):
        assert tags_in(wrap_in_element(tag, name, f"{body}\n"), tag) == WHOLE
    sent = prowess.fork_user_message(prowess.PreparedFork(name, "", body, head=0))
    assert tags_in(sent, "skill") == WHOLE


LETTERS = [(letter, letter.upper(), chr(ord(letter) + 0xFEE0)) for letter in "skill_content"]
VEILS = st.sampled_from(["", "", "", "\x01", "\u200b", "\ufe0f", "\U000e0041"])
DISGUISED = st.tuples(
    st.sampled_from(["<", "\uff1c", "\ufe64"]),
    st.lists(st.sampled_from([" ", "/", "\uff0f", "\x01", "\u200b", "\n"]), max_size=3).map("".join),
    *(st.tuples(VEILS, st.sampled_from(letter)).map("".join) for letter in LETTERS),
    st.sampled_from(["", ">", " x", "-name", "s", "\x01-name", "\u200bs", "\u2014", "\u0301"]),
).map("".join)


@given(TEXT, DISGUISED)
def test_no_disguise_of_a_tag_is_missed_by_the_quick_look_for_one(text: str, disguised: str) -> None:
    for body in (disguised, text + disguised):
        harmless = unicodedata.normalize("NFKC", body) == body and not tags_in(body)
        changed = neutralize_tags(body)
        assert tags_in(changed) == []
        assert not harmless or changed == body


@given(TEXT)
def test_text_without_such_a_tag_stays_as_it_is(body: str) -> None:
    harmless = not tags_in(body) and not tags_in(body, "skill")
    changed = neutralize_tags(body, "skill_content", "skill")
    assert tags_in(changed) == tags_in(changed, "skill") == []
    # Marks that join a letter when the text is normalized hide a tag from that reader, and not from all.
    assert not harmless or changed == body or unicodedata.normalize("NFKC", body) != body


@given(TEXT)
def test_escaped_text_says_the_same_to_a_parser(text: str) -> None:
    assert not {"<", ">"} & set(seen(escape_attribute(text)))
    assert "<" not in seen(escape_xml(text))
    assert '"' not in seen(escape_attribute(text))
    assert unescape(escape_attribute(text.replace("\x00", ""))) == text.replace("\x00", "")

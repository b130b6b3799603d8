"""A listing parses back to the skills it was made of, whatever their text."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prowess import Frontmatter, Skill, SourceError, render_catalog
from prowess.skills.render import ListingStyle
from prowess.text.hidden_characters import to_one_line

if TYPE_CHECKING:
    from collections.abc import Callable

STYLES: tuple[ListingStyle, ...] = get_args(ListingStyle)


@dataclass(frozen=True)
class Entry:
    name: str
    description: str
    location: str


def as_listed(entry: Entry) -> Entry:
    return Entry(to_one_line(entry.name), to_one_line(entry.description)[:1024].rstrip(), to_one_line(entry.location))


# -- a reader for each style -------------------------------------------------------------------------------------------


def read_xml(block: str) -> list[Entry]:
    root = ET.fromstring(block)  # noqa: S314 - the block is ours
    assert root.tag == "available_skills"
    found = []
    for skill in root:
        assert skill.tag == "skill"
        assert [child.tag for child in skill] == ["name", "description", "location"]
        assert not any(len(child) for child in skill)
        found.append(Entry(*(child.text or "" for child in skill)))
    return found


def read_json(block: str) -> list[Entry]:
    return [Entry(**row) for row in json.loads(block)]


def read_markdown(block: str) -> list[Entry]:
    found = []
    for row in block.split("\n"):
        match = re.fullmatch(r"- \*\*((?:[^\\*]|\\.)*)\*\*: (.*)", row)
        assert match is not None, row
        assert not re.search(r"(?<!\\)(?:\\\\)*[`*\[\]<>]", match[2]), "the description holds live markup"
        name, description = (re.sub(r"\\(.)", r"\1", part) for part in match.groups())
        found.append(Entry(name, description, ""))
    return found


def read_text(block: str) -> list[Entry]:
    found = []
    for row in block.split("\n"):
        assert row.startswith("- ")
        if row.startswith('- "'):
            name, end = json.JSONDecoder().raw_decode(row, 2)
            assert row[end : end + 2] == ": "
            description = row[end + 2 :]
        else:
            name, _, description = row[2:].partition(": ")
        found.append(Entry(name, description, ""))
    return found


READERS: dict[ListingStyle, Callable[[str], list[Entry]]] = {
    "xml": read_xml,
    "json": read_json,
    "markdown": read_markdown,
    "text": read_text,
}

# -- any text ----------------------------------------------------------------------------------------------------------

SPITEFUL = [
    *("</description></skill></available_skills>", "<available_skills>", "<skill>", "&amp;", "&#10;", "]]>", "<!--"),
    *(
        "\n\n## System\n",
        "\n- **good**: fake",
        "- good: fake",
        "**",
        "`",
        "```",
        "\\",
        "\\\\",
        "[a](javascript:b)",
        ": ",
    ),
    *('"', "'", '": "', '"}, {"name": "x', "{skills_list}", "{0}", "%s", "$ARGUMENTS", "${SKILL_DIR}", "---", ":", "#"),
    *(
        "\u2028",
        "\u2029",
        "\x85",
        "\r",
        "\x0b",
        "\x1c",
        "\x00",
        "\x1b[2J",
        "\x9b",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\ufffe",
    ),
    *("\ud800", "\U000e0041", "\ufe0f\ufe0f", "\U0010ffff", "\u3000", "é", "漢", "😀", " ", "a", "x" * 1100),
]
TEXT = st.lists(st.sampled_from(SPITEFUL) | st.text(max_size=8), max_size=6).map("".join)
ENTRIES = st.lists(st.builds(Entry, TEXT, TEXT, TEXT), min_size=1, max_size=4)


@given(entries=ENTRIES)
@example(entries=[Entry("a", "", ""), Entry("b: c", ": d", "e")])
@example(entries=[Entry("a:", "b", ""), Entry('"a', "b", ""), Entry('"', '"', '"')])
@example(entries=[Entry("", "", "")])
@example(entries=[Entry(" a", "b", "c"), Entry("a", "b", "c "), Entry(" ", " ", " "), Entry("a ", " b ", " c")])
@example(entries=[Entry("\\", "\\", "\\")])
@example(entries=[Entry("a", "\nb\n\u200bc\n", "d"), Entry("a\nb", "c\n\nd", "e\n"), Entry("a", "b\nc", "d")])
def test_the_listing_parses_back_to_the_same_skills_in_every_style(entries: list[Entry]) -> None:
    expected = [as_listed(entry) for entry in entries]
    nowhere = [Entry(entry.name, entry.description, "") for entry in expected]
    for style in STYLES:
        found = READERS[style](render_catalog(entries, style))
        assert found == (nowhere if style in {"markdown", "text"} else expected), style


@given(entries=ENTRIES)
def test_every_entry_takes_the_lines_of_its_style_and_can_be_sent_as_utf8(entries: list[Entry]) -> None:
    for style in STYLES:
        block = render_catalog(entries, style)
        rows = block.splitlines()
        assert len(rows) == (2 + 5 * len(entries) if style == "xml" else len(entries)), style
        assert all(row.isprintable() for row in rows if row.isascii()), style
        assert block.encode("utf-8")


# -- exact shapes ------------------------------------------------------------------------------------------------------

TWO = [Entry("pdf", "Reads PDF.", "/s/pdf/SKILL.md"), Entry("a&b", "x < y", "inline:a&b")]


@pytest.mark.parametrize(
    ("style", "block"),
    [
        (
            "xml",
            (
                "<available_skills>\n"
                "  <skill>\n    <name>pdf</name>\n    <description>Reads PDF.</description>\n"
                "    <location>/s/pdf/SKILL.md</location>\n  </skill>\n"
                "  <skill>\n    <name>a&amp;b</name>\n    <description>x &lt; y</description>\n"
                "    <location>inline:a&amp;b</location>\n  </skill>\n"
                "</available_skills>"
            ),
        ),
        ("markdown", "- **pdf**: Reads PDF.\n- **a&b**: x \\< y"),
        ("text", "- pdf: Reads PDF.\n- a&b: x < y"),
        (
            "json",
            (
                '[{"name": "pdf", "description": "Reads PDF.", "location": "/s/pdf/SKILL.md"},\n'
                ' {"name": "a&b", "description": "x < y", "location": "inline:a&b"}]'
            ),
        ),
    ],
)
def test_each_style_looks_like_this(style: ListingStyle, block: str) -> None:
    assert render_catalog(TWO, style) == block


def test_xml_is_the_default_style() -> None:
    assert render_catalog(TWO) == render_catalog(TWO, "xml")


@pytest.mark.parametrize("style", STYLES)
def test_nothing_to_list_is_an_empty_block(style: ListingStyle) -> None:
    assert render_catalog([], style) == ""


@pytest.mark.parametrize("style", STYLES)
def test_skills_keep_the_order_given_and_may_be_any_iterable(style: ListingStyle) -> None:
    names = [entry.name for entry in READERS[style](render_catalog(iter(reversed(TWO)), style))]
    assert names == ["a&b", "pdf"]


def test_an_unknown_style_is_refused_with_the_known_ones() -> None:
    with pytest.raises(SourceError, match="xml, markdown, text, json"):
        render_catalog(TWO, "yaml")  # type: ignore[arg-type]  # the point of the test


def test_a_long_description_is_cut_at_1024_characters() -> None:
    (entry,) = read_json(render_catalog([Entry("a", "漢" * 2000, "")], "json"))
    assert entry.description == "漢" * 1024


def test_a_skills_own_entry_stands_in_the_listing() -> None:
    skill = Skill(Frontmatter("a<b", "c\n d"))
    assert skill.to_xml() == (
        "<skill>\n    <name>a&lt;b</name>\n    <description>c d</description>\n"
        "    <location>inline:a&lt;b</location>\n  </skill>"
    )
    assert f"  {skill.to_xml()}\n" in render_catalog([skill])

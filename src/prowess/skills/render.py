"""Listings of skills for a model, in four styles: each field is on one line and escaped, and nothing is hidden."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol

from prowess.errors import SourceError
from prowess.limits import MAX_DESCRIPTION_LENGTH as _LONGEST
from prowess.text.hidden_characters import ODD_BYTES, are_surely_clean, to_one_line
from prowess.text.markup import escape_xml, neutralize_json, neutralize_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ListingStyle = Literal["xml", "markdown", "text", "json"]


class Listable(Protocol):
    """The three strings of a skill that a listing shows."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def location(self) -> str: ...


ListingEntry = tuple[str, str, str]
"""Name, description and location as a listing shows them: each on one line, without hidden code points."""

_ODD_IN_XML = ODD_BYTES + b"<>&"
_FRAME_PARTS = 2  # of a listing without entries: its first and its last line
_MARKDOWN = re.compile(r"[\\`*\[\]<>]")
_ESCAPED = r"\\\g<0>"


def make_entries(skills: Iterable[Listable], *, has_location: bool = True) -> list[ListingEntry]:
    """Return the entries of skills, each description cut at 1,024 characters; without locations where none is shown."""
    # A line break is the commonest thing to clean; ``to_one_line`` would make a space of it too.
    fields = [
        (each.name, each.description.replace("\n", " "), each.location if has_location else "") for each in skills
    ]
    return [
        entry
        if len(entry[1]) <= _LONGEST and are_surely_clean(f" {' '.join(filter(None, entry))} ")
        else _clean_entry(*entry)
        for entry in fields
    ]


def _clean_entry(name: str, description: str, location: str) -> ListingEntry:
    return to_one_line(name), to_one_line(description)[:_LONGEST].rstrip(), to_one_line(location)


def render_entries(entries: Sequence[ListingEntry], style: ListingStyle = "xml") -> str:
    """Return the entries in one of the styles, in the order given; ``""`` when there are none.

    Raises ``SourceError`` for a style that does not exist.
    """
    render = _STYLES.get(style)
    if render is None:
        raise SourceError(f"unknown style {style!r}; the styles are {', '.join(_STYLES)}")
    return render(entries) if entries else ""


def render_xml(skills: Iterable[Listable]) -> str:
    """Return the XML listing of all ``skills``, in the order given; ``""`` when there are none."""
    # Fast path of the bench row "render_catalog": most skills need neither cleaning nor escaping. The slow path is
    # ``render_xml_entry``; tests/skills/test_render.py reads listings of any string back.
    parts = ["<available_skills>\n"]
    for skill in skills:
        name, description, location = skill.name, skill.description, skill.location
        if "\n" in description:
            description = description.replace("\n", " ")
        if len(description) <= _LONGEST and are_surely_clean(f" {name} {description} {location} ", _ODD_IN_XML):
            parts.append(
                f"  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
                f"    <location>{location}</location>\n  </skill>\n"
            )
        else:
            parts.append(f"  {render_xml_entry(_clean_entry(name, description, location))}\n")
    parts.append("</available_skills>")
    return "".join(parts) if len(parts) > _FRAME_PARTS else ""


def render_skill_xml(skill: Listable) -> str:
    """Return the ``<skill>`` element of one skill; its first line is not indented, so that the caller can indent it."""
    return render_xml_entry(make_entries([skill])[0])


def render_xml_entry(entry: ListingEntry) -> str:
    name, description, location = map(escape_xml, entry)
    return (
        f"<skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
        f"    <location>{location}</location>\n  </skill>"
    )


def _render_xml_listing(entries: Sequence[ListingEntry]) -> str:
    elements = "".join([f"  {render_xml_entry(entry)}\n" for entry in entries])
    return f"<available_skills>\n{elements}</available_skills>"


def _render_markdown(entries: Sequence[ListingEntry]) -> str:
    lines = (
        f"- **{_MARKDOWN.sub(_ESCAPED, name)}**: {_MARKDOWN.sub(_ESCAPED, description)}"
        for name, description, _ in entries
    )
    return neutralize_tags("\n".join(lines))


def _render_text(entries: Sequence[ListingEntry]) -> str:
    return neutralize_tags("\n".join(f"- {_quote_name(name)}: {description}" for name, description, _ in entries))


def _quote_name(name: str) -> str:
    """Return the name, in quotes only where a reader could take it for a name with a description."""
    is_ambiguous = ": " in name or name.endswith(":") or name.startswith('"')
    return json.dumps(name, ensure_ascii=False) if is_ambiguous else name


def render_lines(entries: Iterable[ListingEntry]) -> str:
    """Return one line for each entry: ``- name: description``, or ``- name`` where there is no description."""
    lines = (f"- {name}: {description}" if description else f"- {name}" for name, description, _ in entries)
    return neutralize_tags("\n".join(lines))


def _render_json(entries: Sequence[ListingEntry]) -> str:
    keys = ("name", "description", "location")
    objects = (json.dumps(dict(zip(keys, entry, strict=True)), ensure_ascii=False) for entry in entries)
    return neutralize_json("[" + ",\n ".join(objects) + "]")


_STYLES: dict[str, Callable[[Sequence[ListingEntry]], str]] = {
    "xml": _render_xml_listing,
    "markdown": _render_markdown,
    "text": _render_text,
    "json": _render_json,
}

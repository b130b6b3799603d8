"""Skills as a model sees them: one entry each, every field on one line and escaped, nothing hidden."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol

from prowess.errors import SourceError
from prowess.limits import MAX_DESCRIPTION_LENGTH as _LONGEST
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markup import escape_xml, neutralize_json, neutralize_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ListingStyle = Literal["xml", "markdown", "text", "json"]


class Listable(Protocol):
    """What a listing needs of a skill."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def location(self) -> str: ...


ListingEntry = tuple[str, str, str]
"""Name, description and location as a listing shows them: each on one line, without hidden code points."""

_NOT_CLEAN = bytes((*range(32), 127, *b"<>&"))
_MARKDOWN = re.compile(r"([\\`*\[\]<>])")


def make_entry(skill: Listable) -> ListingEntry:
    """The entry of a skill; its description cut at 1,024 characters."""
    name, description, location = skill.name, skill.description, skill.location
    together = f"{name} {description} {location}"
    # Fast path: blanks at the edges of a field are double ones here, but for the first and the last.
    is_clean = together.isascii() and together.isprintable() and "  " not in together and together[0] != " "
    if is_clean and location[-1:] != " " and len(description) <= _LONGEST:
        return name, description, location
    return _clean_entry(name, description, location)


def _clean_entry(name: str, description: str, location: str) -> ListingEntry:
    return to_one_line(name), to_one_line(description)[:_LONGEST].rstrip(), to_one_line(location)


def render_entries(entries: Sequence[ListingEntry], style: ListingStyle = "xml") -> str:
    """The entries in one of the styles, in the order given; ``""`` when there are none."""
    render = _STYLES.get(style)
    if render is None:
        raise SourceError(f"unknown style {style!r}; one of {', '.join(_STYLES)}")
    return render(entries) if entries else ""


def render_xml(skills: Iterable[Listable]) -> str:
    """The XML listing of skills as they are; ``""`` without any."""
    rows: list[str] = []
    for skill in skills:  # one look at all fields shows, for most skills, that nothing needs to be done
        name, description, location = skill.name, skill.description, skill.location
        together = f"{name} {description} {location}"
        if not (
            together.isascii()
            and together.encode().translate(None, _NOT_CLEAN) == together.encode()
            and "  " not in together
            and len(description) <= _LONGEST
            and together.strip() is together
        ):
            rows.append(f"  {_render_xml_entry(_clean_entry(name, description, location))}\n")
            continue
        rows.append(
            f"  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
            f"    <location>{location}</location>\n  </skill>\n"
        )
    return f"<available_skills>\n{''.join(rows)}</available_skills>" if rows else ""


def _render_xml_row(name: str, description: str, location: str) -> str:
    return (
        f"<skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
        f"    <location>{location}</location>\n  </skill>"
    )


def render_skill_xml(skill: Listable) -> str:
    """One ``<skill>`` entry; the first line is not indented, so that it can be placed."""
    return _render_xml_entry(make_entry(skill))


def _render_xml_entry(entry: ListingEntry) -> str:
    name, description, location = map(escape_xml, entry)
    return _render_xml_row(name, description, location)


def _render_xml_listing(entries: Sequence[ListingEntry]) -> str:
    rows = "".join(f"  {_render_xml_entry(entry)}\n" for entry in entries)
    return f"<available_skills>\n{rows}</available_skills>"


def _render_markdown(entries: Sequence[ListingEntry]) -> str:
    def escape_markdown(text: str) -> str:
        return _MARKDOWN.sub(r"\\\1", text)

    return neutralize_tags(
        "\n".join(f"- **{escape_markdown(name)}**: {escape_markdown(row)}" for name, row, _ in entries)
    )


def _render_text(entries: Sequence[ListingEntry]) -> str:
    return neutralize_tags("\n".join(f"- {_quote_name(name)}: {description}" for name, description, _ in entries))


def _quote_name(name: str) -> str:
    """A name is quoted only where it could be mistaken for more than a name."""
    odd = ": " in name or name.endswith(":") or name.startswith('"')
    return json.dumps(name, ensure_ascii=False) if odd else name


def render_lines(entries: Iterable[ListingEntry]) -> str:
    """One line for each entry: ``- name: description``, or ``- name`` where there is no description."""
    rows = (f"- {name}: {description}" if description else f"- {name}" for name, description, _ in entries)
    return neutralize_tags("\n".join(rows))


def _render_json(entries: Sequence[ListingEntry]) -> str:
    keys = ("name", "description", "location")
    rows = (json.dumps(dict(zip(keys, entry, strict=True)), ensure_ascii=False) for entry in entries)
    return neutralize_json("[" + ",\n ".join(rows) + "]")


_STYLES: dict[str, Callable[[Sequence[ListingEntry]], str]] = {
    "xml": _render_xml_listing,
    "markdown": _render_markdown,
    "text": _render_text,
    "json": _render_json,
}

"""Skills as a model sees them: one entry each, every field on one line and escaped, nothing hidden."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol

from prowess.errors import SourceError
from prowess.limits import MAX_DESCRIPTION_LENGTH as _LONGEST
from prowess.spec.hidden_characters import one_line
from prowess.spec.markup import escape_xml, neutralize_json, neutralize_tags

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Style = Literal["xml", "markdown", "text", "json"]


class Listed(Protocol):
    """What a listing needs of a skill."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def location(self) -> str: ...


Entry = tuple[str, str, str]
"""Name, description and location as a listing shows them: each on one line, without hidden code points."""

_NOT_CLEAN = bytes((*range(32), 127, *b"<>&"))
_MARKDOWN = re.compile(r"([\\`*\[\]<>])")


def listed(skill: Listed) -> Entry:
    """The entry of a skill; its description cut at 1,024 characters."""
    name, description, location = skill.name, skill.description, skill.location
    together = f"{name} {description} {location}"
    # Fast path: blanks at the edges of a field are double ones here, but for the first and the last.
    is_clean = together.isascii() and together.isprintable() and "  " not in together and together[0] != " "
    if is_clean and location[-1:] != " " and len(description) <= _LONGEST:
        return name, description, location
    return _cleaned(name, description, location)


def _cleaned(name: str, description: str, location: str) -> Entry:
    return one_line(name), one_line(description)[:_LONGEST].rstrip(), one_line(location)


def render_entries(entries: Sequence[Entry], style: Style = "xml") -> str:
    """The entries in one of the styles, in the order given; ``""`` when there are none."""
    render = _STYLES.get(style)
    if render is None:
        raise SourceError(f"unknown style {style!r}; one of {', '.join(_STYLES)}")
    return render(entries) if entries else ""


def render_xml(skills: Iterable[Listed]) -> str:
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
            rows.append(f"  {_xml_entry(_cleaned(name, description, location))}\n")
            continue
        rows.append(
            f"  <skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
            f"    <location>{location}</location>\n  </skill>\n"
        )
    return f"<available_skills>\n{''.join(rows)}</available_skills>" if rows else ""


def _xml_row(name: str, description: str, location: str) -> str:
    return (
        f"<skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
        f"    <location>{location}</location>\n  </skill>"
    )


def skill_xml(skill: Listed) -> str:
    """One ``<skill>`` entry; the first line is not indented, so that it can be placed."""
    return _xml_entry(listed(skill))


def _xml_entry(entry: Entry) -> str:
    name, description, location = map(escape_xml, entry)
    return _xml_row(name, description, location)


def _xml(entries: Sequence[Entry]) -> str:
    rows = "".join(f"  {_xml_entry(entry)}\n" for entry in entries)
    return f"<available_skills>\n{rows}</available_skills>"


def _markdown(entries: Sequence[Entry]) -> str:
    def escaped(text: str) -> str:
        return _MARKDOWN.sub(r"\\\1", text)

    return neutralize_tags("\n".join(f"- **{escaped(name)}**: {escaped(row)}" for name, row, _ in entries))


def _text(entries: Sequence[Entry]) -> str:
    return neutralize_tags("\n".join(f"- {_text_name(name)}: {description}" for name, description, _ in entries))


def _text_name(name: str) -> str:
    """A name is quoted only where it could be mistaken for more than a name."""
    odd = ": " in name or name.endswith(":") or name.startswith('"')
    return json.dumps(name, ensure_ascii=False) if odd else name


def render_lines(entries: Iterable[Entry]) -> str:
    """One line for each entry: ``- name: description``, or ``- name`` where there is no description."""
    rows = (f"- {name}: {description}" if description else f"- {name}" for name, description, _ in entries)
    return neutralize_tags("\n".join(rows))


def _json(entries: Sequence[Entry]) -> str:
    keys = ("name", "description", "location")
    rows = (json.dumps(dict(zip(keys, entry, strict=True)), ensure_ascii=False) for entry in entries)
    return neutralize_json("[" + ",\n ".join(rows) + "]")


_STYLES: dict[str, Callable[[Sequence[Entry]], str]] = {
    "xml": _xml,
    "markdown": _markdown,
    "text": _text,
    "json": _json,
}

"""Skills as a model sees them: one entry each, every field on one line and escaped, nothing hidden."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, Protocol

from prowess.errors import SourceError
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.spec.hidden import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Style = Literal["xml", "markdown", "text", "json"]


class Listed(Protocol):
    """What a listing needs of a skill."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def location(self) -> str: ...


_XML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_MARKDOWN = re.compile(r"([\\`*\[\]<>])")


def render_catalog(skills: Iterable[Listed], style: Style = "xml") -> str:
    """The listing for a system prompt, in the order given; ``""`` when there is nothing to list.

    ``xml``, ``markdown``, ``text`` or ``json``. A description is cut at 1,024 characters; line breaks and controls
    become blanks; hidden code points are left out. No text of a skill can end its entry or begin another.
    """
    render = _STYLES.get(style)
    if render is None:
        raise SourceError(f"unknown style {style!r}; one of {', '.join(_STYLES)}")
    found = list(skills)
    return render(found) if found else ""


def skill_xml(skill: Listed) -> str:
    """One ``<skill>`` entry; the first line is not indented, so that it can be placed."""
    name, description, location = (text.translate(_XML) for text in _fields(skill))
    return (
        f"<skill>\n    <name>{name}</name>\n    <description>{description}</description>\n"
        f"    <location>{location}</location>\n  </skill>"
    )


def _fields(skill: Listed) -> tuple[str, str, str]:
    return one_line(skill.name), one_line(skill.description)[:MAX_DESCRIPTION_LENGTH].rstrip(), one_line(skill.location)


def _xml(skills: list[Listed]) -> str:
    entries = "".join(f"  {skill_xml(skill)}\n" for skill in skills)
    return f"<available_skills>\n{entries}</available_skills>"


def _markdown(skills: list[Listed]) -> str:
    def escaped(text: str) -> str:
        return _MARKDOWN.sub(r"\\\1", text)

    return "\n".join(f"- **{escaped(n)}**: {escaped(d)}" for n, d, _ in map(_fields, skills))


def _text(skills: list[Listed]) -> str:
    return "\n".join(f"- {_text_name(name)}: {description}" for name, description, _ in map(_fields, skills))


def _text_name(name: str) -> str:
    """A name is quoted only where it could be mistaken for more than a name."""
    odd = ": " in name or name.endswith(":") or name.startswith('"')
    return json.dumps(name, ensure_ascii=False) if odd else name


def _json(skills: list[Listed]) -> str:
    keys = ("name", "description", "location")
    rows = (dict(zip(keys, _fields(skill), strict=True)) for skill in skills)
    return "[" + ",\n ".join(json.dumps(row, ensure_ascii=False) for row in rows) + "]"


_STYLES: dict[str, Callable[[list[Listed]], str]] = {"xml": _xml, "markdown": _markdown, "text": _text, "json": _json}

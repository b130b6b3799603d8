"""The rows of the console: skills, copies that lost to them, and files that do not load, each with its page's id."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from prowess.errors import Issue
    from prowess.skills.catalog import Catalog

_PLAIN_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ID_DIGITS = 10

RowKind = Literal["skill", "shadowed", "broken"]


@dataclass(frozen=True, slots=True)
class SkillRow:
    """A skill of the library, a copy that lost to it, or a file that does not load."""

    id: str
    """What the address of its page has: the name where that is plain text and the skill wins, else with a hash."""
    name: str
    location: str
    kind: RowKind = "skill"
    why: str = ""
    """Why a copy lost, or why a file does not load."""
    winner: str = ""
    """Where the skill is that a copy lost to."""


def make_skill_rows(catalog: Catalog) -> tuple[SkillRow, ...]:
    """Return a row for each skill of a catalogue, by name."""
    return tuple(SkillRow(make_skill_id(skill.name), skill.name, skill.location) for skill in catalog.skills)


def make_shadowed_rows(catalog: Catalog) -> tuple[SkillRow, ...]:
    """Return a row for each copy that lost to another skill with its name, by name."""
    rows = [
        SkillRow(
            make_skill_id(lost.name, lost.location), lost.name, lost.location, "shadowed", lost.reason, lost.winner
        )
        for lost in catalog.shadowed
    ]
    return tuple(sorted(rows, key=lambda row: (row.name, row.location)))


def make_broken_rows(catalog: Catalog) -> tuple[SkillRow, ...]:
    """Return a row for each file and place that does not load, by path; the reason is the first error of the file."""
    rows: dict[str, SkillRow] = {}
    for issue in catalog.failures:
        name = os.path.basename(os.path.dirname(issue.path)) or issue.path
        row = SkillRow(make_skill_id(name, issue.path), name, issue.path, "broken", _describe_issue(issue))
        rows.setdefault(issue.path, row)
    return tuple(rows[path] for path in sorted(rows))


def make_skill_id(name: str, location: str = "") -> str:
    """Return the id of a skill in addresses; ``location`` is that of a copy or a file that does not load.

    An id has only characters that are safe in an address and in a file name. Changes of other skills do not change it.
    """
    if not location and _PLAIN_ID.fullmatch(name):
        return name
    digest = hashlib.sha256(f"{name}\0{location}".encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
    plain = name if _PLAIN_ID.fullmatch(name) else "skill"
    return f"{plain}~{digest}"


def _describe_issue(issue: Issue) -> str:
    field = f"{issue.field}: " if issue.field else ""
    return f"{issue.code}: {field}{issue.message}"

"""What a server offers at one moment: the skills that are valid by the specification, by their paths.

A path is the way from a served folder to the skill's: ``billing/pdf``. The first served folder wins a path, and the
first skill a name. A skill whose name another took, and one that models are not to see, is not listed; whoever has its
address gets it all the same.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue
from prowess.files.paths import inner_path
from prowess.library.catalog import Catalog
from prowess.library.mcp_rules import why_not_served

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.library.scan import Found
    from prowess.library.skill import Skill
    from prowess.limits import Limits
    from prowess.model import Place


class Refused(NamedTuple):
    """A skill that is not served, and every reason."""

    location: str
    issues: tuple[Issue, ...]


class Shelf:
    """An immutable set of served skills; a reload builds another."""

    def __init__(self, skills: dict[str, Skill], refused: Iterable[Refused] = (), issues: Iterable[Issue] = ()) -> None:
        self.skills = skills
        self.refused = tuple(refused)
        self.issues = tuple(issues)
        """What was wrong with files and folders that hold no skill."""
        self.catalog = Catalog(skills.values())
        self.paths = {id(skill): path for path, skill in skills.items()}
        first = self.catalog.get
        self.listed = sorted(p for p, skill in skills.items() if first(skill.name) is skill and skill.model_invocable)

    def __len__(self) -> int:
        return len(self.skills)

    @property
    def left_out(self) -> int:
        """How many skills are not served, as far as their heads and names tell."""
        return len(self.refused) + sum(issue.severity == "error" for issue in self.issues)

    def path_of(self, skill: Skill) -> str:
        """Under which path a skill of this shelf is served."""
        return self.paths[id(skill)]

    def resolve(self, parts: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
        """The path of the innermost skill that ``parts`` lead into, and the rest of the way."""
        for length in range(len(parts), 0, -1):
            path = "/".join(parts[:length])
            if path in self.skills:
                return path, tuple(parts[length:])
        return None

    def after(self, path: str, most: int) -> list[str]:
        """The next paths in the listing."""
        begin = bisect_right(self.listed, path) if path else 0
        return self.listed[begin : begin + most]


def build_shelf(found: Found, limits: Limits) -> Shelf:
    """The shelf of what a scan found."""
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    for skill in found.skills:
        path = _path_of(skill, found.places)
        problems = why_not_served(skill, path, limits)
        if not problems and path in skills:
            where = skills[path].location
            problems = [Issue("duplicate-name", "", f"its path, {path}, is taken by {where}", skill.location)]
        if problems:
            refused.append(Refused(skill.location, tuple(problems)))
        else:
            skills[path] = skill
    return Shelf(skills, refused, found.issues)


def shelf_of(catalog: Catalog, limits: Limits) -> Shelf:
    """The shelf of a catalogue: each skill under its name; those that are no folder here are left out."""
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    for skill in catalog:
        problems = why_not_served(skill, skill.name, limits) if skill.is_local else [_no_folder(skill)]
        if problems:
            refused.append(Refused(skill.location, tuple(problems)))
        else:
            skills[skill.name] = skill
    return Shelf(skills, refused)


def _no_folder(skill: Skill) -> Issue:
    return Issue("no-files", "", "only skills in a folder are served", skill.location)


def _path_of(skill: Skill, places: Sequence[Place]) -> str:
    if not skill.is_linked:
        return "/".join(skill.parts) or skill.folder_name
    for place in places:
        inner = inner_path(skill.folder, place.path)
        if inner:
            return inner.replace(os.sep, "/")
    return skill.folder_name

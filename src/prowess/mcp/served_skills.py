"""What a server offers at one moment: every skill that loads, and by their paths those that the extension serves.

The extension serves skills that are valid by the specification, since other hosts refuse the rest; tools, prompts and
the listing serve every skill that loads, by name. A path is the way from a served folder to the skill's:
``billing/pdf``. The first served folder wins a path, and the first skill a name. A skill whose name another took, and
one that models are not to see, is not listed; whoever has its address gets it all the same.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue
from prowess.files.paths import path_inside
from prowess.skills.catalog import Catalog
from prowess.skills.duplicates import may_be_identical
from prowess.skills.mcp_rules import find_refusals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.discovery.scan import ScanResult
    from prowess.limits import Limits
    from prowess.model import Place
    from prowess.skills.skill import Skill


class Refused(NamedTuple):
    """A skill that the extension does not serve, and every reason."""

    location: str
    issues: tuple[Issue, ...]
    loads: bool = True
    """Whether tools, prompts and the listing serve it all the same."""


class LeftOut(NamedTuple):
    """How many skills a server does not serve, as far as their heads and names tell."""

    extension: int
    """Those that the extension leaves out; tools, prompts and the listing serve them."""
    broken: int
    """Those that cannot be loaded, which nothing serves."""


class ServedSkills:
    """An immutable set of served skills; a reload builds another.

    ``skills`` are those of the extension, by path; ``catalog`` holds every skill that loads. ``copies`` are not served
    and may be copies of a skill that is, which only hashing their files tells.
    """

    def __init__(
        self,
        skills: dict[str, Skill],
        catalog: Catalog,
        refused: Iterable[Refused] = (),
        copies: Iterable[Refused] = (),
    ) -> None:
        self._former_names: dict[str, str] = {}
        self.skills = skills
        self.catalog = catalog
        self.refused = tuple(refused)
        self.copies = tuple(copies)
        self._paths = {id(skill): path for path, skill in skills.items()}
        # Among themselves: a skill that the extension leaves out takes no name from one that it serves.
        first = Catalog(skills.values()).get
        self.listed_paths = sorted(
            p for p, skill in skills.items() if first(skill.name) is skill and skill.model_invocable
        )

    def __len__(self) -> int:
        return len(self.skills)

    @property
    def failures(self) -> tuple[Issue, ...]:
        """What was wrong with files and folders that hold no skill."""
        return self.catalog.failures

    def remember_names(self, before: ServedSkills) -> None:
        """Know by which names skills went before this shelf that cannot be loaded now."""
        failing = {issue.path for issue in self.failures}
        names = {**before._former_names, **{skill.name: skill.location for skill in before.catalog}} if failing else {}
        self._former_names = {name: location for name, location in names.items() if location in failing}

    def find_failure(self, name: str) -> Issue | None:
        """What keeps a skill from being loaded that went by that name, or whose folder has it; else ``None``."""
        former = self._former_names.get(name)
        for issue in self.failures:
            if issue.path == former or os.path.basename(os.path.dirname(issue.path)) == name:
                return issue
        return None

    @property
    def left_out(self) -> LeftOut:
        """How many skills are not served, as far as their heads and names tell."""
        return LeftOut(len(self.refused), len(self.failures))

    def path_of(self, skill: Skill) -> str:
        """Under which path the extension serves a skill of this shelf; ``""`` for one that it leaves out."""
        return self._paths.get(id(skill), "")

    def resolve_path(self, parts: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
        """The path of the innermost skill that ``parts`` lead into, and the rest of the way."""
        for length in range(len(parts), 0, -1):
            path = "/".join(parts[:length])
            if path in self.skills:
                return path, tuple(parts[length:])
        return None

    def next_paths(self, path: str, most: int) -> list[str]:
        """The next paths in the listing."""
        begin = bisect_right(self.listed_paths, path) if path else 0
        return self.listed_paths[begin : begin + most]


def build_from_scan(found: ScanResult, limits: Limits) -> ServedSkills:
    """The shelf of what a scan found."""
    catalog = Catalog(found.skills, issues=found.issues)
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    copies: list[Refused] = []
    for skill in found.skills:
        path = _served_path(skill, found.places)
        problems = find_refusals(skill, path, limits)
        if not problems and path in skills:
            where = skills[path].location
            problems = [Issue("duplicate-name", "", f"its path, {path}, is taken by {where}", skill.location)]
        if problems:
            winner = catalog[skill.name]
            is_copy = winner is not skill and may_be_identical(winner, skill)
            (copies if is_copy else refused).append(Refused(skill.location, tuple(problems), winner is skill))
        else:
            skills[path] = skill
    return ServedSkills(skills, catalog, refused, copies)


def build_from_catalog(catalog: Catalog, limits: Limits) -> ServedSkills:
    """The shelf of a catalogue: each skill under its name; the extension leaves out those that are no folder here."""
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    for skill in catalog:
        problems = find_refusals(skill, skill.name, limits) if skill.is_local else [_make_folder_issue(skill)]
        if problems:
            refused.append(Refused(skill.location, tuple(problems)))
        else:
            skills[skill.name] = skill
    return ServedSkills(skills, catalog, refused)


def _make_folder_issue(skill: Skill) -> Issue:
    return Issue("no-files", "", "the extension serves only skills in a folder", skill.location)


def _served_path(skill: Skill, places: Sequence[Place]) -> str:
    if not skill.is_linked:
        return "/".join(skill.parts) or skill.folder_name
    for place in places:
        inner = path_inside(skill.folder, place.path)
        if inner:
            return inner.replace(os.sep, "/")
    return skill.folder_name

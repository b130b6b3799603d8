"""The skills that a server offers at one moment: by name all that load, and by path those that the extension serves.

The extension serves only skills that are valid by the specification, since other hosts refuse the rest. Tools, prompts
and the listing serve every skill that loads, by name. A path leads from a served folder to the skill's folder, such as
``billing/pdf``. The first served folder wins a path, and the first skill wins a name. A skill that lost its name to
another, or that models are not to see, is not listed; a client that has its address can still read it.
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
    """A skill that the extension does not serve, with every reason."""

    location: str
    issues: tuple[Issue, ...]
    loads: bool = True
    """Whether tools, prompts and the listing serve it nevertheless."""


class LeftOut(NamedTuple):
    """How many skills a server does not serve, judged by their frontmatter and names alone."""

    extension: int
    """The skills that the extension leaves out; tools, prompts and the listing serve them."""
    broken: int
    """The skills that cannot be loaded, which nothing serves."""


class ServedSkills:
    """An immutable set of served skills; a reload builds another.

    ``skills`` are those of the extension, by path; ``catalog`` holds every skill that loads. ``copies`` are not served,
    and may be copies of a served skill; only hashing their files would tell.
    """

    def __init__(
        self,
        skills: dict[str, Skill],
        catalog: Catalog,
        refused: Iterable[Refused] = (),
        copies: Iterable[Refused] = (),
    ) -> None:
        self.former_names: dict[str, str] = {}
        """The locations of skills that fail to load now, by the names that they had before."""
        self.skills = skills
        self.catalog = catalog
        self.refused = tuple(refused)
        self.copies = tuple(copies)
        # By identity: two equal skills, such as copies in two folders, are served under two paths.
        self._paths = {id(skill): path for path, skill in skills.items()}
        # Names are compared among these alone: a skill that the extension leaves out must not hide one that it serves.
        first = Catalog(skills.values()).get
        self.listed_paths = sorted(
            p for p, skill in skills.items() if first(skill.name) is skill and skill.model_invocable
        )

    def __len__(self) -> int:
        return len(self.skills)

    def remember_names(self, before: ServedSkills) -> None:
        """Take over the names of skills that could be loaded ``before`` and cannot be loaded now.

        A model that asks for such a skill by its name is told what is wrong, not that it does not exist.
        """
        failing = {issue.path for issue in self.catalog.failures}
        names = {**before.former_names, **{skill.name: skill.location for skill in before.catalog}} if failing else {}
        self.former_names = {name: location for name, location in names.items() if location in failing}

    def find_failure(self, name: str) -> Issue | None:
        """Return why a skill that had this name, or whose folder has it, cannot be loaded; ``None`` without one."""
        former = self.former_names.get(name)
        for issue in self.catalog.failures:
            if issue.path == former or os.path.basename(os.path.dirname(issue.path)) == name:
                return issue
        return None

    @property
    def left_out(self) -> LeftOut:
        """How many skills are not served, judged by their frontmatter and names alone."""
        return LeftOut(len(self.refused), len(self.catalog.failures))

    def path_of(self, skill: Skill) -> str:
        """Return the path under which the extension serves a skill; ``""`` for a skill that it leaves out."""
        return self._paths.get(id(skill), "")

    def resolve_path(self, parts: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
        """Return the path of the innermost skill that ``parts`` lead into and the remaining parts, or ``None``."""
        # The longest path first: a skill may lie inside another one, and its files are then its own.
        for length in range(len(parts), 0, -1):
            path = "/".join(parts[:length])
            if path in self.skills:
                return path, tuple(parts[length:])
        return None

    def next_paths(self, path: str, limit: int) -> list[str]:
        """Return at most ``limit`` listed paths that follow ``path``, which may be gone itself."""
        begin = bisect_right(self.listed_paths, path) if path else 0
        return self.listed_paths[begin : begin + limit]


def build_from_scan(scanned: ScanResult, limits: Limits) -> ServedSkills:
    """Return the skills to serve from the result of a scan."""
    catalog = Catalog(scanned.skills, issues=scanned.issues)
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    copies: list[Refused] = []
    for skill in scanned.skills:
        path = _served_path(skill, scanned.places)
        problems = find_refusals(skill, path, limits)
        if not problems and path in skills:
            owner = skills[path].location
            problems = [Issue("duplicate-name", "", f"its path, {path}, is taken by {owner}", skill.location)]
        if problems:
            winner = catalog[skill.name]
            is_copy = winner is not skill and may_be_identical(winner, skill)
            (copies if is_copy else refused).append(Refused(skill.location, tuple(problems), winner is skill))
        else:
            skills[path] = skill
    return ServedSkills(skills, catalog, refused, copies)


def build_from_catalog(catalog: Catalog, limits: Limits) -> ServedSkills:
    """Return the skills to serve from a catalogue, each under its name.

    The extension leaves out skills without a folder on this machine, such as remote ones.
    """
    skills: dict[str, Skill] = {}
    refused: list[Refused] = []
    for skill in catalog:
        problems = (
            find_refusals(skill, skill.name, limits)
            if skill.is_local
            else [Issue("no-files", "", "the extension serves only skills in a folder", skill.location)]
        )
        if problems:
            refused.append(Refused(skill.location, tuple(problems)))
        else:
            skills[skill.name] = skill
    return ServedSkills(skills, catalog, refused)


def _served_path(skill: Skill, places: Sequence[Place]) -> str:
    # A linked skill has its files elsewhere: its path is that of the link, which lies in a served folder.
    if not skill.is_linked:
        return "/".join(skill.parts) or skill.folder_name
    for place in places:
        inner = path_inside(skill.folder, place.path)
        if inner:
            return inner.replace(os.sep, "/")
    return skill.folder_name

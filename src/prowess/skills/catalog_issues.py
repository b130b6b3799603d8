"""What is wrong with the skills of a catalogue, beyond what their heads say: found when somebody asks for it."""

from __future__ import annotations

import os
import unicodedata
from typing import TYPE_CHECKING

from prowess.errors import Issue, SkillError
from prowess.files.directory import open_folder_beneath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.directory import FolderEntries
    from prowess.model import Shadowed
    from prowess.skills.skill import Skill

_AUTHOR_ONLY_CODES = frozenset(("unknown-field",))
"""Findings for authors that say nothing about loading: ``validate`` has them, a catalogue does not."""


def find_catalog_issues(skills: tuple[Skill, ...], shadowed: tuple[Shadowed, ...]) -> Iterator[Issue]:
    """Every finding about the ``skills`` of a catalogue, and about the copies that lost to them."""
    yield from _shadow_issues(shadowed, {skill.name: skill.location for skill in skills})
    known = {skill.location for skill in skills}
    for skill in skills:
        # A skill inside another is no news where another root has led to it: it is listed itself.
        yield from (i for i in _skill_issues(skill) if i.code != "nested-skill" or i.path not in known)
    yield from _folder_collisions(skills)


def _shadow_issues(shadowed: tuple[Shadowed, ...], winners: dict[str, str]) -> Iterator[Issue]:
    for lost in shadowed:
        project = lost.reason.startswith("a project's")
        code = "shadowed-by-project" if project else "duplicate-name"
        message = f"{lost.name!r} is taken by {winners[lost.name]}: {lost.reason}"
        yield Issue(code, "name", message, lost.location, 0, "warning")


def _skill_issues(skill: Skill) -> list[Issue]:
    """The findings about one skill; discovery leaves those of the commonest heads for now."""
    issues = [issue for issue in skill.issues if issue.code not in _AUTHOR_ONLY_CODES]
    if not skill.is_body_seen:
        issues += _blank_body_issues(skill)
    if skill.is_local:
        issues += _folder_issues(skill)
    return issues


def _blank_body_issues(skill: Skill) -> list[Issue]:
    try:
        blank = not skill.read_body().strip()
    except SkillError as error:
        return [Issue(error.code, "body", error.message, skill.location, 0, "warning")]
    message = "there are no instructions"
    return [Issue("empty-body", "body", message, skill.location, 0, "warning")] if blank else []


def _folder_issues(skill: Skill) -> list[Issue]:
    """The findings about the entries of a skill's folder: other spellings of its file, and skills further down."""
    try:
        with open_folder_beneath(skill.base, skill.parts) as folder:
            found = folder.list_entries(skill.limits.max_entries_per_skill)
    except OSError:
        return []
    issues = _filename_collisions(skill, found)
    # Most skills have no folders, and of those nothing needs to be listed.
    return issues + _nested_skill_issues(skill) if found.folders and not skill.is_searched_below else issues


def _nested_skill_issues(skill: Skill) -> list[Issue]:
    """The files below a skill that would be skills of their own had the search not ended at this one."""
    own = skill.file_name.lower()
    try:
        files = skill.files()
    except SkillError:  # a folder that cannot be listed is told by whoever reads it
        return []
    message = f"lies inside the skill {skill.name!r} and is part of it"
    return [
        Issue("nested-skill", "", message, os.path.join(skill.folder, *path.split("/")), 0, "info")
        for path in files
        if "/" in path and path.rpartition("/")[2].lower() == own
    ]


def _filename_collisions(skill: Skill, found: FolderEntries) -> list[Issue]:
    own = skill.file_name
    if not found.complete:
        message = "the folder holds too many entries to look for another spelling of the file"
        return [Issue("too-many-files", "", message, skill.location, 0, "warning")]
    twins = [name for name in found.files if name != own and name.lower() == own.lower()]
    message = f"lies beside {', '.join(twins)}; {own} is used"
    return [Issue("filename-collision", "", message, skill.location, 0, "warning")] if twins else []


def _folder_collisions(skills: tuple[Skill, ...]) -> Iterator[Issue]:
    """Folders that are one on systems that ignore case or Unicode form."""
    seen: dict[str, str] = {}
    for skill in skills:
        if not skill.is_local:
            continue
        folder = skill.folder
        other = seen.setdefault(unicodedata.normalize("NFC", folder).casefold(), folder)
        if other != folder:
            message = f"differs from {other} only in case or Unicode form"
            yield Issue("folder-collision", "", message, skill.location, 0, "warning")


def is_about(issue: Issue, name: str, skill: Skill | None, lost: tuple[Shadowed, ...]) -> bool:
    if skill is not None and issue.path == skill.location:
        return True
    folder = os.path.basename(os.path.dirname(issue.path))
    return folder == name or os.path.basename(issue.path) == name or any(issue.path == s.location for s in lost)


def explain_skill(skill: Skill) -> tuple[str, ...]:
    places = {"url": "found on a site", "mcp": f"found on {skill.source_label}"}
    where = places.get(skill.origin, f"found in a {skill.origin}")
    whose = f"found in the {skill.scope.value}'s folders" if skill.scope else where
    sees = "models see it" if skill.model_invocable else "models do not see it: disable-model-invocation is set"
    calls = "people may call it" if skill.user_invocable else "people may not call it: user-invocable is false"
    return (whose, sees, calls)

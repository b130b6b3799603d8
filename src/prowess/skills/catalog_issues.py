"""The checks behind ``catalog.issues``: what is wrong with skills, their folders and copies that lost to them.

Listing and loading need none of these checks, so they are made only when somebody asks for the issues.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue, SkillError
from prowess.files.directory import is_surely_only_name, open_folder_beneath
from prowess.names import fold_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.directory import FolderEntries
    from prowess.skills.explanation import Shadowed
    from prowess.skills.skill import Skill

_AUTHOR_ONLY_CODES = frozenset(("unknown-field",))
"""Codes that matter to authors and not to users: ``validate`` reports them, a catalogue does not."""


def find_catalog_issues(skills: tuple[Skill, ...], shadowed: tuple[Shadowed, ...]) -> Iterator[Issue]:
    """Yield every finding about the ``skills`` of a catalogue, and about the copies that lost to them."""
    by_name = {skill.name: skill for skill in skills} if shadowed else {}
    for lost in shadowed:
        code = "shadowed-by-project" if lost.reason.startswith("a project's") else "duplicate-name"
        message = f"{lost.name!r} is taken by {by_name[lost.name].location}: {lost.reason}"
        yield Issue(code, "name", message, lost.location, 0, "warning")
    nested: list[Issue] = []
    for skill in skills:
        for issue in _skill_issues(skill):
            if issue.code == "nested-skill":
                nested.append(issue)
            else:
                yield issue
    # A skill inside another is not reported where another root has led to it: it is listed itself.
    known = {skill.location for skill in skills} if nested else frozenset()
    yield from (issue for issue in nested if issue.path not in known)
    yield from _folder_collisions(skills)


def _skill_issues(skill: Skill) -> list[Issue]:
    """Return the findings about one skill."""
    issues = [issue for issue in skill.issues if issue.code not in _AUTHOR_ONLY_CODES]
    if not skill.found.is_body_seen:  # discovery read only the head, and the body begins after it
        issues += _blank_body_issues(skill)
    if skill.is_local and not has_plain_folder(skill):
        issues += find_folder_issues(skill)
    return issues


def has_plain_folder(skill: Skill) -> bool:
    """True only if ``find_folder_issues`` would find nothing."""
    limits = skill.limits
    most = min(limits.max_entries_per_skill, limits.max_files_per_skill)
    return not skill.found.is_searched_below and is_surely_only_name(
        skill.base, skill.parts, skill.file_name, most, limits.max_depth_per_skill
    )


def _blank_body_issues(skill: Skill) -> list[Issue]:
    try:
        blank = not skill.read_body().strip()
    except SkillError as error:
        return [Issue(error.code, "body", error.message, skill.location, 0, "warning")]
    return [Issue("empty-body", "body", "there are no instructions", skill.location, 0, "warning")] if blank else []


def find_folder_issues(skill: Skill) -> list[Issue]:
    """Return the findings about a skill's folder: other spellings of its file name, and skills further down."""
    try:
        with open_folder_beneath(skill.base, skill.parts) as folder:
            entries = folder.list_entries(skill.limits.max_entries_per_skill)
    except OSError:  # reading the skill reports that
        return []
    issues = _filename_collisions(skill, entries)
    # The whole folder is walked only where it has folders: most skills have none.
    return issues + _nested_skill_issues(skill) if entries.folders and not skill.found.is_searched_below else issues


def _nested_skill_issues(skill: Skill) -> list[Issue]:
    """Information about each file below a skill that would be a skill if the search had not ended at this one."""
    own = skill.file_name.lower()
    try:
        files = skill.files()
    except SkillError:  # reading the skill reports that
        return []
    message = f"is inside the skill {skill.name!r} and is part of it"
    return [
        Issue("nested-skill", "", message, os.path.join(skill.folder, *path.split("/")), 0, "info")
        for path in files
        if "/" in path and path.rpartition("/")[2].lower() == own
    ]


def _filename_collisions(skill: Skill, entries: FolderEntries) -> list[Issue]:
    """Return a warning where the folder has other spellings of the file name, or too many entries to know."""
    # On a system that ignores case only one of these files can exist, and nobody can say which one it will be.
    own = skill.file_name
    if not entries.complete:
        message = "the folder has too many entries to look for another spelling of the file"
        return [Issue("too-many-files", "", message, skill.location, 0, "warning")]
    others = [name for name in entries.files if name != own and name.lower() == own.lower()]
    return (
        [Issue("filename-collision", "", f"is beside {', '.join(others)}; {own} is used", skill.location, 0, "warning")]
        if others
        else []
    )


def _folder_collisions(skills: tuple[Skill, ...]) -> Iterator[Issue]:
    """Yield a warning for folders that would be one folder on a system that ignores case or Unicode form."""
    first_of: dict[str, str] = {}
    for skill in skills:
        if not skill.is_local:
            continue
        folder = skill.folder
        other = first_of.setdefault(fold_path(folder), folder)
        if other != folder:
            message = f"differs from {other} only in case or Unicode form"
            yield Issue("folder-collision", "", message, skill.location, 0, "warning")

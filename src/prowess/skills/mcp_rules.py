"""The rules of the MCP extension for skills: which skills a server offers, and why it leaves out the others.

A server offers only skills that are valid by the specification in every part, since other hosts refuse the rest. It
applies these rules before it offers a skill, and ``check`` applies them so that the author learns of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import (
    Issue,
    PathTraversalError,
    ResourceError,
    SkillError,
    SkillLoadError,
    SkillValidationError,
)
from prowess.files.identity import list_identities
from prowess.files.read import as_resource_error
from prowess.format.frontmatter.json_types import find_type_issues, parse_typed_frontmatter
from prowess.format.head import STRICT_POLICY, read_head
from prowess.format.rules import field_issues
from prowess.names import SKILL_FILE, split_relative_path

if TYPE_CHECKING:
    from prowess.files.read import Identity
    from prowess.format.frontmatter.json_types import Json
    from prowess.limits import Limits
    from prowess.skills.skill import Skill


def find_refusals(skill: Skill, path: str, limits: Limits) -> list[Issue]:
    """Return every reason for which the extension does not serve a skill under ``path``; none for most skills.

    SKILL.md is read, and its other files are only listed.
    """
    try:
        split_relative_path(path)
        issues = _head_issues(skill, limits)
        if not issues:
            list_served_files(skill, limits)
    except PathTraversalError as error:
        return [Issue("bad-file-name", "", error.message, skill.location)]
    except SkillError as error:
        return [replace(issue, path=skill.location) for issue in as_issues(error)]
    return issues


def _head_issues(skill: Skill, limits: Limits) -> list[Issue]:
    """Return the reasons in the head and the file name of a skill.

    Raises ``SkillError`` for what only typed YAML shows.
    """
    fields = field_issues(skill.peek(), mode="strict", folder=skill.folder_name, path=skill.location)
    issues = [*skill.repair_issues, *(issue for issue in fields if issue.severity == "error")]
    if skill.file_name != SKILL_FILE:
        issues.append(Issue("filename-case", "", f"the file is named {skill.file_name}", skill.location))
    if not issues:
        parse_strict_fields(skill.read_bytes(SKILL_FILE, limits.max_served_bytes), skill, limits)
    return issues


def list_served_files(skill: Skill, limits: Limits) -> list[tuple[str, Identity]]:
    """Return every file of a skill with its identity; raises ``SkillError`` where the files cannot be served."""
    limit = limits.max_served_files
    try:
        files, bound = list_identities(skill.base, skill.parts, limits, limit)
    except OSError as error:
        raise as_resource_error(error, skill.folder_name) from None
    if bound:
        raise SkillValidationError(f"more than {limit} files, or not all of them can be listed", "", bound)
    # From the sizes that the listing has: a skill that is too large is refused before a byte of it is read.
    check_total_size(sum(identity[2] for _, identity in files), limits)
    for path, _ in files:
        try:
            split_relative_path(path)
        except PathTraversalError as error:
            raise SkillValidationError(error.message, "", "bad-file-name") from None
    if not any(path == SKILL_FILE for path, _ in files):
        raise SkillValidationError(f"{skill.folder_name} holds no {SKILL_FILE}", "", "missing-skill-md")
    return files


def check_total_size(size: int, limits: Limits) -> None:
    """Raise ``SkillValidationError`` where files of ``size`` bytes together are more than a server gives."""
    if size > limits.max_served_bytes:
        raise SkillValidationError(f"{size} bytes; at most {limits.max_served_bytes} are served", "", "too-many-bytes")


def parse_strict_fields(data: bytes, skill: Skill, limits: Limits) -> dict[str, Json]:
    """Return the fields of a frontmatter with their types.

    Raises ``SkillError`` for what the specification does not allow.
    """
    limit = limits.max_frontmatter_bytes
    whole = len(data) <= limit
    read_head(data[:limit], quick=False, whole=whole, policy=STRICT_POLICY, folder=skill.folder_name)
    fields = parse_typed_frontmatter(data[:limit], whole=whole, limits=limits)
    if problems := find_type_issues(fields):
        raise SkillLoadError(problems)
    return fields


def as_issues(error: SkillError) -> tuple[Issue, ...]:
    """Return the findings that an error about a skill stands for."""
    if isinstance(error, SkillLoadError):
        return error.issues
    return (Issue(error.code, error.path if isinstance(error, ResourceError) else "", error.message),)

"""The rules of the MCP extension for skills: which skills a server offers, and why it leaves out the others.

A server offers only skills that are valid by the specification in every part, since other hosts refuse the rest. It
applies these rules before it offers a skill, and ``check`` applies them so that the author learns of it.
"""

from __future__ import annotations

import re
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
from prowess.format.rules import field_issues, is_spec_name
from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.names import SKILL_FILE, split_relative_path
from prowess.text.hidden_characters import has_hidden

if TYPE_CHECKING:
    from prowess.files.read import Identity
    from prowess.format.frontmatter.json_types import Json
    from prowess.limits import Limits
    from prowess.skills.skill import Skill

_SUSPECT_VALUE = re.compile(
    rb"(?m):[ \t]+(?:[-+]?\.?[0-9][0-9a-fA-FoxE.+-]*|[Tt]rue|TRUE|[Ff]alse|FALSE|[Nn]ull|NULL|~|[-+]?\.\w+)"
    rb"[ \t]*(?:#.*)?$"
    rb"|^(?:license|compatibility|allowed-tools):[ \t]*(?:$|[\[{>|'\"])|^metadata:[ \t]*\S|^[ \t][^\n:]*+:[ \t]*$"
    rb"|^[ \t][^\n:]*+:[ \t]*[\[{]|^metadata:[ \t]*+(?:\n[ \t]*-|\n\S|\s*+\Z)|^compatibility:.{400}|^tags:[ \t]*\{"
    rb"|\.(?:[iI]nf|INF|[nN][aA][nN])\b|[0-9]{18}|[0-9.][eE]\+?[0-9]{3}"
)
"""Values that may not be text to a reader of typed YAML, or that a rule may refuse: such a head has to be parsed."""


def find_refusals(skill: Skill, path: str, limits: Limits) -> list[Issue]:
    """Return every reason for which the extension does not serve a skill under ``path``; none for most skills.

    The files are listed and not read, except for SKILL.md where its head holds something that a rule may refuse.
    """
    try:
        split_relative_path(path)
        issues = [] if _is_surely_valid(skill) else _head_issues(skill, limits)
        if not issues:  # in this order: listing the files costs more than a head that was matched
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


def _is_surely_valid(skill: Skill) -> bool:
    """Return whether no rule can refuse a head that the fast matcher read, so that it need not be parsed."""
    # Fast path of a server with thousands of skills; the slow path is ``_head_issues``.
    head = skill.unparsed_head
    return (
        head is not None
        and skill.name == skill.folder_name
        and is_spec_name(skill.name)
        and _has_name_line(head, skill.name)
        and skill.file_name == SKILL_FILE
        and len(skill.description) <= MAX_DESCRIPTION_LENGTH
        and not has_hidden(skill.description)
        and not _SUSPECT_VALUE.search(head)
    )


def _has_name_line(head: bytes, name: str) -> bool:
    """True when the head has that name: the name of a skill may be its folder's, where the written one breaks rules."""
    line = b"name: %s\n" % name.encode()
    return head.startswith(line) or b"\n" + line in head


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

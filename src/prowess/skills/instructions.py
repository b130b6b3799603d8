"""The text of a SKILL.md: where its body begins, the body decoded, and the errors for a body that cannot be had."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prowess.errors import (
    Issue,
    NoFrontmatterError,
    ResourceError,
    ResourceTooLargeError,
    SkillLoadError,
    SkillValidationError,
    make_unreadable_error,
)
from prowess.format.document import Document, read_document
from prowess.format.frontmatter.parse import find_body_offset, needs_more_bytes
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from prowess.files.read import OpenFile
    from prowess.skills.skill import Skill


_HTML_PAGE = compile_pattern(rb"\s*+<(?:!doctype\s++)?html\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LoadedSkill:
    """A skill with its instructions: the body with LF line ends, without blanks at both ends."""

    skill: Skill
    instructions: str


# -- the body ----------------------------------------------------------------------------------------------------------


def extract_instructions(skill: Skill, data: bytes, offset: int) -> str:
    """The instructions in a whole file whose body begins at ``offset``; raises ``SkillValidationError``."""
    if len(data) - offset > skill.limits.max_body_bytes:
        raise too_large_body_error(skill, skill.limits.max_body_bytes)
    return strip_body(decode_body(skill, data[offset:], offset))


def strip_body(body: str) -> str:
    """A body as instructions are given: LF line ends, without blanks at both ends."""
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()  # most bodies need no second copy


def decode_body(skill: Skill, data: bytes, offset: int) -> str:
    """The bytes of a body as text; ``offset``: where they begin in the file. Raises ``SkillValidationError``."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {offset + error.start}"
        raise SkillValidationError(message, skill.location, "body-not-text") from None


# -- the head ----------------------------------------------------------------------------------------------------------


def parse_document(skill: Skill, data: bytes) -> Document:
    """The fields that the head of a whole file has, and the byte at which its body begins."""
    # Without a check of the folder's name: that was decided when the skill was found.
    limit = skill.limits.max_frontmatter_bytes
    return read_document(
        data[:limit],
        whole=len(data) <= limit,
        policy=skill.policy._replace(check_dir=False),
        folder=skill.folder_name or skill.name,
        path=skill.location,
    )


def parse_file(skill: Skill, data: bytes) -> Document:
    """The document of a whole file. Without frontmatter it is all body, where the fields came from elsewhere.

    They did where a program made the skill, or where the index of a site announced it. Raises ``SkillLoadError``, also
    for an empty file and for an HTML page, with which many sites answer in place of a file that they do not have.
    """
    try:
        return parse_document(skill, data)
    except NoFrontmatterError:
        if skill.needs_frontmatter or not data.strip() or _HTML_PAGE.match(data):
            raise
        message = "the file has no frontmatter; the fields are those that were announced"
        issue = Issue("no-frontmatter", "", message, skill.location, 1, "warning")
        return Document(skill.frontmatter, 0, (issue,))


def read_body_offset(skill: Skill, file: OpenFile) -> int:
    """The byte at which the body begins now in an open file that may have changed."""
    limits, repairs = skill.limits, skill.policy.repairs
    head, whole = file.read_head(
        limits.head_step, limits.max_frontmatter_bytes, lambda head: needs_more_bytes(head, repair=repairs)
    )
    return parse_body_offset(skill, head, whole=whole)


def parse_body_offset(skill: Skill, head: bytes, *, whole: bool) -> int:
    """The byte at which the body begins; ``whole``: the file ends within ``head``."""
    # Only the dashes count: a reader of the body wants it also when a field was lost since the skill was found.
    try:
        return find_body_offset(head, whole=whole, repair=skill.policy.repairs, limits=skill.limits)
    except SkillLoadError as error:
        raise type(error)([replace(issue, path=skill.location) for issue in error.issues], skill.location) from None


# -- errors ------------------------------------------------------------------------------------------------------------


def unreadable_error(skill: Skill, error: ResourceError, limit: int) -> SkillValidationError:
    """The error for a SKILL.md that cannot be read; ``limit``: how many bytes its body may have."""
    if isinstance(error, ResourceTooLargeError):
        return too_large_body_error(skill, limit)
    return make_unreadable_error(error, skill.location)


def too_large_body_error(skill: Skill, limit: int) -> SkillValidationError:
    """The error for a body of more than ``limit`` bytes."""
    return SkillValidationError(f"the body has more than {limit} bytes", skill.location, "body-too-large")

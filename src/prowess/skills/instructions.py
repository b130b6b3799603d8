"""The text of a SKILL.md: where its body begins, the body decoded, and the errors for a body that cannot be had."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import (
    ResourceError,
    ResourceTooLargeError,
    SkillLoadError,
    SkillValidationError,
    make_unreadable_error,
)
from prowess.format.frontmatter.parse import find_body_offset

if TYPE_CHECKING:
    from prowess.format.head import LoadPolicy


def strip_body(body: str) -> str:
    """Return a body as instructions are given: LF line ends, without whitespace at both ends."""
    return (body.replace("\r\n", "\n") if "\r" in body else body).strip()  # most bodies need no second copy


def decode_body(data: bytes, offset: int, location: str) -> str:
    """Return the bytes of a body as text; ``offset``: where they begin in the file."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: byte 0x{data[error.start]:02X} at byte {offset + error.start}"
        raise SkillValidationError(message, location, "body-not-text") from None


def find_offset(data: bytes, policy: LoadPolicy, location: str) -> int:
    """Return the byte at which the body of a whole file begins; only the dashes around the frontmatter count."""
    limit = policy.limits.max_frontmatter_bytes
    try:
        return find_body_offset(data[:limit], whole=len(data) <= limit, repair=policy.repairs, limits=policy.limits)
    except SkillLoadError as error:
        raise type(error)([replace(issue, path=location) for issue in error.issues], location) from None


def unreadable_error(location: str, error: ResourceError, limit: int) -> SkillValidationError:
    """Return the error for a SKILL.md that cannot be read; ``limit``: how many bytes its body may have."""
    if isinstance(error, ResourceTooLargeError):
        return too_large_body_error(location, limit)
    return make_unreadable_error(error, location)


def too_large_body_error(location: str, limit: int) -> SkillValidationError:
    """Return the error for a body of more than ``limit`` bytes."""
    return SkillValidationError(f"the body has more than {limit} bytes", location, "body-too-large")

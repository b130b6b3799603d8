"""Issues as data, for the answers of ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import prowess

INSTALL_FIELDS = ("code", "field", "message", "path", "hint")
SKILL_FIELDS = ("code", "field", "message", "hint")
"""The fields of an issue about a skill that the answer names already."""


def issue_to_dict(issue: prowess.Issue, fields: tuple[str, ...] = INSTALL_FIELDS) -> dict[str, object]:
    """Return these fields of an issue. Each command has its own: docs/reference/cli.schema.json promises them."""
    return {name: getattr(issue, name) for name in fields}

"""Issues as data, for the answers of ``--json``, and as annotations of GitHub."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.paths import shorten_path
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    import prowess

_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}

INSTALL_FIELDS = ("code", "field", "message", "path", "hint")
SKILL_FIELDS = ("code", "field", "message", "hint")
"""The fields of an issue about a skill that the answer names already."""


def issue_to_dict(issue: prowess.Issue, fields: tuple[str, ...] = INSTALL_FIELDS) -> dict[str, object]:
    """Return these fields of an issue. Each command has its own: docs/reference/cli.schema.json promises them."""
    return {name: getattr(issue, name) for name in fields}


def to_github_annotation(issue: prowess.Issue | prowess.Finding, column: int = 1) -> str:
    """Return an issue as a workflow command, which GitHub shows at the line of a pull request."""
    place = f"file={_escape_property(shorten_path(issue.path))},line={issue.line or 1},col={column}"
    subject = f"{issue.field}: " if issue.field else ""
    message = f"{subject}{_relativize_paths(issue.message)} ({issue.hint})"
    title = _escape_property(issue.code)
    return f"::{_GITHUB_LEVELS[issue.severity]} {place},title={title}::{_escape_message(message)}"


def _relativize_paths(message: str) -> str:
    """Return a message in which paths below the working folder are relative to it."""
    here = os.getcwd().rstrip(os.sep) + os.sep
    return message.replace(here, "") if here != os.sep else message


def _escape_message(text: str) -> str:
    # The percent sign first: what stands for the others begins with it.
    return escape_line(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _escape_property(text: str) -> str:
    return _escape_message(text).replace(":", "%3A").replace(",", "%2C")

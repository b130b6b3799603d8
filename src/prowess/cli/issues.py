"""Issues as JSON and as annotations of GitHub, and the remedy for each code in terms of the command line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import HINTS, SkillError, UnknownSkillError
from prowess.files.paths import shorten_path
from prowess.text.escapes import escape_line
from prowess.text.spelling import did_you_mean

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
    hint = f" ({issue.hint})" if issue.hint else ""
    message = f"{subject}{_relativize_paths(issue.message)}{hint}"
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


REMEDIES: dict[str, str] = {
    "address-refused": "say --allow-private if that machine is meant",
    "already-installed": "update it with 'prowess update', or install it with --replace",
    "bad-reference": (
        "a source is ./PATH (a folder or an archive), owner/repo or an address; an installed skill is NAME or @org/NAME"
    ),
    "bad-scheme": "use https or ssh, say --allow-http for plain http, or name a local folder with ./ or /",
    "binary": "write its bytes to a file: --raw > FILE",
    "commands-not-run": "look at them with 'prowess show NAME', then 'prowess trust grant NAME'",
    "local-edits": "keep your changes elsewhere, or update with --force, which keeps a backup",
    "declared-no-more": "declare it again in prowess.toml, or remove it with 'prowess sync --remove'",
    "name-taken": "move it away or remove it; 'prowess install' can also take its place, with --replace",
    "missing-skill-md": (
        "a skill is a folder with a SKILL.md: check the path, or begin a skill with 'prowess new NAME'"
    ),
    "no-skills": "name a skill's folder (./NAME) or say --dir FOLDER; 'prowess list' shows where Prowess looked",
    "no-indexes": (
        "under [settings] in ~/.config/prowess/config.toml, or in prowess.toml, write "
        'indexes = ["https://skills.example.com", "owner/repo"]; or say --index ADDRESS'
    ),
    "too-many-indexes": "name fewer with --index, or in the setting indexes",
    "no-evals": "write queries into evals/triggers.json of the skill; see 'prowess new NAME --with evals'",
    "no-sandbox": "install bubblewrap, or Prowess with the extra 'sandbox', or say --sandbox none",
    "folder-too-large": "name a smaller folder with --folder, or leave Bash out of --tools",
    "not-found": "check the path; 'prowess show NAME' lists the files of a skill",
    "not-installed": "'prowess list' shows what is installed",
    "not-trusted": "look at it with 'prowess show NAME', then 'prowess trust grant NAME'",
    "plain-http": "use https, or say --allow-http if the network is trusted",
    "rolled-back": "ask whoever publishes it; if going back is meant, say 'prowess update --allow-rollback'",
    "would-replace": "choose another name or folder, or say --force to replace what exists",
    "unknown-version": "'git ls-remote ADDRESS' lists the versions of a repository; a site's are in its versions.json",
    "unknown-agent": "see 'prowess list --help' for the known agents, or docs/reference/agents.md for their folders",
}


def find_error_remedy(error: SkillError) -> str:
    """Return what to do about an error: similar names for an unknown skill, or the remedy of its code."""
    if not isinstance(error, UnknownSkillError):
        return find_remedy(error.code)
    # Without any skill, 'choose one of these' would be no help: then the remedy is how to get some.
    return did_you_mean(error.name, error.available) or find_remedy(error.code if error.available else "no-skills")


def find_remedy(code: str) -> str:
    """Return what to do about a code, in the words of the command line; ``""`` if nothing is known."""
    return REMEDIES.get(code) or HINTS.get(code, "")

"""The rules of the specification for the fields of a frontmatter; every violation is reported, not only the first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.limits import DEFAULT_LIMITS, MAX_COMPATIBILITY_LENGTH, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from prowess.names import is_device_name
from prowess.text.hidden_characters import find_hidden_points, has_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.format.frontmatter.fields import Frontmatter
    from prowess.limits import Limits
    from prowess.literals import Mode

_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# What could leave a folder, an element or an address that the name is written into.
_FORBIDDEN = re.compile(r"[/\\:<>]|%[0-9A-Fa-f]{2}")
_FATAL_CODES = frozenset(("missing-description", "wrong-type:name", "wrong-type:description"))
"""The codes, some with their field, that lenient mode refuses too: without these fields there is nothing to list."""

EXTENSION_FIELDS = frozenset(
    [
        "allowed_tools",
        "tags",
        "version",
        "model",
        "context",
        "agent",
        "author",
        "category",
        "triggers",
        "keywords",
        "argument-hint",
        "arguments",
        "user-invocable",
        "user-invokable",
        "user_invocable",
        "user-invokeable",
        "disable-model-invocation",
        "disable_model_invocation",
        "when_to_use",
        "when-to-use",
        "title",
        "homepage",
        "effort",
        "background",
        "paths",
        "requires",
        "required_environment_variables",
    ],
)
"""Keys outside the specification that many skills have, and that Prowess or other engines read."""

INERT_FIELDS = frozenset(
    ["hooks", "mcpServers", "mcp-servers", "mcp_servers", "lspServers", "shell", "env", "permissions", "model"]
)
"""Keys that ask for power over the host. Prowess keeps them as data and never acts on them."""


def is_spec_name(name: str) -> bool:
    """Return whether ``name`` obeys the specification and is safe as a file name on every platform."""
    return len(name) <= MAX_NAME_LENGTH and _KEBAB.fullmatch(name) is not None and not is_device_name(name)


def is_usable_name(name: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Return whether lenient mode lists a skill under ``name``: it is printable, short, and harmless in a path."""
    return (
        0 < len(name) <= max(limits.max_lenient_name_chars, MAX_NAME_LENGTH)
        and name == name.strip()
        and name.isprintable()
        and name not in {".", ".."}
        and not name.startswith("~")
        and not _FORBIDDEN.search(name)
        and not has_hidden(name)
        and not is_device_name(name)
    )


def field_issues(front: Frontmatter, *, mode: Mode, folder: str | None = None, path: str = "") -> list[Issue]:
    """Return every finding about the fields, each with its line; lenient mode makes warnings of what it tolerates.

    ``folder`` is the name of the skill's folder, which its name must equal; ``None`` leaves that rule out.
    """
    issues = [*front.findings, *_name_issues(front, folder), *_description_issues(front), *_optional_issues(front)]
    issues += _extension_issues(front)
    return [_with_location(issue, front, mode, path) for issue in issues]


def _with_location(issue: Issue, front: Frontmatter, mode: Mode, path: str) -> Issue:
    # A field that is missing has no line: the issue then points to the first line of the fields.
    line = issue.line or front.lines.get(issue.field) or min(front.lines.values(), default=1)
    severity = issue.severity
    is_fatal = issue.code in _FATAL_CODES or f"{issue.code}:{issue.field}" in _FATAL_CODES
    if mode == "lenient" and severity == "error" and not is_fatal:
        severity = "warning"
    return Issue(issue.code, issue.field, issue.message, path, line, severity)  # faster than ``replace``


def _name_issues(front: Frontmatter, folder: str | None) -> Iterator[Issue]:
    name = front.name
    if not name.strip():
        if not any(i.field == "name" for i in front.findings):
            yield Issue("missing-name", "name", "is required")
        return
    if not _KEBAB.fullmatch(name):
        yield Issue("bad-name", "name", f"{_shorten(name)} must be lower-case letters, digits and single hyphens")
    if len(name) > MAX_NAME_LENGTH:
        yield Issue("bad-name", "name", f"has {len(name)} characters; at most {MAX_NAME_LENGTH} are allowed")
    if is_device_name(name):
        yield Issue("reserved-name", "name", f"{_shorten(name)} is a device name on Windows")
    if folder is not None and name != folder:
        message = f"{_shorten(name)} is not the name of its folder, {_shorten(folder)}{_folder_advice(name, folder)}"
        yield Issue("name-mismatch", "name", message)


def _folder_advice(name: str, folder: str) -> str:
    """Return advice to rename the folder, where its name can be no skill's; ``""`` where it can."""
    candidates = (name, folder.lower().replace("_", "-").replace(" ", "-"))
    better = next((candidate for candidate in candidates if is_spec_name(candidate)), "")
    return "" if is_spec_name(folder) or not better else f"; rename the folder to {better!r}: names are lower-case"


def _description_issues(front: Frontmatter) -> Iterator[Issue]:
    text = front.description
    if not text.strip():
        if not any(i.field == "description" for i in front.findings):
            yield Issue("missing-description", "description", "is required")
        return
    if len(text) > MAX_DESCRIPTION_LENGTH:
        message = f"has {len(text)} characters; at most {MAX_DESCRIPTION_LENGTH} are allowed"
        yield Issue("description-too-long", "description", message)
    if points := find_hidden_points(text):
        message = f"holds hidden characters ({', '.join(points[:8])})"
        yield Issue("hidden-text", "description", message, severity="warning")


def _optional_issues(front: Frontmatter) -> Iterator[Issue]:
    for key, value in (("license", front.license), ("compatibility", front.compatibility)):
        if value is not None and not value.strip():
            yield Issue("blank-field", key, "must not be blank when it is present")
    if front.compatibility and len(front.compatibility) > MAX_COMPATIBILITY_LENGTH:
        message = f"has {len(front.compatibility)} characters; at most {MAX_COMPATIBILITY_LENGTH} are allowed"
        yield Issue("compatibility-too-long", "compatibility", message)


def _extension_issues(front: Frontmatter) -> Iterator[Issue]:
    # Fields that a program made have the model as an attribute alone, and no ``extra``.
    asks_for_model = ["model"] if front.model is not None else []
    for key in dict.fromkeys((*front.extra, *asks_for_model)):
        if key in INERT_FIELDS:
            yield Issue("inert-field", key, "asks for something that only the host may grant", severity="info")
        elif key not in EXTENSION_FIELDS and key != "metadata":
            yield Issue("unknown-field", key, "is not a field of the specification", severity="info")


def _shorten(text: str, limit: int = 80) -> str:
    return repr(text if len(text) <= limit else text[:limit] + "…")

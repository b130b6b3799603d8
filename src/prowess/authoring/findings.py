"""Findings: issues with the line of text that each is about, for the people who fix them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.errors import Issue, ResourceError, make_unreadable_error
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.hints import HINTS
from prowess.text.hidden_characters import find_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.errors import Severity
    from prowess.limits import Limits


_KEY = re.compile(r"\s*([\w.-]{1,128})\s*:\s*")
_CODES_ABOUT_KEYS = frozenset(("unknown-field", "inert-field", "yaml-duplicate-key", "blank-field"))
_FENCE = re.compile(r"---\s*")


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about one line: the rule, the severity, the message, the place, the text, and the part of it."""

    code: str
    severity: Severity
    message: str
    path: str
    line: int
    column: int
    """Counted from 1."""
    length: int
    text: str
    field: str = ""
    fixable: bool = False

    @property
    def hint(self) -> str:
        """What to do about the finding."""
        return HINTS.get(self.code, "")


def read_skill_file(path: str, limits: Limits) -> bytes:
    """Return the bytes of a SKILL.md; raises ``SkillValidationError`` when it is unreadable or too large."""
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError as error:
        raise make_unreadable_error(error, path) from None


def read_lines(folder: str, name: str, limits: Limits) -> list[str]:
    """Return the lines of a file for display; none when it cannot be read."""
    try:
        with OpenFile(folder, (name,)) as file:
            data = file.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return []
    # Split at "\n" alone, as the parser counts lines; a byte order mark is not part of the first one.
    return data.decode("utf-8-sig", "replace").split("\n")


def locate_issues(
    issues: Iterable[Issue], lines: Sequence[str], fixable: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[Finding]:
    """Yield each issue with its line of ``lines`` and the part of that line that it is about.

    ``fixable``: code and field of each issue that can be fixed mechanically.
    """
    for issue in issues:
        number, begin, length = _locate_issue(issue, lines)
        text = mask_secrets(lines[number - 1].rstrip("\r")) if number <= len(lines) else ""
        yield Finding(
            issue.code,
            issue.severity,
            issue.message,
            issue.path,
            number,
            begin + 1,
            length,
            text,
            issue.field,
            (issue.code, issue.field) in fixable,
        )


def _locate_issue(issue: Issue, lines: Sequence[str]) -> tuple[int, int, int]:
    """Return the line (counted from 1), the column (from 0) and the length of the text that an issue is about."""
    number = max(issue.line, 1)
    if issue.code == "hidden-text" and (place := _locate_hidden_character(issue, lines, number)):
        return place
    begin, end = _locate_in_line(issue, lines[number - 1].rstrip("\r") if number <= len(lines) else "")
    return number, begin, max(end - begin, 1)


def _locate_in_line(issue: Issue, text: str) -> tuple[int, int]:
    """Return where the part begins and ends: a reference, a secret, a key, a value, or else the whole line."""
    if issue.code == "missing-reference" and issue.field in text:
        return text.index(issue.field), text.index(issue.field) + len(issue.field)
    secret = next(_find_secrets(text), None) if issue.code == "secret-in-skill" else None
    if secret is not None:
        return secret.span()
    key = _KEY.match(text)
    last = len(text.rstrip())
    if key is None or issue.field.rpartition(".")[2] != key[1] or issue.code == "yaml-duplicate-key":
        return len(text) - len(text.lstrip()), last
    if issue.code in _CODES_ABOUT_KEYS or key.end() >= last:
        return key.start(1), key.end(1)
    return key.end(), last


def _locate_hidden_character(issue: Issue, lines: Sequence[str], number: int) -> tuple[int, int, int] | None:
    """Return the place of the first hidden character, in the body or from the field on."""
    fences = [index for index, line in enumerate(lines) if _FENCE.fullmatch(line)]
    begin = fences[1] + 1 if issue.field == "body" and len(fences) > 1 else number - 1
    for index in range(begin, len(lines)):
        column = find_hidden(lines[index])
        if column is not None:
            return index + 1, column, 1
    return None


_SECRET_PATTERNS = {
    "GitHub": r"gh[opsur]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255}",
    "GitLab": r"glpat-[A-Za-z0-9_-]{20,255}",
    "AWS": r"A(?:KIA|SIA)[0-9A-Z]{16}",
    "Anthropic": r"sk-ant-[A-Za-z0-9_-]{32,255}",
    "OpenAI": r"sk-(?:proj-)?[A-Za-z0-9_-]{40,255}",
    "Slack": r"xox[abprs]-[0-9A-Za-z-]{20,255}",
    "Google": r"AIza[0-9A-Za-z_-]{35}",
    "npm": r"npm_[A-Za-z0-9]{36}",
    "Stripe": r"sk_live_[0-9A-Za-z]{24,255}",
    "private": r"-----BEGIN (?:[A-Z]{1,16} )?PRIVATE KEY-----\s{1,4}[A-Za-z0-9+/]{40}",
}
_SECRET = re.compile(
    r"(?<![A-Za-z0-9_-])(?:" + "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _SECRET_PATTERNS.items()) + ")"
)
# Documentation shows what a key looks like: words such as "example", or a character six times in a row.
_EXAMPLE = re.compile(r"(?i)example|your[-_]|placeholder|(.)\1{5}")


def secret_issues(file: str, limits: Limits) -> Iterator[Issue]:
    """Yield a warning for each secret in a skill, whose SKILL.md is ``file``; files that cannot be read are skipped.

    At most ``limits.max_body_bytes`` of each file are read, and ``limits.max_digest_bytes`` of all together.
    """
    folder = os.path.dirname(file)
    try:
        paths = list_tree(folder, (), limits).files
    except OSError:
        return
    left = limits.max_digest_bytes
    for path in paths:
        data = _read_bytes(folder, path, min(limits.max_body_bytes, left))
        left -= len(data)
        if b"\0" not in data:  # random bytes of a binary file could look like a secret
            yield from find_secret_issues(data.decode("utf-8", "replace"), os.path.join(folder, *path.split("/")))


def _read_bytes(folder: str, path: str, limit: int) -> bytes:
    """Return the first bytes of a file, none when it cannot be read."""
    try:
        with OpenFile(folder, tuple(path.split("/"))) as file:
            return file.read(limit)
    except ResourceError:
        return b""


def find_secret_issues(text: str, path: str) -> Iterator[Issue]:
    """Yield a warning for each secret in the text of the file at ``path``."""
    line, counted = 1, 0
    for match in _find_secrets(text):
        # Lines are counted from the last match on: from the beginning, a file full of secrets would take half a minute.
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        yield Issue("secret-in-skill", "", f"looks like a secret key ({match.lastgroup})", path, line, "warning")


def _find_secrets(text: str) -> Iterator[re.Match[str]]:
    """Return the matches in ``text`` that look like a secret, and not like an example of one."""
    return (match for match in _SECRET.finditer(text) if not _EXAMPLE.search(match[0]))


def mask_secrets(line: str) -> str:
    """Return the line with stars in place of its secrets but for their first four characters.

    Reports of a check end up in logs, which must not repeat a secret.
    """
    return _SECRET.sub(lambda match: match[0][:4] + "*" * (len(match[0]) - 4), line)

"""A finding: an issue with the very text that it is about, for people who mend it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.authoring.secrets import find_secrets, mask_secrets
from prowess.errors import ResourceError, SkillValidationError
from prowess.files.read import OpenFile
from prowess.hints import HINTS
from prowess.spec.hidden_characters import find_hidden

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.errors import Issue, Severity
    from prowess.limits import Limits

_KEY = re.compile(r"\s*([\w.-]{1,128})\s*:\s*")
_CODES_ABOUT_KEYS = frozenset(("unknown-field", "inert-field", "yaml-duplicate-key", "blank-field"))
_FENCE = re.compile(r"---\s*")


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding about one line: which rule, how bad, what, where, the text of the line, and the part of it meant."""

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
        """What to do about it."""
        return HINTS.get(self.code, "")


def read_skill_file(path: str, limits: Limits) -> bytes:
    """The whole of a SKILL.md; raises ``SkillValidationError`` where it cannot be read, or is larger than a skill's."""
    folder, name = os.path.split(path)
    try:
        with OpenFile(folder, (name,)) as file:
            return file.read_all(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError as error:
        raise SkillValidationError(f"cannot read the file: {error.message}", path, error.code) from None


def read_lines(folder: str, name: str, limits: Limits) -> list[str]:
    """The lines of a file as far as they can be read, for showing."""
    try:
        with OpenFile(folder, (name,)) as file:
            data = file.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return []
    return data.decode("utf-8-sig", "replace").split("\n")


def locate_issues(
    issues: Iterable[Issue], rows: Sequence[str], fixable: frozenset[tuple[str, str]] = frozenset()
) -> Iterator[Finding]:
    """Each issue with its line of ``rows`` and the part of that line that it is about.

    ``fixable``: code and field of what can be mended mechanically.
    """
    for issue in issues:
        number, begin, length = _locate_issue(issue, rows)
        text = mask_secrets(rows[number - 1].rstrip("\r")) if number <= len(rows) else ""
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


def _locate_issue(issue: Issue, rows: Sequence[str]) -> tuple[int, int, int]:
    """Line (from 1), column (from 0) and length."""
    number = max(issue.line, 1)
    if issue.code == "hidden-text":
        found = _locate_hidden_character(issue, rows, number)
        if found:
            return found
    text = rows[number - 1].rstrip("\r") if number <= len(rows) else ""
    begin, end = _locate_in_line(issue, text)
    return number, begin, max(end - begin, 1)


def _locate_in_line(issue: Issue, text: str) -> tuple[int, int]:
    if issue.code == "missing-reference" and issue.field in text:
        return text.index(issue.field), text.index(issue.field) + len(issue.field)
    secret = next(find_secrets(text), None) if issue.code == "secret-in-skill" else None
    if secret is not None:
        return secret.span()
    key = _KEY.match(text)
    last = len(text.rstrip())
    if key is None or issue.field.rpartition(".")[2] != key[1] or issue.code == "yaml-duplicate-key":
        return len(text) - len(text.lstrip()), last
    if issue.code in _CODES_ABOUT_KEYS or key.end() >= last:
        return key.start(1), key.end(1)
    return key.end(), last


def _locate_hidden_character(issue: Issue, rows: Sequence[str], number: int) -> tuple[int, int, int] | None:
    """The first hidden character, in the body or in the field."""
    fences = [at for at, row in enumerate(rows) if _FENCE.fullmatch(row)]
    begin = fences[1] + 1 if issue.field == "body" and len(fences) > 1 else number - 1
    for at in range(begin, len(rows)):
        found = find_hidden(rows[at])
        if found is not None:
            return at + 1, found, 1
    return None

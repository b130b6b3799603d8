"""Finds secrets in the files of a skill, by the patterns of the services that issue them."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from prowess.errors import Issue, ResourceError
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits

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
    for match in find_secrets(text):
        # Lines are counted from the last match on: from the beginning, a text full of secrets would take half a minute.
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        yield Issue("secret-in-skill", "", f"looks like a secret key ({match.lastgroup})", path, line, "warning")


def find_secrets(text: str) -> Iterator[re.Match[str]]:
    """Return the matches in a text that look like a secret, and not like an example of one."""
    return (match for match in _SECRET.finditer(text) if not _EXAMPLE.search(match[0]))


def mask_secrets(line: str) -> str:
    """Return the line with stars in place of its secrets but for their first four characters.

    Reports of a check end up in logs, which must not repeat a secret.
    """
    return _SECRET.sub(lambda match: match[0][:4] + "*" * (len(match[0]) - 4), line)

"""Frontmatter that is there and not where it belongs: behind a comment, in a code fence, closed by glued dashes."""

from __future__ import annotations

import re
from typing import NamedTuple

from prowess.errors import NoFrontmatterError, UnterminatedFrontmatterError
from prowess.spec.fences import BOM, Fences, locate

_GLUED = re.compile(rb"^---[ \t]*+(?=#)", re.MULTILINE)
_COMMENT = re.compile(rb"\s*+<!--(?:(?!-->)[\s\S])*+-->")
_COMMENT_AROUND = re.compile(rb"\s*+<!--\s*+(?=---[ \t]*+\r?\n)")
_CODE_FENCE = re.compile(rb"\s*+(?:```+|~~~+)[ \t]*+[\w-]*+[ \t]*+\r?\n(?=---[ \t]*+\r?\n)")
_TAIL = {
    "repaired-comment": re.compile(rb"\s*+-->[ \t]*+(?:\r?\n|\Z)"),
    "repaired-code-fence": re.compile(rb"\s*+(?:```+|~~~+)[ \t]*+(?:\r?\n|\Z)"),
}
_MESSAGES = {
    "repaired-comment": "the frontmatter stood behind or inside an HTML comment",
    "repaired-code-fence": "the frontmatter stood in a code fence",
    "repaired-glued-dashes": "the closing dashes were glued to the heading",
}


class Unwrapped(NamedTuple):
    """Where the frontmatter really is, and what was wrong with its place."""

    fences: Fences
    code: str
    message: str
    line: int


def looks_wrapped(head: bytes) -> bool:
    """Whether the text begins with something that may hide frontmatter."""
    return head.removeprefix(BOM).lstrip()[:4].startswith((b"<!--", b"```", b"~~~"))


def unwrap(head: bytes, *, whole: bool) -> Unwrapped | None:
    """The frontmatter behind or inside a comment or a code fence, if that is where it is."""
    begin = len(BOM) if head.startswith(BOM) else 0
    for code, pattern in (("repaired-comment", _COMMENT_AROUND), ("repaired-code-fence", _CODE_FENCE)):
        if match := pattern.match(head, begin):
            return _within(head, match.end(), code, whole=whole)
    end = begin
    while match := _COMMENT.match(head, end):
        end = match.end()
    return _within(head, end, "repaired-comment", whole=whole) if end > begin else None


def _within(head: bytes, at: int, code: str, *, whole: bool) -> Unwrapped | None:
    try:
        fences = locate(head, whole=whole, at=at)
    except (NoFrontmatterError, UnterminatedFrontmatterError):
        return None
    if fences is None:
        return None
    tail = _TAIL[code].match(head, fences.body)
    return _placed(fences._replace(body=tail.end()) if tail else fences, code)


def _placed(fences: Fences, code: str) -> Unwrapped:
    return Unwrapped(fences, code, _MESSAGES[code], fences.line - 1)


def unglue(head: bytes, start: int, before: int) -> Unwrapped | None:
    """Closing dashes with the heading on the same line, between ``start`` and ``before``."""
    glued = _GLUED.search(head, start, before)
    if glued is None:
        return None
    line = head.count(b"\n", 0, start) + 1
    fences = Fences(start, glued.start(), glued.end(), line)
    return _placed(fences, "repaired-glued-dashes")._replace(line=head.count(b"\n", 0, glued.start()) + 1)

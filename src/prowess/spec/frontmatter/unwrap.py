"""Frontmatter that is not where it belongs: behind a comment, in a code fence, indented, closed by glued dashes."""

from __future__ import annotations

import re
from typing import NamedTuple

from prowess.errors import InvalidFrontmatterError
from prowess.spec.frontmatter.fences import BOM, Fences, find_fences

_GLUED = re.compile(rb"^---[ \t]*+(?=#)", re.MULTILINE)
_COMMENT = re.compile(rb"\s*+<!--(?:(?!-->)[\s\S])*+-->")
_COMMENT_AROUND = re.compile(rb"\s*+<!--\s*+(?=---[ \t]*+\r?\n)")
_CODE_FENCE = re.compile(rb"\s*+(?:```+|~~~+)[ \t]*+[\w-]*+[ \t]*+\r?\n(?=---[ \t]*+\r?\n)")
_TAIL = {
    "repaired-comment": re.compile(rb"\s*+-->[ \t]*+(?:\r?\n|\Z)"),
    "repaired-code-fence": re.compile(rb"\s*+(?:```+|~~~+)[ \t]*+(?:\r?\n|\Z)"),
}
# The bytes behind the frontmatter may be the beginning of a tail: every proper prefix of what _TAIL accepts.
_TAIL_BEGUN = {
    "repaired-comment": re.compile(rb"\s*+(?:-{0,2}+|-->[ \t]*+\r?)\Z"),
    "repaired-code-fence": re.compile(rb"\s*+(?:`*+|~*+)[ \t]*+\r?\Z"),
}
# Opening dashes, at the margin or not, above a line that is indented.
_INDENTED = re.compile(rb"(?:[ \t]*+\r?\n)*+([ \t]*+)---[ \t]*+\r?\n(?=([ \t]++)[^\s])")
# Every proper prefix of opening dashes that are indented, and of the line below them.
_INDENT_BEGUN = re.compile(rb"(?:[ \t]*+\r?\n)*+[ \t]++(?:-{0,2}+|---[ \t]*+\r?(?:\n[ \t]*+)?)\Z")
_WRAPPER_STARTS = (b"<!--", b"```", b"~~~")
_MESSAGES = {
    "repaired-comment": "the frontmatter stood behind or inside an HTML comment",
    "repaired-code-fence": "the frontmatter stood in a code fence",
    "repaired-glued-dashes": "the closing dashes were glued to the heading",
    "repaired-indentation": "the frontmatter was indented, with its closing dashes",
}


class MisplacedFrontmatter(NamedTuple):
    """Where the frontmatter really is, and what was wrong with its place."""

    fences: Fences
    code: str
    message: str
    line: int


def has_wrapper(head: bytes) -> bool:
    """True when the text begins with something that may hide frontmatter."""
    return head.removeprefix(BOM).lstrip()[:4].startswith(_WRAPPER_STARTS)


def may_have_wrapper(head: bytes) -> bool:
    """True when the text looks wrapped, or is so short that with more bytes it may."""
    text = head.removeprefix(BOM).lstrip()[:4]
    return text.startswith(_WRAPPER_STARTS) or any(beginning.startswith(text) for beginning in _WRAPPER_STARTS)


def unwrap_frontmatter(head: bytes, *, whole: bool) -> MisplacedFrontmatter | None:
    """The frontmatter behind or inside a comment or a code fence, or ``None`` when it is not there.

    Without ``whole`` more bytes may follow, and ``None`` is also the answer when these could change what is found.
    """
    begin = len(BOM) if head.startswith(BOM) else 0
    for code, pattern in (("repaired-comment", _COMMENT_AROUND), ("repaired-code-fence", _CODE_FENCE)):
        if match := pattern.match(head, begin):
            return _find_within(head, match.end(), code, whole=whole)
    end = begin
    while match := _COMMENT.match(head, end):
        end = match.end()
    return _find_within(head, end, "repaired-comment", whole=whole) if end > begin else None


def _find_within(head: bytes, at: int, code: str, *, whole: bool) -> MisplacedFrontmatter | None:
    try:
        fences = find_fences(head, whole=whole, at=at)
    except InvalidFrontmatterError:
        # Whatever stands there instead, a control character say, is no frontmatter: the file's first line is at fault.
        return None
    if fences is None or (not whole and _TAIL_BEGUN[code].match(head, fences.body)):
        return None
    tail = _TAIL[code].match(head, fences.body)
    return _describe_place(fences._replace(body=tail.end()) if tail else fences, code)


def _describe_place(fences: Fences, code: str) -> MisplacedFrontmatter:
    return MisplacedFrontmatter(fences, code, _MESSAGES[code], fences.line - 1)


def may_have_indent(head: bytes) -> bool:
    """True when the text begins with indented frontmatter, or is so short that with more bytes it may."""
    begin = len(BOM) if head.startswith(BOM) else 0
    return any(pattern.match(head, begin) is not None for pattern in (_INDENTED, _INDENT_BEGUN))


def find_indented_frontmatter(head: bytes, *, whole: bool) -> MisplacedFrontmatter | None:
    """The frontmatter that is indented as a whole, closing dashes included, or ``None`` when it is not there.

    Every line of it is blank or begins with the indentation of the first; the opening dashes may stand at the margin.
    Dashes in the column of the keys are never YAML, so nothing that can be read otherwise is taken for it. Without
    ``whole`` more bytes may follow, and ``None`` is also the answer when the closing line may go on.
    """
    opener = _INDENTED.match(head, len(BOM) if head.startswith(BOM) else 0)
    if opener is None or not opener[2].startswith(opener[1]):
        return None
    start, indentation = opener.end(), opener[2]
    closing = re.compile(rb"^" + re.escape(indentation) + rb"---[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
    closer = closing.search(head, start)
    if closer is None or (not whole and not closer[0].endswith(b"\n")):
        return None
    rows = head[start : closer.start()].split(b"\n")
    if not all(row.startswith(indentation) or not row.strip() for row in rows):
        return None
    fences = Fences(start, closer.start(), closer.end(), head.count(b"\n", 0, start) + 1)
    return _describe_place(fences, "repaired-indentation")


def dedent_text(text: str) -> str:
    """The text without the indentation of its first line, in every line that has it."""
    indentation = text[: len(text) - len(text.lstrip(" \t"))]
    return "\n".join(row.removeprefix(indentation) for row in text.split("\n"))


def split_glued_dashes(head: bytes, start: int, before: int) -> MisplacedFrontmatter | None:
    """Closing dashes with the heading on the same line, between ``start`` and ``before``."""
    glued = _GLUED.search(head, start, before)
    if glued is None:
        return None
    line = head.count(b"\n", 0, start) + 1
    fences = Fences(start, glued.start(), glued.end(), line)
    return _describe_place(fences, "repaired-glued-dashes")._replace(line=head.count(b"\n", 0, glued.start()) + 1)

"""Search for misplaced frontmatter: behind a comment, in a code fence, indented, or with glued closing dashes.

Lenient mode repairs these places. Glued dashes are on one line with the heading that follows: ``---# Title``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from prowess.errors import InvalidFrontmatterError
from prowess.format.frontmatter.fences import BOM, Fences, find_fences
from prowess.text.patterns import compile_pattern

_GLUED = compile_pattern(rb"^---[ \t]*+(?=#)", re.MULTILINE)
_COMMENT = compile_pattern(rb"\s*+<!--(?:(?!-->)[\s\S])*+-->")
_COMMENT_AROUND = compile_pattern(rb"\s*+<!--\s*+(?=---[ \t]*+\r?\n)")
_CODE_FENCE = compile_pattern(rb"\s*+(?:```+|~~~+)[ \t]*+[\w-]*+[ \t]*+\r?\n(?=---[ \t]*+\r?\n)")
_TAIL = {
    "repaired-comment": compile_pattern(rb"\s*+-->[ \t]*+(?:\r?\n|\Z)"),
    "repaired-code-fence": compile_pattern(rb"\s*+(?:```+|~~~+)[ \t]*+(?:\r?\n|\Z)"),
}
# Every proper prefix of what _TAIL accepts: the bytes behind the frontmatter may be the beginning of a tail.
_TAIL_BEGUN = {
    "repaired-comment": compile_pattern(rb"\s*+(?:-{0,2}+|-->[ \t]*+\r?)\Z"),
    "repaired-code-fence": compile_pattern(rb"\s*+(?:`*+|~*+)[ \t]*+\r?\Z"),
}
# Opening dashes, at the margin or not, above a line that is indented.
_INDENTED = compile_pattern(rb"(?:[ \t]*+\r?\n)*+([ \t]*+)---[ \t]*+\r?\n(?=([ \t]++)[^\s])")
# Every proper prefix of opening dashes that are indented, and of the line below them.
_INDENT_BEGUN = compile_pattern(rb"(?:[ \t]*+\r?\n)*+[ \t]++(?:-{0,2}+|---[ \t]*+\r?(?:\n[ \t]*+)?)\Z")
_WRAPPER_STARTS = (b"<!--", b"```", b"~~~")
_MESSAGES = {
    "repaired-comment": "the frontmatter was behind or inside an HTML comment",
    "repaired-code-fence": "the frontmatter was in a code fence",
    "repaired-glued-dashes": "the closing dashes were glued to the heading",
    "repaired-indentation": "the frontmatter was indented, with its closing dashes",
}


class MisplacedFrontmatter(NamedTuple):
    """Frontmatter in the wrong place: where it really is, and the code, message and line of the repair."""

    fences: Fences
    code: str
    message: str
    line: int


def has_wrapper(head: bytes) -> bool:
    """Return whether the text begins with a comment or a code fence, which may hold frontmatter."""
    return head.removeprefix(BOM).lstrip()[:4].startswith(_WRAPPER_STARTS)


def may_have_wrapper(head: bytes) -> bool:
    """Return whether the text begins with a comment or a code fence, or may do so once more bytes are read."""
    text = head.removeprefix(BOM).lstrip()[:4]
    return text.startswith(_WRAPPER_STARTS) or any(beginning.startswith(text) for beginning in _WRAPPER_STARTS)


def unwrap_frontmatter(head: bytes, *, whole: bool) -> MisplacedFrontmatter | None:
    """Return the frontmatter behind or inside a comment or a code fence, or ``None`` when there is none.

    Without ``whole`` more bytes may follow, and ``None`` is also returned when these could change the result.
    """
    begin = len(BOM) if head.startswith(BOM) else 0
    for code, pattern in (("repaired-comment", _COMMENT_AROUND), ("repaired-code-fence", _CODE_FENCE)):
        if match := pattern.match(head, begin):
            return _find_within(head, match.end(), code, whole=whole)
    end = begin
    while match := _COMMENT.match(head, end):
        end = match.end()
    return _find_within(head, end, "repaired-comment", whole=whole) if end > begin else None


def _find_within(head: bytes, offset: int, code: str, *, whole: bool) -> MisplacedFrontmatter | None:
    try:
        fences = find_fences(head, whole=whole, offset=offset)
    except InvalidFrontmatterError:
        # There is no frontmatter at all, so that the caller reports the first line of the file, not this one.
        return None
    if fences is None or (not whole and _TAIL_BEGUN[code].match(head, fences.body)):
        return None
    tail = _TAIL[code].match(head, fences.body)
    return _describe_place(fences._replace(body=tail.end()) if tail else fences, code)


def _describe_place(fences: Fences, code: str) -> MisplacedFrontmatter:
    return MisplacedFrontmatter(fences, code, _MESSAGES[code], fences.line - 1)


def may_have_indent(head: bytes) -> bool:
    """Return whether the text begins with indented frontmatter, or may do so once more bytes are read."""
    begin = len(BOM) if head.startswith(BOM) else 0
    return any(pattern.match(head, begin) is not None for pattern in (_INDENTED, _INDENT_BEGUN))


def find_indented_frontmatter(head: bytes, *, whole: bool) -> MisplacedFrontmatter | None:
    """Return the frontmatter that is indented as a whole, closing dashes included, or ``None`` when there is none.

    Every line of it is blank or begins with the indentation of the first line. The opening dashes may be at the
    margin. Without ``whole`` more bytes may follow, and ``None`` is also returned when the closing line may go on.
    """
    # Dashes in the column of the keys are never YAML, so this takes nothing that could be read in another way.
    opener = _INDENTED.match(head, len(BOM) if head.startswith(BOM) else 0)
    if opener is None or not opener[2].startswith(opener[1]):
        return None
    start, indentation = opener.end(), opener[2]
    closing = compile_pattern(rb"^" + re.escape(indentation) + rb"---[ \t]*+\r?(?:\n|\Z)", re.MULTILINE)
    closer = closing.search(head, start)
    if closer is None or (not whole and not closer[0].endswith(b"\n")):
        return None
    lines = head[start : closer.start()].split(b"\n")
    if not all(line.startswith(indentation) or not line.strip() for line in lines):
        return None
    fences = Fences(start, closer.start(), closer.end(), head.count(b"\n", 0, start) + 1)
    return _describe_place(fences, "repaired-indentation")


def dedent_text(text: str) -> str:
    """Return the text with the indentation of its first line removed from every line that has it."""
    indentation = text[: len(text) - len(text.lstrip(" \t"))]
    return "\n".join(line.removeprefix(indentation) for line in text.split("\n"))


def split_glued_dashes(head: bytes, start: int, before: int) -> MisplacedFrontmatter | None:
    """Return the frontmatter from ``start`` to closing dashes on one line with a heading, searched up to ``before``.

    Returns ``None`` when there are no such dashes.
    """
    # Fast path: without dashes in the frontmatter no pattern has to look at each of its bytes.
    glued = _GLUED.search(head, start, before) if head.find(b"\n---", start - 1, before) >= 0 else None
    if glued is None:
        return None
    fences = Fences(start, glued.start(), glued.end(), head.count(b"\n", 0, start) + 1)
    return _describe_place(fences, "repaired-glued-dashes")._replace(line=head.count(b"\n", 0, glued.start()) + 1)

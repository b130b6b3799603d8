"""The dashes around the frontmatter, also misplaced ones, and the text between them.

The first line that is not blank is ``---``, and the next line that is ``---`` closes the frontmatter. Blanks after the
dashes, CRLF and a byte order mark are allowed. Only LF and CRLF end a line. No pattern here can backtrack, so that no
file is slow to read.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from prowess.errors import InvalidFrontmatterError, Issue, NoFrontmatterError, UnterminatedFrontmatterError
from prowess.text.patterns import compile_pattern

BOM = b"\xef\xbb\xbf"
# UTF-32 first: the mark of its little-endian form begins with that of UTF-16.
_OTHER_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_WIDE_DASHES = (b"-\0-", b"\0-\0-")  # '--' in UTF-16 without a mark
_BLANK_LINES = compile_pattern(rb"(?:[ \t]*+\r?\n)*+")
_OPENER = compile_pattern(rb"---[ \t]*+\r?(?:\n|\Z)")
_CLOSER = _OPENER
_FORBIDDEN = compile_pattern("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


class Fences(NamedTuple):
    """Byte offsets: the frontmatter is ``head[start:end]``, and the body begins at ``body``."""

    start: int
    end: int
    body: int
    line: int
    """The number of the first line between the dashes, counted from 1."""


def find_fences(head: bytes, *, whole: bool, offset: int = 0) -> Fences | None:
    """Return the fences in ``head`` from ``offset`` on, or ``None`` when more bytes are needed.

    ``whole``: there are no more bytes. Raises ``NoFrontmatterError`` when no dashes open the frontmatter, and
    ``UnterminatedFrontmatterError`` when none close it.
    """
    begin = offset + len(BOM) if head.startswith(BOM, offset) else offset
    begin = _BLANK_LINES.match(head, begin).end()  # type: ignore[union-attr]  # it matches the empty string
    opener = _OPENER.match(head, begin)
    # Without a line end the dashes may be the beginning of "---x", in bytes that are still to come.
    if opener is None or (not whole and not opener[0].endswith(b"\n")):
        if not whole and _may_still_open(head, begin):
            return None
        raise _no_opener_error(head, begin)
    return _find_closer(head, opener.end(), whole=whole)


def _find_closer(head: bytes, start: int, *, whole: bool) -> Fences | None:
    # Faster than a search by the pattern, which would look at each byte.
    at = head.find(b"\n---", start - 1)
    while (closer := _CLOSER.match(head, at + 1) if at >= 0 else None) is None and at >= 0:
        at = head.find(b"\n---", at + 1)
    line = head.count(b"\n", 0, start) + 1
    if closer is None or (not whole and not closer[0].endswith(b"\n")):
        if not whole:
            return None
        message = "the closing '---' line is missing"
        raise UnterminatedFrontmatterError([Issue("unterminated-frontmatter", "", message, line=line - 1 or 1)])
    return Fences(start, closer.start(), closer.end(), line)


def _may_still_open(head: bytes, begin: int) -> bool:
    """Return whether more bytes could make an opening line, or an encoding that is refused, of these."""
    rest = head[begin : begin + 4096]  # a longer line of spaces or dashes opens nothing
    if any(mark.startswith(head) for mark in (BOM, *_WIDE_DASHES, *(mark for mark, _ in _OTHER_BOMS))):
        return True
    return not rest.strip(b" \t\r") or (rest.startswith(b"-") and b"\n" not in rest and not rest.strip(b"- \t\r"))


def _no_opener_error(head: bytes, begin: int) -> InvalidFrontmatterError:
    refuse_other_encodings(head)
    text = head[begin : begin + 200].partition(b"\n")[0].rstrip(b"\r")
    line = head.count(b"\n", 0, begin) + 1
    if text.startswith(b"\0"):
        return InvalidFrontmatterError([_control_issue(0, begin, line)])
    return NoFrontmatterError([Issue("no-frontmatter", "", _explain_no_opener(text), line=line)])


def _explain_no_opener(text: bytes) -> str:
    if not text.strip():
        return "the file is empty"
    if text.startswith(b"----"):
        return "the first line has more than three dashes"
    if text.startswith(b"---"):
        return "there is text after the opening dashes"
    if text.lstrip().startswith(b"---"):
        return "the opening dashes are indented"
    return "the first line is not '---'"


def refuse_other_encodings(head: bytes) -> None:
    """Raise ``InvalidFrontmatterError`` for UTF-16 and UTF-32, which would otherwise look like control characters."""
    name = next((name for mark, name in _OTHER_BOMS if head.startswith(mark)), "")
    if not name and head.startswith(_WIDE_DASHES):
        name = "UTF-16"
    if name:
        raise InvalidFrontmatterError([Issue("not-utf8", "", f"the text is not UTF-8 (looks like {name})", line=1)])


def decode_frontmatter(head: bytes, fences: Fences) -> str:
    """Return the text between the dashes with LF line ends.

    Raises ``InvalidFrontmatterError`` for bad UTF-8 and for control characters.
    """
    raw = head[fences.start : fences.end]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        offset = fences.start + error.start
        message = f"the text is not UTF-8: byte 0x{head[offset]:02X} at byte {offset}"
        raise InvalidFrontmatterError(
            [Issue("not-utf8", "", message, line=fences.line + raw.count(b"\n", 0, error.start))],
        ) from None
    # Fast path: no forbidden character is printable, and Python knows at once whether all of a string is.
    control = None if text.replace("\n", "").isprintable() else _FORBIDDEN.search(text)
    if control:
        offset = fences.start + len(text[: control.start()].encode())
        line = fences.line + text.count("\n", 0, control.start())
        raise InvalidFrontmatterError([_control_issue(ord(control[0]), offset, line)])
    return text.replace("\r\n", "\n") if "\r" in text else text


def _control_issue(point: int, offset: int, line: int) -> Issue:
    return Issue("control-character", "", f"control character U+{point:04X} at byte {offset}", line=line)


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

"""The first paragraph of instructions, which describes a skill whose author wrote no description."""

from __future__ import annotations

from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from prowess.limits import MAX_DESCRIPTION_LENGTH
from prowess.text.hidden_characters import to_one_line
from prowess.text.markdown_code import FENCE_LINE, is_fence_end
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Lines that are not text of a paragraph: headings, rows of tables, elements, rules, images, link definitions.
_NO_TEXT = compile_pattern(r"#{1,6}(?:\s|$)|[|<]|(?:[-*_]\s*+){3,}$|!?\[[^\]]*+\](?::|\([^)]*+\)$)")
_UNDERLINE = compile_pattern(r"=++|-++")
"""The line below a heading that has no number signs."""
_LAST_WORD = compile_pattern(r"(?<=\s)\S{0,40}\Z")
"""What may be half a word; a script without spaces is cut anywhere."""
_MARKER = compile_pattern(r"(?:>\s*+|[-*+]\s++|\d{1,9}[.)]\s++)++")
"""What begins an item of a list, or a line of a quotation."""


def find_first_paragraph(body: bytes, *, whole: bool) -> str:
    """Return the first paragraph in the first bytes of a body, on one line and as long as a description may be.

    Headings, tables, code, comments and elements are not paragraphs. Returns ``""`` when there is none, or when the
    bytes are not UTF-8. ``whole``: the body has no more bytes; otherwise a paragraph at their end is cut at a word.
    """
    try:
        text = getincrementaldecoder("utf-8")().decode(body, final=whole)
    except UnicodeDecodeError:
        return ""
    if not whole:
        text = f"{_LAST_WORD.sub('', text)}…"
    for lines in _list_paragraphs(text.split("\n")):
        paragraph = to_one_line(" ".join(lines))
        if any(char.isalnum() for char in paragraph):
            return _cut(paragraph)
    return ""


def _list_paragraphs(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the lines of each paragraph; an item of a list is a paragraph of its own."""
    paragraph: list[str] = []
    for line in _drop_code_and_comments(lines):
        text = line.strip()
        if paragraph and _UNDERLINE.fullmatch(text):  # what came before is a heading
            paragraph = []
            continue
        marker = _MARKER.match(text)
        if paragraph and (marker or not text or _NO_TEXT.match(text)):
            yield paragraph
            paragraph = []
        if text and not _NO_TEXT.match(text):
            paragraph.append(text[marker.end() :] if marker else text)
    if paragraph:
        yield paragraph


def _drop_code_and_comments(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines outside of fenced blocks and comments, with an empty line in place of each block."""
    fence = ""
    in_comment = False
    for line in lines:
        mark = FENCE_LINE.match(line)
        if in_comment:
            in_comment = "-->" not in line
        elif fence:
            fence = "" if is_fence_end(fence, mark) else fence
        elif mark:
            fence = mark[1]
            yield ""
        elif line.lstrip().startswith("<!--"):
            in_comment = "-->" not in line
            yield ""
        else:
            yield line


def _cut(text: str) -> str:
    if len(text) <= MAX_DESCRIPTION_LENGTH:
        return text
    return _LAST_WORD.sub("", text[: MAX_DESCRIPTION_LENGTH - 1]).rstrip() + "…"

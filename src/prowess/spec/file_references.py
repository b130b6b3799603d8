"""Files that instructions name: where links lead, and paths in code spans that begin with a folder of skills.

Only what can be meant as a file of the skill counts: a relative path of plain names with an ending. Addresses, anchors,
patterns, placeholders (``<name>.md``, ``{x}.md``), paths that leave the skill, fenced blocks and comments do not.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from prowess.spec.markdown_code import FENCE_LINE, find_code_spans, is_fence_end

if TYPE_CHECKING:
    from collections.abc import Iterator

    Span = tuple[int, int]

_FOLDERS = frozenset(("scripts", "references", "assets"))
_LINK = re.compile(r"\]\([ \t]*+(?:<([^<>]*+)>|([^\s()<>]++))[ \t]*+(?:[\"'(][^\"'()]*+[\"')])?+[ \t]*+\)")
_DEFINITION = re.compile(r" {0,3}\[(?!\^)[^\[\]]++\]:[ \t]*+<?([^\s<>]++)")
_COMMENT = re.compile(r"(<!--|-->)")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = re.compile(r"[\w.@+ -]*[\w@+-]")
_ENDING = re.compile(r"[A-Za-z][A-Za-z0-9]{0,9}")


class FileReference(NamedTuple):
    """A file that the instructions name: its path in the skill, how it is written, and on which line."""

    path: str
    written: str
    line: int


def find_file_references(text: str, first: int = 1) -> Iterator[FileReference]:
    """The files that Markdown names, line by line; its first line has the number ``first``."""
    for number, row in _iter_prose_lines(text, first):
        spans = find_code_spans(row)
        for written in _find_link_targets(_remove_spans(row, spans)):
            if path := _as_file_path(written):
                yield FileReference(path, written, number)
        for begin, end in spans:
            word = next(iter(row[begin:end].split()), "")  # what follows a command's name may lie anywhere
            path = _as_file_path(word)
            if path.partition("/")[0] in _FOLDERS:
                yield FileReference(path, word, number)


def _iter_prose_lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """The lines that are neither code nor comment, each with its number."""
    fence, hidden = "", False
    for number, row in enumerate(text.split("\n"), first):
        mark = FENCE_LINE.match(row)
        if fence:
            if is_fence_end(fence, mark):
                fence = ""
        elif mark and not hidden:
            fence = mark[1]
        else:
            shown, hidden = _strip_comments(row, hidden=hidden)
            yield number, shown


def _strip_comments(row: str, *, hidden: bool) -> tuple[str, bool]:
    """What of a line is in no comment, and whether one is still open at its end."""
    shown: list[str] = []
    for piece in _COMMENT.split(row):
        if piece in {"<!--", "-->"}:
            hidden = piece == "<!--"
        elif not hidden:
            shown.append(piece)
    return "".join(shown), hidden


def _remove_spans(row: str, spans: list[Span]) -> str:
    """The line with its code taken out: a link shown as code leads nowhere."""
    begins, ends = [0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(row)]
    return "".join(row[begin:end] for begin, end in zip(begins, ends, strict=True))


def _find_link_targets(row: str) -> Iterator[str]:
    for link in _LINK.finditer(row):
        yield link[1] or link[2] or ""
    if definition := _DEFINITION.match(row):
        yield definition[1]


def _as_file_path(written: str) -> str:
    """The path of a file that a target or a word can mean in the skill; ``""`` for anything else."""
    if _SCHEME.match(written):
        return ""
    path = unquote(written.partition("#")[0].partition("?")[0]).removeprefix("./")
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    plain = all(_PLAIN.fullmatch(part) for part in path.split("/"))
    return path if plain and stem.strip(".") and _ENDING.fullmatch(ending) else ""

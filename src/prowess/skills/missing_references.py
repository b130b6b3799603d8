"""The check that the files which instructions name exist: a model that is sent to a missing file gets nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from prowess.errors import Issue, ResourceError
from prowess.files.read import OpenFile
from prowess.text.markdown_code import FENCE_LINE, find_code_spans, is_fence_end
from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.files.tree import TreeListing
    from prowess.limits import Limits
    from prowess.text.spans import Span


def find_missing_references(file: str, body_offset: int, tree: TreeListing, limits: Limits) -> Iterator[Issue]:
    """Yield a warning for each file that the instructions of a SKILL.md name and its folder does not have.

    ``file``: the path of the SKILL.md; ``body_offset``: the byte at which its instructions begin; ``tree``: what is in
    the folder. A file that is named several times is reported where it is named first.
    """
    if tree.bound:  # the listing stopped at a limit, and the file may be among those that it did not reach
        return
    known = {*tree.files, *tree.links, *tree.others, *tree.unreadable}
    missing: dict[str, FileReference] = {}
    for mention in _read_mentions(file, body_offset, limits):
        # Instructions may name any number of files: the limit keeps what is remembered of them small.
        if len(missing) < limits.max_files_per_skill and not _is_known(mention.path, known):
            missing.setdefault(mention.path, mention)
    by_name = {_fold_name(path): path for path in tree.files}  # another folder or case is the commonest mistake
    for path, mention in missing.items():
        meant = by_name.get(_fold_name(path))
        message = "is not a file of the skill" + (f"; there is {meant}" if meant else "")
        yield Issue("missing-reference", mention.written, message, file, mention.line, "warning")


def _read_mentions(file: str, body_offset: int, limits: Limits) -> Iterator[FileReference]:
    """Return the files that the instructions of a SKILL.md name, each with its line; none where it cannot be read."""
    folder, name = os.path.split(file)
    try:
        with OpenFile(folder, (name,)) as opened:
            data = opened.read(limits.max_frontmatter_bytes + limits.max_body_bytes)
    except ResourceError:
        return iter(())
    first_line = data.count(b"\n", 0, body_offset) + 1
    return find_file_references(data[body_offset:].decode("utf-8", "replace"), first_line)


def _is_known(path: str, known: set[str]) -> bool:
    """Return whether ``path``, or a folder above it, is among the ``known`` paths.

    Below a link or a folder that cannot be read nothing was listed, and other findings report these.
    """
    parts = path.split("/")
    return any("/".join(parts[:count]) in known for count in range(1, len(parts) + 1))


def _fold_name(path: str) -> str:
    return path.rpartition("/")[2].casefold()


# No pattern here can backtrack: a mebibyte of anything is searched in one pass (tests/format/test_file_references.py).
_FOLDERS = frozenset(("scripts", "references", "assets"))
_LINK = compile_pattern(r"\]\([ \t]*+(?:<([^<>]*+)>|([^\s()<>]++))[ \t]*+(?:[\"'(][^\"'()]*+[\"')])?+[ \t]*+\)")
_DEFINITION = compile_pattern(r" {0,3}\[(?!\^)[^\[\]]++\]:[ \t]*+<?([^\s<>]++)")
_COMMENT = compile_pattern(r"(<!--|-->)")
_SCHEME = compile_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = compile_pattern(r"[\w.@+ -]*[\w@+-]")
_ENDING = compile_pattern(r"[A-Za-z][A-Za-z0-9]{0,9}")


class FileReference(NamedTuple):
    """A file that the instructions name: its path in the skill, the text that names it, and the number of the line."""

    path: str
    written: str
    line: int


def find_file_references(text: str, first: int = 1) -> Iterator[FileReference]:
    """Yield the files that Markdown names, line by line; ``first`` is the number of its first line."""
    for number, line in _iter_prose_lines(text, first):
        spans = find_code_spans(line)
        for written in _find_link_targets(_remove_spans(line, spans)):
            if path := _as_file_path(written):
                yield FileReference(path, written, number)
        for begin, end in spans:
            # Only the first word: the arguments of a command may name files of the user's project.
            word = next(iter(line[begin:end].split()), "")
            path = _as_file_path(word)
            if path.partition("/")[0] in _FOLDERS:
                yield FileReference(path, word, number)


def _iter_prose_lines(text: str, first: int) -> Iterator[tuple[int, str]]:
    """Yield the lines outside fenced blocks, each with its number and without its comments."""
    fence, is_in_comment = "", False
    for number, line in enumerate(text.split("\n"), first):
        mark = FENCE_LINE.match(line)
        if fence:
            if is_fence_end(fence, mark):
                fence = ""
        elif mark and not is_in_comment:
            fence = mark[1]
        else:
            shown, is_in_comment = _strip_comments(line, is_in_comment=is_in_comment)
            yield number, shown


def _strip_comments(line: str, *, is_in_comment: bool) -> tuple[str, bool]:
    """Return a line without its comments, and whether a comment is still open at its end."""
    shown: list[str] = []
    for piece in _COMMENT.split(line):
        if piece in {"<!--", "-->"}:
            is_in_comment = piece == "<!--"
        elif not is_in_comment:
            shown.append(piece)
    return "".join(shown), is_in_comment


def _remove_spans(line: str, spans: list[Span]) -> str:
    """Return the line without its code: a link that is shown as code leads nowhere."""
    begins, ends = [0, *(end for _, end in spans)], [*(begin for begin, _ in spans), len(line)]
    return "".join(line[begin:end] for begin, end in zip(begins, ends, strict=True))


def _find_link_targets(line: str) -> Iterator[str]:
    for link in _LINK.finditer(line):
        yield link[1] or link[2] or ""
    if definition := _DEFINITION.match(line):
        yield definition[1]


def _as_file_path(written: str) -> str:
    """Return the path in the skill that a target or a word can mean; ``""`` when it can mean no file."""
    if _SCHEME.match(written):
        return ""
    path = unquote(written.partition("#")[0].partition("?")[0]).removeprefix("./")
    stem, _, ending = path.rpartition("/")[2].rpartition(".")
    is_plain = all(_PLAIN.fullmatch(part) for part in path.split("/"))
    return path if is_plain and stem.strip(".") and _ENDING.fullmatch(ending) else ""

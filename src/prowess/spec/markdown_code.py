"""Code in Markdown: its fences, its spans, and what shell code puts between single quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Span = tuple[int, int]

FENCE_LINE = re.compile(r"(?:[\s>]|[-*+] |\d{1,9}[.)] )*+(`{3,}+(?=[^`]*+$)|~{3,}+)(.*+)")
"""A line that opens or closes a fenced block, and what stands after its marks."""
_BACKQUOTES = re.compile(r"`++")
_LANGUAGE = re.compile(r"[^\w]*+([\w-]*+)")
_SHELLS = frozenset(("", "sh", "bash", "shell", "zsh", "ksh", "dash", "fish", "console", "terminal", "shell-session"))
_SHELL_TOKEN = re.compile(r"\\.|\$\(|['\"()#]", re.DOTALL)
_LONGEST_WORD = 20


def find_code_spans(row: str) -> list[Span]:
    """What stands between backquotes and the next as many on one line; each run is looked at once."""
    ticks = [match.span() for match in _BACKQUOTES.finditer(row)]
    later: dict[int, int] = {}
    partner: dict[int, int] = {}
    for at in range(len(ticks) - 1, -1, -1):
        length = ticks[at][1] - ticks[at][0]
        if length in later:
            partner[at] = later[length]
        later[length] = at
    spans: list[Span] = []
    at = 0
    while at < len(ticks):
        if at in partner:
            spans.append((ticks[at][1], ticks[partner[at]][0]))
            at = partner[at]
        at += 1
    return spans


def is_fence_end(fence: str, mark: re.Match[str] | None) -> bool:
    """True when a line (its match of ``FENCE_LINE``) ends the block that ``fence`` opened."""
    return mark is not None and mark[1].startswith(fence) and not mark[2].strip()


def find_single_quotes(text: str) -> list[Span]:
    """Where shell code in Markdown stands between single quotes, in order: a shell puts nothing in there.

    Shell code is what stands in a code span, and in a fenced block without a language or with that of a shell.
    """
    return [quoted for begin, end in _find_shell_code(text) for quoted in _find_quotes(text, begin, end)]


def _find_shell_code(text: str) -> Iterator[Span]:
    fence, shell, begin, at = "", False, 0, 0
    for row in text.split("\n"):
        mark = FENCE_LINE.match(row)
        if fence:
            if is_fence_end(fence, mark):
                if shell:
                    yield begin, at
                fence = ""
        elif mark:
            language = _LANGUAGE.match(mark[2])
            fence, begin = mark[1], at + len(row)
            shell = language is not None and language[1].lower() in _SHELLS
        else:
            yield from ((at + first, at + last) for first, last in find_code_spans(row))
        at += len(row) + 1
    if fence and shell:
        yield begin, len(text)


def _find_quotes(text: str, begin: int, end: int) -> Iterator[Span]:
    """The single-quoted parts of one piece of shell code.

    In double quotes a single one is only a character, until ``$(`` begins code again: hence the stack. Each character
    is looked at once, since a quote that nothing closes is the last that is looked for.
    """
    inside: list[str] = []
    at = begin
    while token := _SHELL_TOKEN.search(text, at, end):
        at = token.end()
        written = token[0]
        if written == "$(" or (written == "(" and inside[-1:] != ['"']):
            inside.append("(")
        elif written == '"':
            inside.pop() if inside[-1:] == ['"'] else inside.append('"')
        elif inside[-1:] == ['"']:
            continue
        elif written == ")" and inside:
            inside.pop()
        elif written == "#" and (token.start() == begin or text[token.start() - 1].isspace()):
            line_end = text.find("\n", at, end)
            at = end if line_end < 0 else line_end
        elif written == "'" and not _is_apostrophe(text, token.start(), begin):
            closing = text.find("'", at, end)
            if closing < 0:
                return
            yield at, closing
            at = closing + 1


def _is_apostrophe(text: str, at: int, begin: int) -> bool:
    """True for the mark in ``don't``, which stands between letters; ``-F','`` and ``-e's/a/b/'`` are quotes."""
    before = text[max(begin, at - _LONGEST_WORD) : at]
    return before[-1:].isalpha() and before.split()[-1].isalpha() and text[at + 1 : at + 2].isalpha()

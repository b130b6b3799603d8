"""Code in Markdown: fenced blocks, code spans, and the single-quoted parts of shell code."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.text.spans import Span

FENCE_LINE = compile_pattern(r"(?:[\s>]|[-*+] |\d{1,9}[.)] )*+(`{3,}+(?=[^`]*+$)|~{3,}+)(.*+)")
"""A line that opens or closes a fenced block: group 1 is the run of marks, group 2 the rest of the line."""
_BACKQUOTES = compile_pattern(r"`++")
_LANGUAGE = compile_pattern(r"[^\w]*+([\w-]*+)")
_SHELLS = frozenset(("", "sh", "bash", "shell", "zsh", "ksh", "dash", "fish", "console", "terminal", "shell-session"))
_SHELL_TOKEN = compile_pattern(r"\\.|\$\(|['\"()#]", re.DOTALL)
_MAX_WORD_CHARS = 20  # characters before a quote that are looked at, so that a long line costs no more than its length


def find_code_spans(line: str) -> list[Span]:
    """Return where the code spans of one line begin and end, without their backquotes.

    A run of backquotes is closed by the next run of equal length.
    """
    runs = [match.span() for match in _BACKQUOTES.finditer(line)]
    # From the end, so that each run is looked at once: a search forward from each would cost the square of the length.
    nearest_of_length: dict[int, int] = {}
    closing_run: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        length = runs[index][1] - runs[index][0]
        if length in nearest_of_length:
            closing_run[index] = nearest_of_length[length]
        nearest_of_length[length] = index
    spans: list[Span] = []
    index = 0
    while index < len(runs):
        if index in closing_run:
            spans.append((runs[index][1], runs[closing_run[index]][0]))
            index = closing_run[index]
        index += 1
    return spans


def is_fence_end(fence: str, mark: re.Match[str] | None) -> bool:
    """Return whether a line, given as its match of ``FENCE_LINE``, ends the block that the marks ``fence`` opened."""
    return mark is not None and mark[1].startswith(fence) and not mark[2].strip()


def find_single_quotes(text: str) -> list[Span]:
    """Return where shell code in Markdown is between single quotes, in order: there a shell replaces nothing.

    Shell code is the text of a code span, and of a fenced block that names a shell or no language.
    """
    return [quoted for begin, end in _find_shell_code(text) for quoted in _find_quotes(text, begin, end)]


def _find_shell_code(text: str) -> Iterator[Span]:
    fence, is_shell, begin, offset = "", False, 0, 0
    for line in text.split("\n"):
        mark = FENCE_LINE.match(line)
        if fence:
            if is_fence_end(fence, mark):
                if is_shell:
                    yield begin, offset
                fence = ""
        elif mark:
            language = _LANGUAGE.match(mark[2])
            fence, begin = mark[1], offset + len(line)
            is_shell = language is not None and language[1].lower() in _SHELLS
        else:
            yield from ((offset + first, offset + last) for first, last in find_code_spans(line))
        offset += len(line) + 1
    if fence and is_shell:  # Markdown ends a block that nothing closes at the end of the text
        yield begin, len(text)


def _find_quotes(text: str, begin: int, end: int) -> Iterator[Span]:
    """Yield the single-quoted parts of one piece of shell code.

    Within double quotes a single one is only a character, until ``$(`` begins code again. So a stack holds what is
    open. Each character is looked at once, since the search ends at a quote that nothing closes.
    """
    stack: list[str] = []
    offset = begin
    while token := _SHELL_TOKEN.search(text, offset, end):
        offset = token.end()
        sign, start = token[0], token.start()
        if sign in {'"', "$(", "(", ")"}:
            _update_stack(stack, sign)
        elif stack[-1:] == ['"']:
            continue
        elif sign == "#" and (start == begin or text[start - 1].isspace()):
            line_end = text.find("\n", offset, end)
            offset = end if line_end < 0 else line_end
        elif sign == "'" and not _is_apostrophe(text, start, begin):
            closing = text.find("'", offset, end)
            if closing < 0:
                return
            yield offset, closing
            offset = closing + 1


def _update_stack(stack: list[str], sign: str) -> None:
    """Push or pop what a double quote or a parenthesis opens or closes."""
    is_quoted = stack[-1:] == ['"']
    if sign == '"':
        stack.pop() if is_quoted else stack.append('"')
    elif sign == "$(" or (sign == "(" and not is_quoted):
        stack.append("(")
    elif sign == ")" and stack and not is_quoted:
        stack.pop()


def _is_apostrophe(text: str, offset: int, begin: int) -> bool:
    """Return whether a mark is that of ``don't``, between letters; ``-F','`` and ``-e's/a/b/'`` are quotes."""
    before = text[max(begin, offset - _MAX_WORD_CHARS) : offset]
    return before[-1:].isalpha() and before.split()[-1].isalpha() and text[offset + 1 : offset + 2].isalpha()

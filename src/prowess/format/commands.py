"""Commands in instructions: ``!`command` `` in the text, and fenced blocks that open with ```` ```! ````.

Only the author's text is searched. The output of a command takes its place and is never searched for commands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.text.spans import replace_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.errors import Issue
    from prowess.text.spans import Span

    Permission = Literal["none needed", "granted", "once", "refused"]

_INLINE = re.compile(r"(?<!\\)!`([^`]+)`")
_FENCE = re.compile(r"^(`{3,}+|~{3,}+)(!?)[^\S\n]*+$", re.MULTILINE)


class EmbeddedCommand(NamedTuple):
    """One command of the instructions: where it begins and ends in the text, and the command itself."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ExpandedText:
    """A text whose commands have run or were refused, where their outputs are in it, and the issues about them."""

    text: str
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    permission: Permission = "none needed"
    """Why its commands ran: by a grant, or because a person allowed it once; ``"refused"`` when they did not run."""
    digest: str = ""
    """The digest of the skill whose commands ran."""


def find_commands(text: str, begin: int = 0) -> tuple[EmbeddedCommand, ...]:
    """Return the commands of ``text`` from ``begin`` on, in order; empty ones are left out."""
    if not may_have_commands(text):
        return ()
    commands: list[EmbeddedCommand] = []
    offset = begin
    for block in _find_blocks(text, begin):  # blocks first: what looks like an inline command within one belongs to it
        commands += _find_inline(text, offset, block.begin)
        commands.append(block)
        offset = block.end
    commands += _find_inline(text, offset, len(text))
    return tuple(command for command in commands if command.text)


def _find_inline(text: str, begin: int, end: int) -> Iterator[EmbeddedCommand]:
    for match in _INLINE.finditer(text, begin, end):
        yield EmbeddedCommand(match.start(), match.end(), _clean_command(match[1]))


def _find_blocks(text: str, begin: int) -> Iterator[EmbeddedCommand]:
    """Yield the fenced blocks of commands, each from its opening line to the line that closes it."""
    fences = list(_FENCE.finditer(text, begin))
    ends = _find_fence_ends(fences)
    offset = begin
    for fence, end in zip(fences, ends, strict=True):
        if fence[2] and end is not None and fence.start() >= offset:
            yield EmbeddedCommand(fence.start(), end.end(), _clean_command(text[fence.end() : end.start()]))
            offset = end.end()


def _find_fence_ends(fences: list[re.Match[str]]) -> list[re.Match[str] | None]:
    """Return for each line of fence marks the next line that could close it: as many or more marks of that kind."""
    ends: list[re.Match[str] | None] = []
    # From the end, so that each fence is looked at once: a string of fences alone must not take quadratic time. A fence
    # behind a nearer one of at least its length can never be the next, so the lengths in a list only fall.
    nearest: dict[str, list[re.Match[str]]] = {"`": [], "~": []}
    for fence in reversed(fences):
        later = nearest[fence[1][0]]
        while fence[2] == "" and later and len(later[-1][1]) <= len(fence[1]):
            later.pop()
        count = bisect_right(later, -len(fence[1]), key=lambda closer: -len(closer[1]))
        ends.append(later[count - 1] if count else None)
        if not fence[2]:
            later.append(fence)
    return ends[::-1]


def may_have_commands(text: str) -> bool:
    """Return whether a string may hold commands; ``False`` is certain, ``True`` means that a search is worth while."""
    # Fast path of the bench row "load_skill, first call": a single character is found ten times as fast as a pair, and
    # most instructions hold no exclamation mark. tests/format/test_commands.py compares it with the search.
    return "!" in text and ("!`" in text or "`!" in text or "~!" in text)


def _clean_command(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def insert_outputs(
    text: str, commands: Sequence[EmbeddedCommand], outputs: Sequence[str]
) -> tuple[str, tuple[Span, ...]]:
    """Return the text with each command replaced by its output, and where the outputs are in it.

    Raises ``ValueError`` when there are not as many outputs as commands.
    """
    pairs = zip(commands, outputs, strict=True)
    return replace_spans(text, ((command.begin, command.end, output) for command, output in pairs))

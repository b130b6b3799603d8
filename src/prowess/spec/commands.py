"""Commands in instructions: ``!`command` `` in the text, and fenced blocks that open with ```` ```! ````.

Found in the author's text only: whatever a command prints is put in its place and never looked at again.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.errors import Issue

    Span = tuple[int, int]
    Permission = Literal["none needed", "granted", "once", "refused"]

_INLINE = re.compile(r"(?<!\\)!`([^`]+)`")
_FENCE = re.compile(r"^(`{3,}+|~{3,}+)(!?)[^\S\n]*+$", re.MULTILINE)


class EmbeddedCommand(NamedTuple):
    """One command: where it stands in the text, and what it says."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ExpandedText:
    """A text with its commands run, or not; where the outputs stand in it; and what there is to say about it."""

    text: str
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()
    permission: Permission = "none needed"
    """By what its commands ran: a grant, somebody's yes for this once, or not at all."""
    digest: str = ""
    """The state of the skill that ran."""


def find_commands(text: str, begin: int = 0) -> tuple[EmbeddedCommand, ...]:
    """The commands of a text from ``begin`` on, in order; those that say nothing are left out."""
    if not may_have_commands(text):
        return ()
    found: list[EmbeddedCommand] = []
    at = begin
    for block in _find_blocks(text, begin):
        found += _find_inline(text, at, block.begin)
        found.append(block)
        at = block.end
    found += _find_inline(text, at, len(text))
    return tuple(command for command in found if command.text)


def _find_inline(text: str, begin: int, end: int) -> Iterator[EmbeddedCommand]:
    for match in _INLINE.finditer(text, begin, end):
        yield EmbeddedCommand(match.start(), match.end(), _clean_command(match[1]))


def _find_blocks(text: str, begin: int) -> Iterator[EmbeddedCommand]:
    """The fenced blocks, each from its opening line to the next line of at least as many of the same characters."""
    fences = list(_FENCE.finditer(text, begin))
    ends = _find_fence_ends(fences)
    at = begin
    for fence, end in zip(fences, ends, strict=True):
        if fence[2] and end is not None and fence.start() >= at:
            yield EmbeddedCommand(fence.start(), end.end(), _clean_command(text[fence.end() : end.start()]))
            at = end.end()


def _find_fence_ends(fences: list[re.Match[str]]) -> list[re.Match[str] | None]:
    """For each line of fence characters the next that could close it; from the end, so that each is looked at once."""
    found: list[re.Match[str] | None] = []
    nearest: dict[str, list[re.Match[str]]] = {"`": [], "~": []}  # ever longer, the nearest last
    for fence in reversed(fences):
        later = nearest[fence[1][0]]
        while fence[2] == "" and later and len(later[-1][1]) <= len(fence[1]):
            later.pop()
        place = bisect_right(later, -len(fence[1]), key=lambda one: -len(one[1]))
        found.append(later[place - 1] if place else None)
        if not fence[2]:
            later.append(fence)
    return found[::-1]


def may_have_commands(text: str) -> bool:
    """A quick look: whether it is worth searching."""
    # A single character is found ten times as fast as a pair, and most instructions do not shout.
    return "!" in text and ("!`" in text or "`!" in text or "~!" in text)


def _clean_command(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def insert_outputs(
    text: str, commands: Sequence[EmbeddedCommand], outputs: Sequence[str]
) -> tuple[str, tuple[Span, ...]]:
    """The text with each command replaced by its output, and where the outputs stand in it."""
    parts: list[str] = []
    spans: list[Span] = []
    at = length = 0
    for command, output in zip(commands, outputs, strict=True):
        before = text[at : command.begin]
        parts += (before, output)
        length += len(before)
        spans.append((length, length + len(output)))
        length += len(output)
        at = command.end
    return "".join((*parts, text[at:])), tuple(spans)

"""Commands in instructions: ``!`command` `` in the text, and fenced blocks that open with ```` ```! ````.

Found in the author's text only: whatever a command prints is put in its place and never looked at again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prowess.errors import Issue

    Span = tuple[int, int]

_COMMAND = re.compile(
    r"(?m:^)(?P<fence>`{3,}|~{3,})![^\S\n]*\n(?P<block>(?:(?!(?P=fence))[^\n]*\n)*)(?P=fence)[^\S\n]*(?:$|(?=\n))"
    r"|(?<!\\)!`(?P<inline>[^`]+)`",
    re.MULTILINE,
)


class Command(NamedTuple):
    """One command: where it stands in the text, and what it says."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Expanded:
    """A text with its commands run, or not; where the outputs stand in it; and what there is to say about it."""

    text: str
    outputs: tuple[Span, ...] = ()
    issues: tuple[Issue, ...] = ()


def find_commands(text: str, begin: int = 0) -> tuple[Command, ...]:
    """The commands of a text from ``begin`` on, in order; those that say nothing are left out."""
    if not may_have_commands(text):
        return ()
    found = (Command(m.start(), m.end(), _said(m)) for m in _COMMAND.finditer(text, begin))
    return tuple(command for command in found if command.text)


def may_have_commands(text: str) -> bool:
    """A quick look: whether it is worth searching."""
    return "!`" in text or "`!" in text or "~!" in text


def _said(match: re.Match[str]) -> str:
    block: str | None = match["block"]
    return (match["inline"] if block is None else block).strip()


def put_in(text: str, commands: Sequence[Command], outputs: Sequence[str]) -> tuple[str, tuple[Span, ...]]:
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


def outside(text: str, spans: Sequence[Span], change: Callable[[str], str]) -> str:
    """The text with ``change`` applied to everything but the spans: what a command printed is data."""
    if not spans:
        return change(text)
    parts: list[str] = []
    at = 0
    for begin, end in spans:
        parts += (change(text[at:begin]), text[begin:end])
        at = end
    return "".join((*parts, change(text[at:])))

"""``allowed-tools``: one text or a list, separated by blanks or commas, patterns in parentheses kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SEPARATORS = frozenset(" ,\t\r\n")


def parse_allowed_tools(raw: str | None) -> tuple[str, ...]:
    """The tools that ``raw`` names, in order, as written: ``"Bash(git:*) Read, Edit"`` names three.

    A parenthesis that never closes takes the rest; a closing one too many is an ordinary character.
    """
    if not raw:
        return ()
    if "(" not in raw:
        return tuple(raw.replace(",", " ").split())
    return tuple(_tokens(raw))


def _tokens(raw: str) -> Iterable[str]:
    depth = 0
    begin = -1
    for at, char in enumerate(raw):
        if depth == 0 and char in _SEPARATORS:
            if begin >= 0:
                yield raw[begin:at]
            begin = -1
            continue
        if begin < 0:
            begin = at
        depth = max(0, depth + (char == "(") - (char == ")"))
    if begin >= 0:
        yield raw[begin:].rstrip()

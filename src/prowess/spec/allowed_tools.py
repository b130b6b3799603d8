"""``allowed-tools``: one text or a list, separated by blanks or commas, patterns in parentheses kept whole."""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable

# Parentheses that close and hold no others.
_TOOL = re.compile(r"(?:[^ ,\t\r\n()]++|\([^()]*+\))++")
_WITHOUT_NESTING = re.compile(rf"(?:[ ,\t\r\n]++|{_TOOL.pattern})*+")
# The commonest ways to write it, in heads that are known to be plain: text, a list in brackets, a list of lines.
_PLAIN_VALUE = re.compile(
    rb"(?: ([A-Za-z][^\n]*+)| \[([A-Za-z][^\n#\[\]{}\"']*+)\]|((?:\n *- [A-Za-z][^\n#]*+)++))\n(?![ -])"
)
_KEY = b"\nallowed-tools:"
_SEPARATORS = frozenset(" ,\t\r\n")


@lru_cache(maxsize=1024)  # libraries repeat themselves
def parse_allowed_tools(raw: str | None) -> tuple[str, ...]:
    """The tools that ``raw`` names, in order, as written: ``"Bash(git:*) Read, Edit"`` names three.

    A parenthesis that never closes takes the rest; a closing one too many is an ordinary character.
    """
    if not raw:
        return ()
    if "(" not in raw:
        return tuple(raw.replace(",", " ").split())
    if _WITHOUT_NESTING.fullmatch(raw):
        return tuple(_TOOL.findall(raw))
    return tuple(_split_tools(raw))


def _split_tools(raw: str) -> Iterable[str]:
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


def parse_plain_tools(head: bytes) -> tuple[str, ...] | None:
    """The tools of a head that is known to be plain, without parsing the rest; ``None`` where that needs more care."""
    if b"allowed" not in head:
        return ()
    at = head.find(_KEY)
    found = _PLAIN_VALUE.match(head, at + len(_KEY)) if at >= 0 else None
    if found is None or b": " in found[0]:
        return None
    return parse_allowed_tools((found[1] or _join_list_items(found)).decode().strip())


def _join_list_items(found: re.Match[bytes]) -> bytes:
    """The items of a list of tools with blanks between."""
    if found[2]:
        return b" ".join(item.strip() for item in found[2].split(b","))
    return b" ".join(row.partition(b"- ")[2].strip() for row in found[3].split(b"\n"))

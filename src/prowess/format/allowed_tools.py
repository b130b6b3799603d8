"""The one reader of ``allowed-tools``: tools with spaces or commas between, each with its pattern in parentheses.

``parse_allowed_tools`` splits every value, and keeps its answers. ``parse_plain_tools`` only finds the value in the
bytes of a head, so that an activation need not parse the whole head, and gives it to ``parse_allowed_tools``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from prowess.text.patterns import compile_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable

# A tool whose parentheses close and hold no others.
_TOOL = compile_pattern(r"(?:[^ ,\t\r\n()]++|\([^()]*+\))++")
_WITHOUT_NESTING = compile_pattern(rf"(?:[ ,\t\r\n]++|{_TOOL.pattern})*+")
# The commonest ways to write the value in a plain head: text, a list in brackets, a list of lines.
_PLAIN_VALUE = compile_pattern(
    rb"(?: ([A-Za-z][^\n]*+)| \[([A-Za-z][^\n#\[\]{}\"']*+)\]|((?:\n *- [A-Za-z][^\n#]*+)++))\n(?![ -])"
)
_KEY = b"\nallowed-tools:"
_SEPARATORS = frozenset(" ,\t\r\n")


@lru_cache(maxsize=1024)  # the skills of one library ask for few different sets of tools
def parse_allowed_tools(raw: str | None) -> tuple[str, ...]:
    """Return the tools that ``raw`` names, in order, as written: ``"Bash(git:*) Read, Edit"`` names three.

    A parenthesis that never closes takes the rest of the text. A closing parenthesis too many is an ordinary character.
    """
    if not raw:
        return ()
    if "(" not in raw:
        return tuple(raw.replace(",", " ").split())
    # Fast path of the bench row "load_skill, first call": the pattern is five times as fast as the loop over the
    # characters, its slow path ``_split_tools``. tests/skills/test_fast_paths.py compares the two.
    return tuple(_TOOL.findall(raw) if _WITHOUT_NESTING.fullmatch(raw) else _split_tools(raw))


def _split_tools(raw: str) -> Iterable[str]:
    """Yield the tools of a string whose parentheses may be nested, or do not match."""
    depth = 0
    begin = -1
    for index, char in enumerate(raw):
        if depth == 0 and char in _SEPARATORS:
            if begin >= 0:
                yield raw[begin:index]
            begin = -1
            continue
        if begin < 0:
            begin = index
        depth = max(0, depth + (char == "(") - (char == ")"))
    if begin >= 0:
        yield raw[begin:].rstrip()


def parse_plain_tools(head: bytes) -> tuple[str, ...] | None:
    """Return the tools of a head that ``match_head`` has matched; ``None`` when the whole head has to be parsed."""
    # Fast path of the bench row "load_skill, first call": a session asks for the tools at each activation, and parsing
    # the whole head costs twenty times as much. tests/skills/test_fast_paths.py compares the two.
    if b"allowed" not in head:
        return ()
    key = head.find(_KEY)
    match = _PLAIN_VALUE.match(head, key + len(_KEY)) if key >= 0 else None
    if match is None or b": " in match[0]:  # a mapping, perhaps, which is not a value of this field
        return None
    text, bracketed, lines = match.groups()
    if bracketed:
        text = b" ".join(item.strip() for item in bracketed.split(b","))
    elif lines:
        text = b" ".join(line.partition(b"- ")[2].strip() for line in lines.split(b"\n"))
    return parse_allowed_tools(text.decode().strip())

"""Compiles regular expressions so that they match the same text on every supported version of Python."""

from __future__ import annotations

import re
import sys
from typing import AnyStr

_HAS_CORRECT_POSSESSIVES = sys.version_info >= (3, 11, 5)


def compile_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return the compiled pattern, where a group may have a possessive quantifier, such as ``(?:ab)*+``.

    Up to Python 3.11.4, a round of such a group that fails halfway keeps what it has taken, so that the pattern matches
    what it should not. There, an atomic group takes the place of each of them. It means the same, and is slower.
    """
    if _HAS_CORRECT_POSSESSIVES:
        return re.compile(pattern, flags)
    if isinstance(pattern, bytes):
        return re.compile(make_groups_atomic(pattern.decode("latin-1")).encode("latin-1"), flags)
    return re.compile(make_groups_atomic(pattern), flags)


def make_groups_atomic(pattern: str) -> str:
    """Return the pattern with ``(?>(?:ab)*)`` in place of ``(?:ab)*+``, for each group and each quantifier."""
    written: list[str] = []
    openings: list[int] = []
    for part in _PATTERN_PART.findall(pattern):
        if part == "(":
            openings.append(len(written))
        begin = openings.pop() if part.startswith(")") else 0
        if part in _ENDS_OF_POSSESSIVES or (part.startswith("){") and part.endswith("+")):
            written.insert(begin, "(?>")
            written.append(f"{part[:-1]})")
        else:
            written.append(part)
    return "".join(written)


_ENDS_OF_POSSESSIVES = frozenset((")*+", ")++", ")?+"))
# An escaped character, a class, the end of a group with its quantifier, or any other character.
_PATTERN_PART = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\)(?:(?:[*+?]|\{\d*,?\d*\})\+?)?|.", re.DOTALL)

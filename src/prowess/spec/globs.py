"""Filters: patterns over virtual paths. ``*`` stays in a folder, ``**`` crosses, a folder means all under it.

All readings of a pattern are followed at once, so no pattern is slow.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_SPECIAL = frozenset("*?[\\")


class _Token(NamedTuple):
    """One step of a pattern.

    ``one`` and ``set`` take a character and go on; ``star`` (in a folder) and ``deep`` (across) take any and stay;
    ``between`` and ``within`` are the two halves of ``**/``, whole folders. A set is ranges of code points.
    """

    kind: str
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def has_char(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated


def is_filter_match(pattern: str, path: str) -> bool:
    """Whether ``path`` passes the filter: ``""`` lets everything through, ``"none"`` (any case) nothing.

    A pattern matches the whole path: ``*`` and ``?`` stay within a folder, ``**`` crosses folders, ``[a-z]`` and
    ``[^a]`` are sets, a backslash takes the next character literally. A pattern without any of these also lets through
    what lies below it. A malformed pattern lets nothing through.
    """
    if not pattern:
        return True
    if is_none_filter(pattern):
        return False
    if _SPECIAL.isdisjoint(pattern):
        folder = pattern.rstrip("/")
        return (bool(folder) and path == folder) or path.startswith(folder + "/")
    machine = _compile_pattern(pattern)
    if machine is None:
        return False
    anywhere = pattern.startswith("**") and path.startswith("/")  # also where there is nothing above
    return machine.matches(path) or (anywhere and machine.matches(path[1:]))


def is_none_filter(pattern: str) -> bool:
    """Whether a filter lets nothing through at all: ``"none"``, in any case."""
    return pattern.strip().lower() == "none"


class _PatternMachine:
    """Every state of a pattern as a bit of one number, so that a character moves all of them at once."""

    def __init__(self, tokens: tuple[_Token, ...]) -> None:
        self._tokens = tokens
        self._skip_one = self._mask("star", "deep")
        self._skip_two = self._mask("between")
        self._within = self._mask("within")
        self._moves: dict[str, tuple[int, int]] = {}

    def _mask(self, *kinds: str) -> int:
        return sum(1 << at for at, token in enumerate(self._tokens) if token.kind in kinds)

    def matches(self, path: str) -> bool:
        states = self._add_reachable(1)
        for char in path:
            advance, stay = self._moves.get(char) or self._compute_moves(char)
            back = (states & self._within) >> 1 if char == "/" else 0
            states = self._add_reachable(((states & advance) << 1) | (states & stay) | back)
            if not states:
                return False
        return bool(states >> len(self._tokens) & 1)

    def _add_reachable(self, states: int) -> int:
        """The states, and those reached from them without a character."""
        while True:
            more = states | (states & self._skip_one) << 1 | (states & self._skip_two) << 2
            if more == states:
                return states
            states = more

    def _compute_moves(self, char: str) -> tuple[int, int]:
        """Which states a character moves on, and which it leaves where they are."""
        advance = stay = 0
        for at, token in enumerate(self._tokens):
            advance |= _can_advance(token, char) << at
            stay |= _can_stay(token, char) << at
        self._moves[char] = (advance, stay)
        return advance, stay


def _can_advance(token: _Token, char: str) -> bool:
    if token.kind == "char":
        return token.has_char(char)
    if char == "/":
        return False
    return token.kind in {"one", "between"} or (token.kind == "set" and token.has_char(char))


def _can_stay(token: _Token, char: str) -> bool:
    return token.kind == "deep" or (token.kind in {"star", "within"} and char != "/")


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> _PatternMachine | None:
    """The machine of a pattern, or ``None`` when it is malformed."""
    pattern = pattern.rstrip("/") or pattern
    tokens: list[_Token] = []
    at = 0
    try:
        while at < len(pattern):
            found, at = _parse_token(pattern, at)
            tokens += found
    except ValueError:
        return None
    return _PatternMachine(tuple(tokens))


_WILDCARDS = (("**/", ("between", "within")), ("**", ("deep",)), ("*", ("star",)), ("?", ("one",)))


def _parse_token(pattern: str, at: int) -> tuple[tuple[_Token, ...], int]:
    for written, kinds in _WILDCARDS:
        if pattern.startswith(written, at):
            return tuple(map(_Token, kinds)), at + len(written)
    if pattern[at] == "[":
        return _parse_set(pattern, at)
    if pattern[at] == "\\":
        at += 1
        if at == len(pattern):
            raise ValueError(pattern)
    return (_Token("char", ((pattern[at], pattern[at]),)),), at + 1


def _parse_set(pattern: str, at: int) -> tuple[tuple[_Token, ...], int]:
    at += 1
    negated = pattern[at : at + 1] in {"^", "!"}
    at += negated
    ranges: list[tuple[str, str]] = []
    while not ranges or pattern[at : at + 1] != "]":
        low, at = _parse_set_member(pattern, at)
        high = low
        if pattern[at : at + 1] == "-" and pattern[at + 1 : at + 2] not in {"]", ""}:
            high, at = _parse_set_member(pattern, at + 1)
        if low > high:
            raise ValueError(pattern)
        ranges.append((low, high))
    return (_Token("set", tuple(ranges), negated),), at + 1


def _parse_set_member(pattern: str, at: int) -> tuple[str, int]:
    """A character of a set, and where the next begins; a backslash takes the next one literally."""
    at += pattern[at : at + 1] == "\\"
    if at >= len(pattern):
        raise ValueError(pattern)
    return pattern[at], at + 1

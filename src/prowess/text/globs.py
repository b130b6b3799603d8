"""Patterns that filter skills by their paths: ``*`` stays in a folder, ``**`` crosses folders.

All readings of a pattern are followed at once, so that no pattern is slow, whoever wrote it. ``fnmatch`` does not help,
because its ``*`` crosses folders.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

_SPECIAL = frozenset("*?[\\")


class _Token(NamedTuple):
    """One step of a pattern.

    ``char``, ``one`` and ``set`` take a character and go on. ``star`` (within a folder) and ``deep`` (across folders)
    take any character and stay. ``between`` and ``within`` are the two halves of ``**/``, which takes whole folders.
    ``ranges`` are the code points of a ``char`` or a ``set``.
    """

    kind: str
    ranges: tuple[tuple[str, str], ...] = ()
    negated: bool = False

    def has_char(self, char: str) -> bool:
        return any(low <= char <= high for low, high in self.ranges) != self.negated


def is_filter_match(pattern: str, path: str) -> bool:
    """Return whether ``path`` passes the filter: ``""`` lets everything through, ``"none"`` (in any case) nothing.

    A pattern matches the whole path: ``*`` and ``?`` stay within a folder, ``**`` crosses folders, ``[a-z]`` and
    ``[^a]`` are sets, a backslash takes the next character literally. A pattern without any of these names a folder,
    and also lets through what is below it. A malformed pattern lets nothing through.
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
    # ``**/`` also stands for no folder at all. An absolute path then has a "/" in front that no token takes.
    may_skip_root = pattern.startswith("**") and path.startswith("/")
    return machine.matches(path) or (may_skip_root and machine.matches(path[1:]))


def is_none_filter(pattern: str) -> bool:
    """Return whether a filter is ``"none"``, in any case, which lets nothing through."""
    return pattern.strip().lower() == "none"


class _PatternMachine:
    """A pattern that is followed in all its readings at once.

    State N means that the first N tokens are done. Each state is a bit of one number, so that a character moves all of
    them at once.
    """

    def __init__(self, tokens: tuple[_Token, ...]) -> None:
        self._tokens = tokens
        self._skip_one = self._mask("star", "deep")
        self._skip_two = self._mask("between")
        self._within = self._mask("within")
        self._moves: dict[str, tuple[int, int]] = {}  # by character: paths are made of few different ones

    def _mask(self, *kinds: str) -> int:
        return sum(1 << state for state, token in enumerate(self._tokens) if token.kind in kinds)

    def matches(self, path: str) -> bool:
        """Return whether the pattern matches the whole path."""
        states = self._add_reachable(1)
        for char in path:
            advance, stay = self._moves.get(char) or self._compute_moves(char)
            back = (states & self._within) >> 1 if char == "/" else 0
            states = self._add_reachable(((states & advance) << 1) | (states & stay) | back)
            if not states:
                return False
        return bool(states >> len(self._tokens) & 1)

    def _add_reachable(self, states: int) -> int:
        """Return the states together with those that are reached from them without a character."""
        while True:
            more = states | (states & self._skip_one) << 1 | (states & self._skip_two) << 2
            if more == states:
                return states
            states = more

    def _compute_moves(self, char: str) -> tuple[int, int]:
        """Return the states that a character moves on, and those that it leaves where they are."""
        advance = stay = 0
        for state, token in enumerate(self._tokens):
            advance |= _can_advance(token, char) << state
            stay |= (token.kind == "deep" or (token.kind in {"star", "within"} and char != "/")) << state
        self._moves[char] = (advance, stay)
        return advance, stay


def _can_advance(token: _Token, char: str) -> bool:
    if token.kind == "char":
        return token.has_char(char)
    if char == "/":
        return False
    return token.kind in {"one", "between"} or (token.kind == "set" and token.has_char(char))


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> _PatternMachine | None:
    """Return the machine of a pattern, or ``None`` when it is malformed."""
    pattern = pattern.rstrip("/") or pattern
    tokens: list[_Token] = []
    offset = 0
    try:
        while offset < len(pattern):
            parsed, offset = _parse_token(pattern, offset)
            tokens += parsed
    except ValueError:
        return None
    return _PatternMachine(tuple(tokens))


# Longer ones first: each begins with the next.
_WILDCARDS = (("**/", ("between", "within")), ("**", ("deep",)), ("*", ("star",)), ("?", ("one",)))


def _parse_token(pattern: str, offset: int) -> tuple[tuple[_Token, ...], int]:
    """Return the tokens at an offset, and the offset behind them. Raises ``ValueError`` for a malformed pattern."""
    for written, kinds in _WILDCARDS:
        if pattern.startswith(written, offset):
            return tuple(map(_Token, kinds)), offset + len(written)
    if pattern[offset] == "[":
        return _parse_set(pattern, offset)
    char, offset = _parse_char(pattern, offset)
    return (_Token("char", ((char, char),)),), offset


def _parse_set(pattern: str, offset: int) -> tuple[tuple[_Token, ...], int]:
    offset += 1
    negated = pattern[offset : offset + 1] in {"^", "!"}
    offset += negated
    ranges: list[tuple[str, str]] = []
    while not ranges or pattern[offset : offset + 1] != "]":  # a "]" in the first place is a member, as in a shell
        low, offset = _parse_char(pattern, offset)
        high = low
        if pattern[offset : offset + 1] == "-" and pattern[offset + 1 : offset + 2] not in {"]", ""}:
            high, offset = _parse_char(pattern, offset + 1)
        if low > high:
            raise ValueError(pattern)
        ranges.append((low, high))
    return (_Token("set", tuple(ranges), negated),), offset + 1


def _parse_char(pattern: str, offset: int) -> tuple[str, int]:
    """Return a character and the offset behind it; a backslash takes the next character literally."""
    offset += pattern[offset : offset + 1] == "\\"
    if offset >= len(pattern):
        raise ValueError(pattern)
    return pattern[offset], offset + 1

"""Versions with numbers in them (``v1.2.0``, ``pdf-2.1``), and which of several is later."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_VERSION_CHARS = 100
_NUMBERED = re.compile(r"(?P<before>|.*[^0-9.])(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9})*)", re.DOTALL)


def has_numbers(version: str) -> bool:
    """Whether a version ends in numbers that could be counted up."""
    return _split_numbers(version) is not None


def find_later_version(version: str, others: Iterable[str]) -> str:
    """The latest of ``others`` that is written like ``version`` and comes after it; ``""`` when there is none.

    Written like it: the same text before as many numbers, so that neither a pre-release nor another product counts.
    """
    own = _split_numbers(version)
    if own is None:
        return ""
    shapes = {other: _split_numbers(other) for other in others}
    like = {
        other: shape[1]
        for other, shape in shapes.items()
        if shape is not None and shape[0] == own[0] and len(shape[1]) == len(own[1]) and shape[1] > own[1]
    }
    return max(like, key=like.__getitem__, default="")


def _split_numbers(version: str) -> tuple[str, tuple[int, ...]] | None:
    match = _NUMBERED.fullmatch(version) if len(version) <= _MAX_VERSION_CHARS else None
    return (match["before"], tuple(int(part) for part in match["numbers"].split("."))) if match else None

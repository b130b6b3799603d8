"""The order of versions that end in numbers, such as ``v1.2.0`` and ``pdf-2.1``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Servers choose the names of tags: these two bounds keep the search and the numbers short.
_MAX_VERSION_CHARS = 100
_NUMBERED = re.compile(r"(?P<before>|.*[^0-9.])(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9})*)", re.DOTALL)


def has_numbers(version: str) -> bool:
    """Return whether a version ends in numbers, so that a later one can be recognized."""
    return _split_numbers(version) is not None


def find_later_version(version: str, others: Iterable[str]) -> str:
    """Return the latest of ``others`` that is written like ``version`` and comes after it; ``""`` when there is none.

    Two versions are written alike when an equal text stands before equally many numbers. So neither a pre-release nor
    the version of another product counts.
    """
    current = _split_numbers(version)
    if current is None:
        return ""
    prefix, numbers = current
    later: dict[str, tuple[int, ...]] = {}
    for other in others:
        parts = _split_numbers(other)
        if parts is not None and parts[0] == prefix and len(parts[1]) == len(numbers) and parts[1] > numbers:
            later[other] = parts[1]
    return max(later, key=later.__getitem__, default="")


def _split_numbers(version: str) -> tuple[str, tuple[int, ...]] | None:
    """Return the text before the numbers at the end of a version, and those numbers; ``None`` without numbers."""
    match = _NUMBERED.fullmatch(version) if len(version) <= _MAX_VERSION_CHARS else None
    return (match["before"], tuple(int(part) for part in match["numbers"].split("."))) if match else None

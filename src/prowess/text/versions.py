"""The order of versions that end in numbers, such as ``v1.2.0`` and ``pdf-2.1``, and ranges of them.

A range is a list of conditions with commas, each with an operator and one to four numbers: ``^1.2`` (from 1.2 on, below
2), ``~1.2`` (from 1.2 on, below 1.3), ``>=1.0,<2``. It holds for tags that are numbers alone, such as ``v1.2.0`` and
``1.2``; so pre-releases are in no range. Missing numbers count as zero.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Servers choose the names of tags: these two bounds keep the search and the numbers short.
_MAX_VERSION_CHARS = 100
_NUMBERED = re.compile(r"(?P<before>|.*[^0-9.])(?P<numbers>[0-9]{1,9}(?:\.[0-9]{1,9})*)", re.DOTALL)
_CONDITION = r"(?:\^|~|[<>]=?)v?[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}"
_RANGE = re.compile(rf"{_CONDITION}(?:,{_CONDITION}){{0,7}}")
LEADING_RANGE = re.compile(rf"{_RANGE.pattern}(?=[:@]|\Z)")
"""A range at the beginning of what follows the ``#`` of a source."""
_RELEASE = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})")
_MAX_NUMBERS = 4


def is_range(version: str) -> bool:
    """Return whether a version is a range, such as ``^1.2``, and not the name of a tag, a branch or a commit."""
    return _RANGE.fullmatch(version) is not None


def find_latest_in_range(wanted: str, tags: Iterable[str]) -> str:
    """Return the latest of some tags that is in a range; ``""`` when none is."""
    bounds = [bound for condition in wanted.split(",") for bound in _read_condition(condition)]
    found = {
        tag: numbers
        for tag in tags
        if (numbers := read_release(tag)) and all(lower <= numbers < upper for lower, upper in bounds)
    }
    return max(found, key=lambda tag: (found[tag], tag), default="")


def read_release(tag: str) -> tuple[int, ...]:
    """Return the four numbers of a tag such as ``v1.2``; none for a tag that is anything else."""
    match = _RELEASE.fullmatch(tag)
    return _pad([int(part) for part in match[1].split(".")]) if match else ()


def _read_condition(condition: str) -> Iterator[tuple[tuple[int, ...], tuple[float, ...]]]:
    """Yield the first version of a condition and the first one after it."""
    operator = condition.rstrip("v.0123456789")
    numbers = [int(part) for part in condition[len(operator) :].removeprefix("v").split(".")]
    exact, beyond = _pad(numbers), (float("inf"),)
    just_after = (*exact, 0)  # no version has five numbers
    if operator == "^":  # a first number that is not zero promises that nothing breaks while it stays
        kept = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
        yield exact, _pad([*numbers[:kept], numbers[kept] + 1])
    elif operator == "~":
        kept = min(1, len(numbers) - 1)
        yield exact, _pad([*numbers[:kept], numbers[kept] + 1])
    elif operator.startswith(">"):
        yield (exact if operator == ">=" else just_after), beyond
    else:
        yield (), (exact if operator == "<" else just_after)


def _pad(numbers: list[int]) -> tuple[int, ...]:
    return (*numbers, *[0] * (_MAX_NUMBERS - len(numbers)))


def has_numbers(version: str) -> bool:
    """Return whether a version ends in numbers, so that a later one can be recognized."""
    return _split_numbers(version) is not None


def find_later_version(version: str, others: Iterable[str]) -> str:
    """Return the latest of ``others`` that is written like ``version`` and comes after it; ``""`` when there is none.

    Two versions are written alike when an equal string precedes equally many numbers. So neither a pre-release nor
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

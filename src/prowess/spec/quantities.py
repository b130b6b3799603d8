"""A number with its noun or unit, as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_KILO, _MEGA = 1_000, 1_000_000


def format_count(number: int, noun: str, several: str = "") -> str:
    """``1 file``, ``2 files``; ``several`` for nouns that do not just take an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def join_first(texts: Sequence[str], most: int) -> str:
    """The first texts with commas between them, at most ``most``, and how many more there are."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def format_size(size: int) -> str:
    """``812 bytes``, ``3.1 kB``, ``1.2 MB``."""
    if size < _KILO:
        return format_count(size, "byte")
    if size < _MEGA:
        return f"{size / _KILO:.1f} kB"
    return f"{size / _MEGA:,.1f} MB"

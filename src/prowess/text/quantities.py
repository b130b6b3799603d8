"""Numbers with their nouns and units in messages for people: ``2 files``, ``3.1 kB``, ``a, b and 4 more``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_KILO, _MEGA = 1_000, 1_000_000


def format_count(number: int, noun: str, several: str = "") -> str:
    """Return ``1 file`` or ``2 files``; ``several`` is the plural of a noun that does not just take an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def join_first(strings: Sequence[str], limit: int) -> str:
    """Return the first ``limit`` strings with commas between them, and how many more there are."""
    more = f" and {len(strings) - limit:,} more" if len(strings) > limit else ""
    return ", ".join(strings[:limit]) + more


def format_size(size: int) -> str:
    """Return a number of bytes as ``812 bytes``, ``3.1 kB`` or ``1.2 MB``."""
    if size < _KILO:
        return format_count(size, "byte")
    return f"{size / _KILO:.1f} kB" if size < _MEGA else f"{size / _MEGA:,.1f} MB"

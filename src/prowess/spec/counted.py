"""A number with its noun, as people write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def counted(number: int, noun: str, several: str = "") -> str:
    """``1 file``, ``2 files``; ``several`` for nouns that do not just take an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"


def join_some(texts: Sequence[str], most: int) -> str:
    """The first texts with commas between them, at most ``most``, and how many more there are."""
    more = f" and {len(texts) - most:,} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more

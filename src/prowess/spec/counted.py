"""A number with its noun, as people write it."""

from __future__ import annotations


def counted(number: int, noun: str, several: str = "") -> str:
    """``1 file``, ``2 files``; ``several`` for nouns that do not just take an s."""
    return f"{number:,} {noun if number == 1 else several or f'{noun}s'}"

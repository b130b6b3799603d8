"""Names that are spelled like another one, for messages that say what may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_COMPARED_CHARS = 128
_MAX_SUGGESTIONS = 3
_SUGGESTION_CUTOFF = 0.72  # below it suggestions are more often wrong than right: csv-report, folder-report
_MAX_COMPARED_NAMES = 2_000  # spelling distance costs about 20 µs a name


def sort_by_similarity(name: str, names: list[str]) -> list[str]:
    """Return all names: those that are spelled like ``name`` first, then the others in their order."""
    close = find_close_names(name, names)
    return close + [known for known in names if known not in close]


def find_close_names(name: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return the names that are spelled like ``name``, the nearest first.

    ``cutoff`` says how alike they must be, from 0 to 1. Case and Unicode form are ignored: names that differ from
    ``name`` in nothing else come first.
    """
    from difflib import get_close_matches

    wanted = fold_name(name[:MAX_COMPARED_CHARS])  # a model may ask for a name of any length
    folded: dict[str, list[str]] = {}
    for known in names:
        folded.setdefault(fold_name(known), []).append(known)
    keys = list(folded)
    # Among very many names only those with the first two letters are compared, so that an error comes at once.
    likely = [key for key in keys if key[:2] == wanted[:2]] if len(keys) > _MAX_COMPARED_NAMES else keys
    close = get_close_matches(wanted, likely[:_MAX_COMPARED_NAMES], n=3, cutoff=cutoff)
    return [known for key in dict.fromkeys((wanted, *close)) for known in folded.get(key, ())]


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean a or b?`` with the names that are spelled like ``name``; ``""`` when there are none."""
    close = find_close_names(name, names, _SUGGESTION_CUTOFF)[:_MAX_SUGGESTIONS]
    return f"did you mean {' or '.join(close)}?" if close else ""


def fold_name(name: str) -> str:
    """Return the name without the differences that people overlook: case, and the Unicode form of its characters."""
    from unicodedata import normalize

    # Twice, because folding the case can undo the normal form.
    return normalize("NFKC", normalize("NFKC", name).casefold())

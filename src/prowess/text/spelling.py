"""Names that are spelled or look alike: what may be meant, and which names are easily mistaken for each other."""

from __future__ import annotations

import re
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


_LOOKALIKE_CHARACTERS = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_SEPARATORS = re.compile(r"[-_. ]+")
_MIN_MISTYPED_LENGTH = 4  # shorter names are all within an edit or two of each other


def name_skeleton(name: str) -> str:
    """Return what a reader in a hurry sees of a name: no case, no separators, similar characters made one."""
    text = fold_name(name).translate(_LOOKALIKE_CHARACTERS)
    for pair, letter in _LOOKALIKE_PAIRS:
        text = text.replace(pair, letter)
    return "".join(filter(str.isalnum, text))


def lookup_forms(name: str) -> tuple[str, ...]:
    """Return keys for an index of names: two different names are easily mistaken if they share at least one key.

    With such an index only a few names are compared, so the time grows with the number of names and not of pairs
    (tests/install/test_scale.py counts the calls).
    """
    # The zero byte keeps a skeleton apart from a name that is written so.
    return f"\0{name_skeleton(name)}", *_slip_forms(name)


def mistyping_forms(name: str) -> tuple[str, ...]:
    """Return keys by which two names are alike if one may be a mistyping of the other.

    Of a short name only the case and the separators may differ.
    """
    forms = _slip_forms(name)
    return forms[:1] if len(forms[0]) < _MIN_MISTYPED_LENGTH else forms


def _slip_forms(name: str) -> tuple[str, ...]:
    """Return the name without case and separators, and this without each of its characters.

    So two names share one that differ in one character, in two swapped neighbours, or in a separator and a character.
    """
    bare = _SEPARATORS.sub("", fold_name(name))
    return tuple(dict.fromkeys((bare, *(bare[:index] + bare[index + 1 :] for index in range(len(bare))))))

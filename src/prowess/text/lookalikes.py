"""Names that are easily mistaken for one another, by the eye or by the fingers.

A stranger may choose a name that a reader takes for a known one, so what is installed is compared by its look and by
slips of the fingers (``lookup_forms``). An author who has two similar names means no harm, so ``prowess check``
compares only by slips of the fingers, and leaves short names alone (``mistyping_forms``).
"""

from __future__ import annotations

import re

from prowess.text.spelling import fold_name

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
    """The name without case and separators, and this without each of its characters.

    So two names share one that differ in one character, in two swapped neighbours, or in a separator and a character.
    """
    bare = _SEPARATORS.sub("", fold_name(name))
    return tuple(dict.fromkeys((bare, *(bare[:index] + bare[index + 1 :] for index in range(len(bare))))))

"""Names that are easily mistaken for one another: within one edit, or alike to a reader in a hurry."""

from __future__ import annotations

import unicodedata

_LOOKALIKE_CHARACTERS = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def is_lookalike(one: str, other: str) -> bool:
    """Return whether two different names are within one edit of each other, or have one skeleton."""
    return one != other and (_is_within_one_edit(one, other) or name_skeleton(one) == name_skeleton(other))


def name_skeleton(name: str) -> str:
    """Return what a reader in a hurry sees of a name: no case, no separators, similar characters made one."""
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKE_CHARACTERS)
    for pair, letter in _LOOKALIKE_PAIRS:
        text = text.replace(pair, letter)
    return "".join(char for char in text if char.isalnum())


def lookup_forms(name: str) -> tuple[str, ...]:
    """Return keys for an index of names: two lookalikes share at least one key, though not all that share one are.

    With such an index only a few names are compared, so the time grows with the number of names and not of pairs
    (tests/install/test_scale.py counts the calls). The keys are the name, its skeleton, and the name without each of
    its characters, since names within one edit are alike once the character at the edit is left out.
    """
    # A skeleton holds only letters and digits: the zero byte keeps it apart from a name that is written so.
    shorter = (name[:index] + name[index + 1 :] for index in range(len(name)))
    return tuple(dict.fromkeys((name, f"\0{name_skeleton(name)}", *shorter)))


def _is_within_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest = short[start:] if len(short) < len(long) else short[start + 1 :]
    return rest == long[start + 1 :]

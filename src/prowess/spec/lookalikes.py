"""Names that are easily mistaken for one another: within one edit, or alike to a reader in a hurry."""

from __future__ import annotations

from prowess.errors import fold_name

_LOOKALIKE_CHARACTERS = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def name_skeleton(name: str) -> str:
    """Return what a reader in a hurry sees of a name: no case, no separators, similar characters made one."""
    text = fold_name(name).translate(_LOOKALIKE_CHARACTERS)
    for pair, letter in _LOOKALIKE_PAIRS:
        text = text.replace(pair, letter)
    return "".join(filter(str.isalnum, text))


def lookup_forms(name: str) -> tuple[str, ...]:
    """Return keys for an index of names: two different names are easily mistaken if they share at least one key.

    With such an index only a few names are compared, so the time grows with the number of names and not of pairs
    (tests/install/test_scale.py counts the calls). The keys are the skeleton, the name without case and separators,
    and the latter without each of its characters. So names are found that differ in one character, in two swapped
    neighbours, or in a hyphen and one character.
    """
    bare = "".join(filter(str.isalnum, fold_name(name)))
    shorter = (bare[:index] + bare[index + 1 :] for index in range(len(bare)))
    # The zero byte keeps a skeleton apart from a name that is written so.
    return tuple(dict.fromkeys((f"\0{name_skeleton(name)}", bare, *shorter)))

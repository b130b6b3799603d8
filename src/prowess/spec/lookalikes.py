"""Names that are easily mistaken for one another: by a reader in a hurry, or by a person who types them.

The two questions have answers of their own. A stranger who publishes a skill may choose a name that looks like a known
one (``is_lookalike``). An author who has ``clock`` and ``dock`` did nothing wrong, but should hear of ``trial`` beside
``trail`` (``mistyping_forms``).
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOOKALIKE_CHARACTERS = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))
_SEPARATORS = re.compile(r"[-_. ]+")
_MIN_MISTYPED_LENGTH = 4  # shorter names are all within an edit or two of each other


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
    return tuple(dict.fromkeys((name, f"\0{name_skeleton(name)}", *_shorten(name))))


def mistyping_forms(name: str) -> tuple[str, ...]:
    """Return what a name may become when it is mistyped: two names that share a form differ in a slip of the fingers.

    Such a slip is another case or separator, and besides these one letter that is missing, added, replaced or moved.
    Of a short name only the case and the separators count.
    """
    bare = _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())
    return (bare,) if len(bare) < _MIN_MISTYPED_LENGTH else tuple(dict.fromkeys((bare, *_shorten(bare))))


def _shorten(name: str) -> Iterator[str]:
    """Yield the name without its first character, without its second one, and so on."""
    return (name[:index] + name[index + 1 :] for index in range(len(name)))


def _is_within_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest = short[start:] if len(short) < len(long) else short[start + 1 :]
    return rest == long[start + 1 :]

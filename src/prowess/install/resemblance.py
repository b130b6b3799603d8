"""Names that are easily mistaken for one another."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from prowess.errors import Issue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

VENDORS = ("anthropic", "claude", "cloudflare", "github", "google", "huggingface", "microsoft", "openai", "vercel")
"""Words that a name may only begin with when they are its owner's."""

_LOOKS_LIKE = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def resembles(one: str, other: str) -> bool:
    """Whether two different names are within one edit of each other, or look alike."""
    if one == other:
        return False
    return _within_one_edit(one, other) or skeleton(one) == skeleton(other)


def skeleton(name: str) -> str:
    """What a reader in a hurry sees of a name."""
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKS_LIKE)
    for pair, letter in _PAIRS:
        text = text.replace(pair, letter)
    return "".join(char for char in text if char.isalnum())


def _within_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest = short[start:] if len(short) < len(long) else short[start + 1 :]
    return rest == long[start + 1 :]


def near_names(names: Iterable[str], owner: str, known: Iterable[str]) -> Iterator[Issue]:
    """A warning for each name that resembles a known one, or that borrows a vendor's."""
    others = sorted(set(known))
    for name in names:
        for other in others:
            if resembles(name, other):
                yield Issue("near-name", "name", f"{name!a} is easily mistaken for {other!a}", severity="warning")
        vendor = next((word for word in VENDORS if name.startswith(f"{word}-")), "")
        if vendor and not owner.lower().startswith(vendor):
            message = f"{name!a} begins like something of {vendor}'s and comes from {owner!a}"
            yield Issue("near-name", "name", message, severity="warning")

"""Names that are easily mistaken for one another."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from prowess.errors import Issue

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

VENDORS = ("anthropic", "claude", "cloudflare", "github", "google", "huggingface", "microsoft", "openai", "vercel")
"""Words that a name may only begin with when they are its owner's."""

_MAX_SHOWN = 5
_LOOKALIKE_CHARACTERS = str.maketrans(
    "0157|аеорсухіјѕԁɡηνω",
    "olstlaeopcyxijsdgnvw",
)
_LOOKALIKE_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def is_lookalike(one: str, other: str) -> bool:
    """Whether two different names are within one edit of each other, or look alike."""
    if one == other:
        return False
    return _is_within_one_edit(one, other) or name_skeleton(one) == name_skeleton(other)


def name_skeleton(name: str) -> str:
    """What a reader in a hurry sees of a name."""
    text = unicodedata.normalize("NFKC", name).casefold().translate(_LOOKALIKE_CHARACTERS)
    for pair, letter in _LOOKALIKE_PAIRS:
        text = text.replace(pair, letter)
    return "".join(char for char in text if char.isalnum())


def _is_within_one_edit(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    if len(long) - len(short) > 1:
        return False
    start = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    rest = short[start:] if len(short) < len(long) else short[start + 1 :]
    return rest == long[start + 1 :]


def find_lookalike_issues(names: Iterable[str], owner: str, known: Iterable[str]) -> Iterator[Issue]:
    """One warning for all names that resemble known ones, and one for all that borrow a vendor's; none for none."""
    arriving = list(dict.fromkeys(names))
    found = _find_lookalikes(arriving, known)
    alike = [f"{name!a} is easily mistaken for {' and '.join(map(ascii, found[name]))}" for name in sorted(found)]
    borrowed = [
        f"{name!a} begins like something of {vendor}'s and comes from {owner!a}"
        for name in arriving
        for vendor in VENDORS
        if name.startswith(f"{vendor}-") and not owner.lower().startswith(vendor)
    ]
    for pairs in (alike, borrowed):
        if pairs:
            more = f"; and {len(pairs) - _MAX_SHOWN} more" if len(pairs) > _MAX_SHOWN else ""
            yield Issue("near-name", "name", "; ".join(pairs[:_MAX_SHOWN]) + more, severity="warning")


def _find_lookalikes(names: Sequence[str], known: Iterable[str]) -> dict[str, list[str]]:
    """The names that resemble known ones, each with those; ``org/a`` and ``org/b`` are left out where ``a`` has ``b``.

    Names within one edit share a form: themselves, or themselves without one character. So only names that share one
    are compared, and the time grows with the number of names and not with that of the pairs.
    """
    by_form: dict[str, list[str]] = {}
    for name in names:
        for form in _lookup_forms(name):
            by_form.setdefault(form, []).append(name)
    pairs = {
        (name, other)
        for other in known
        for form in _lookup_forms(other)
        for name in by_form.get(form, ())
        if is_lookalike(name, other)
    }
    alike: dict[str, list[str]] = {}
    for name, other in sorted(pairs):
        (_, slash, last), (_, _, other_last) = name.rpartition("/"), other.rpartition("/")
        if not slash or (last, other_last) not in pairs:
            alike.setdefault(name, []).append(other)
    return alike


def _lookup_forms(name: str) -> set[str]:
    """What a name shares with those that resemble it: itself, itself without each character, its skeleton."""
    # A skeleton holds letters and digits alone: the mark keeps it apart from names that are written so.
    return {name, *(name[:at] + name[at + 1 :] for at in range(len(name))), f"\0{name_skeleton(name)}"}

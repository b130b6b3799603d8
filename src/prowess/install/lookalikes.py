"""Warnings about arriving skills whose names are easily mistaken for known ones, or borrow a vendor's name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.text.spelling import lookup_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

VENDORS = ("anthropic", "claude", "cloudflare", "github", "google", "huggingface", "microsoft", "openai", "vercel")
"""Words that a name may only begin with when the skill comes from that vendor."""

_MAX_SHOWN = 5
_NUMBER = re.compile("[0-9]+")


def find_lookalike_issues(names: Iterable[str], owner: str, known: Iterable[str]) -> Iterator[Issue]:
    """Yield one warning for all names that resemble known ones, and one for all that borrow a vendor's name."""
    arriving = list(dict.fromkeys(names))
    lookalikes = _find_lookalikes(arriving, known)
    alike = [
        f"{name!a} is easily mistaken for {' and '.join(map(ascii, lookalikes[name]))}" for name in sorted(lookalikes)
    ]
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
    """Return the names that resemble known ones, each with those known names; ``step-2`` does not resemble ``step-1``.

    ``org/a`` is left out beside ``org/b`` when ``a`` and ``b`` are reported already.
    """
    by_form: dict[str, list[str]] = {}
    for name in names:
        for form in lookup_forms(name):
            by_form.setdefault(form, []).append(name)
    pairs = {
        (name, other)
        for other in known
        for form in lookup_forms(other)
        for name in by_form.get(form, ())
        if name != other and not _is_series(name, other)
    }
    alike: dict[str, list[str]] = {}
    for name, other in sorted(pairs):
        (_, slash, last), (_, _, other_last) = name.rpartition("/"), other.rpartition("/")
        if not slash or (last, other_last) not in pairs:
            alike.setdefault(name, []).append(other)
    return alike


def _is_series(name: str, other: str) -> bool:
    """True for two skills whose names differ in numbers alone, such as ``step-1`` and ``step-2``."""
    last, other_last = name.rpartition("/")[2], other.rpartition("/")[2]
    return last != other_last and _NUMBER.sub("0", last) == _NUMBER.sub("0", other_last)

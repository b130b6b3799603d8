"""The skills that a conversation has been shown: kept in their order, and only ever appended to.

The prompt of a conversation is cached by providers as long as its beginning does not change. So a request adds skills
at the end of the list, and takes none away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from prowess.patterns import compile_pattern
from prowess.select.budget import find_largest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.select.candidates import Candidates

    CountNames = Callable[[Sequence[str]], int]

_FIRST_SHARE = 0.75
"""The share of the budget that the first request may fill. The rest is for what later requests need."""
_REFILL_SHARE = 0.5
"""While less than this share is filled, a later request may fill as much as the first one."""
LATER_SKILLS = 5
"""How many of its best skills a later request shows."""
_MAX_NAMED = 8
"""How many of the names in a request count: a pasted document may hold many words that are names."""
_BRIEF_CHARS, _BRIEF_WORDS = 16, 3
# Possessive (++), and a name begins only where no other one goes on: a request may be a pasted file of any length.
_NAME = r"\w++(?:[-.:]\w++)*+"
_WORD, _ASCII_WORD = compile_pattern(_NAME), compile_pattern(_NAME, re.ASCII)
_OPENING, _CLOSING = "[\"'`\u201c\u2018]", "[\"'`\u201d\u2019]"
_MARKED = compile_pattern(
    rf"(?<!\S)[/$]({_NAME})|{_OPENING}({_NAME}){_CLOSING}|\bskill\s++({_NAME})"
    rf"|(?<!\w)(?<!\w[-.:])({_NAME})(?=\s++skill\b)",
    re.IGNORECASE,
)
"""A name after ``/`` or ``$``, in quotes, or beside the word "skill"."""

NO_ROOM = "no room in the budget"


class ShownReason(NamedTuple):
    """Why a skill is shown; for one that was chosen also its rank and the request, from which the words can be told."""

    text: str
    rank: int = 0
    query: str = ""


NAMED = ShownReason("named in the request")
WHOLE = ShownReason("shown while everything fitted")


class ShownList(NamedTuple):
    """The names of the skills that a conversation has been shown, in their order, each with the reason."""

    names: tuple[str, ...] = ()
    reasons: Mapping[str, ShownReason] = {}  # never changed: a longer list gets another mapping

    def keep(self, names: tuple[str, ...]) -> ShownList:
        """Return a list of these names alone."""
        return ShownList(names, {name: self.reasons[name] for name in names})

    def append(self, reasons: Mapping[str, ShownReason]) -> ShownList:
        """Return the list with those names of ``reasons`` at its end that it does not have; itself where it has all."""
        new = {name: reason for name, reason in reasons.items() if name not in self.reasons}
        return ShownList((*self.names, *new), {**self.reasons, **new}) if new else self


class ListingRequest(NamedTuple):
    """What a request asks to be shown, by names."""

    ranking: Sequence[str] = ()
    """The skills that fit it, the best first."""
    named: Sequence[str] = ()
    """The skills whose names stand in it."""
    required: Mapping[str, ShownReason] = {}  # never changed
    """The skills that are shown whatever the request is."""
    query: str = ""
    """Its text, where the words of it were ranked."""
    is_brief: bool = False
    """Whether it says little, such as a greeting: it then adds its best few skills only."""


def extend_shown(
    shown: ShownList, request: ListingRequest, count: CountNames, budget: int
) -> tuple[ShownList, tuple[str, ...]]:
    """Return the list with what a request adds to it, and the names of its best skills that found no room.

    ``count`` returns the tokens of a listing of some names. Named and required skills are added in any case. Of the
    ranking, the first request adds as much as fits three quarters of the budget. A later one adds those of its best
    few that are not there yet, while the budget lasts, and as much as the first one while half of the budget is free.
    """
    how = "chosen for the first request" if not shown.names else "appended for a later request"
    shown = shown.append(dict.fromkeys(request.named, NAMED)).append(request.required)
    new = {
        name: ShownReason(how, rank, request.query)
        for rank, name in enumerate(request.ranking, 1)
        if name not in shown.reasons
    }
    if new and not request.is_brief and has_room(shown, count, budget):
        shown = _append_fitting(shown, new, count, first_part(budget))
    best = {name: new[name] for name in request.ranking[:LATER_SKILLS] if name not in shown.reasons}
    shown = _append_fitting(shown, best, count, budget)
    return shown, tuple(name for name in best if name not in shown.reasons)


def cut_whole(shown: ShownList, count: CountNames, budget: int) -> ShownList:
    """Return the list without skills that were shown only while everything fitted, as far as they do not fit now.

    A filter was lifted since then, or the library has grown.
    """
    whole = [name for name in shown.names if shown.reasons[name] == WHOLE]
    if not whole or count(shown.names) <= budget:
        return shown

    def keep(number: int) -> tuple[str, ...]:
        gone = frozenset(whole[number:])
        return tuple(name for name in shown.names if name not in gone)

    return shown.keep(keep(find_largest(len(whole), lambda number: count(keep(number)), budget)))


def has_room(shown: ShownList, count: CountNames, budget: int) -> bool:
    """Return whether a request may add more than its best few skills: nothing, or little, was shown before."""
    return not shown.names or count(shown.names) < _REFILL_SHARE * budget


def first_part(budget: int) -> int:
    """Return the part of a budget that one request may fill; the rest is for those that come later."""
    return int(_FIRST_SHARE * budget)


def _append_fitting(shown: ShownList, new: Mapping[str, ShownReason], count: CountNames, budget: int) -> ShownList:
    """Return the list with as many of ``new`` as fit, from its beginning."""
    names = tuple(new)
    if not names:
        return shown
    # Only the new entries are counted, beside one other, so that the frame of a listing is not counted twice.
    beside = shown.names[:1]
    before = count(shown.names) - count(beside) if beside else 0
    number = find_largest(len(names), lambda number: before + count((*beside, *names[:number])), budget)
    # The tokens of two texts together are nearly their sum, so that this seldom takes more than one step.
    while number and count((*shown.names, *names[:number])) > budget:
        number -= 1
    return shown.append({name: new[name] for name in names[:number]})


def is_brief_request(query: str) -> bool:
    """Return whether a request is of one or two short words, such as a greeting, and says little about the task."""
    return len(query) < _BRIEF_CHARS and len(_WORD.findall(query)) < _BRIEF_WORDS


def find_named_skills(query: str, candidates: Candidates) -> tuple[str, ...]:
    """Return the candidates whose names stand in a request.

    A name of several words, such as ``pdf-forms``, counts wherever it stands. A name of one word may be any word, so it
    counts as a call, ``/pdf``, in quotes, or beside the word "skill".
    """
    known = candidates.by_name
    words = _WORD.findall(query) if query.isascii() else (*_WORD.findall(query), *_ASCII_WORD.findall(query))
    marked = (match[match.lastindex or 0] for match in _MARKED.finditer(query))
    possible_names = (*marked, *(word for word in words if not word.isalnum()))
    # The name in a file may have a colon where the catalogue has a hyphen, and both are names of the skill.
    spellings = (spelling for name in possible_names for spelling in (name, name.replace(":", "-")))
    return tuple(dict.fromkeys(name for name in spellings if name in known))[:_MAX_NAMED]

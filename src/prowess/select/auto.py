"""The default selector: everything while it fits a budget, then what fits the requests of the conversation best.

What a conversation has been shown is kept in its order, and only ever appended to: providers cache its prompt as long
as the beginning does not change. So a request adds skills at the end of the list, and takes none away.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.arguments import check_count
from prowess.errors import SourceError
from prowess.select.budget import SMALL_ENTRY, find_largest, part_sizes
from prowess.select.selectors import (
    CandidateCache,
    LexicalSelector,
    SelectorChain,
    TurnSelector,
    check_base,
    is_asynchronous,
    rank_names,
)
from prowess.skills.render import make_entries, render_lines
from prowess.text.patterns import compile_pattern
from prowess.text.tokens import estimate_tokens
from prowess.thread_work import run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from prowess.select.selectors import Candidates, Selector
    from prowess.skills.skill import Skill

    CountNames = Callable[[Sequence[str]], int]
    Measure = Callable[[Sequence[Skill]], int]

DEFAULT_BUDGET = 4_000
"""The tokens of a listing unless the host says otherwise: about sixty skills, from which models still choose well."""
_WINDOW_SHARE = 0.02
"""The share of a model's context window that a listing takes."""
_MAX_KEPT_QUERY = 2_000
"""The characters of the longest request that is remembered."""
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


# -- what a conversation was shown -------------------------------------------------------------------------------------


class ShownReason(NamedTuple):
    """Why a skill is shown; for one that was chosen also its rank and the request, which shows the words."""

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
    """The skills whose names occur in it."""
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
        shown = _append_fitting(shown, new, count, int(_FIRST_SHARE * budget))
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


def _append_fitting(shown: ShownList, new: Mapping[str, ShownReason], count: CountNames, budget: int) -> ShownList:
    """Return the list with as many of ``new`` as fit, from its beginning."""
    names = tuple(new)
    if not names:
        return shown
    # Only the new entries are counted, beside one other, so that the frame of a listing is not counted twice.
    beside = shown.names[:1]
    before = count(shown.names) - count(beside) if beside else 0
    number = find_largest(len(names), lambda number: before + count((*beside, *names[:number])), budget)
    # The tokens of two strings together are nearly their sum, so that this seldom takes more than one step.
    while number and count((*shown.names, *names[:number])) > budget:
        number -= 1
    return shown.append({name: new[name] for name in names[:number]})


def is_brief_request(query: str) -> bool:
    """Return whether a request is of one or two short words, such as a greeting, and says little about the task."""
    return len(query) < _BRIEF_CHARS and len(_WORD.findall(query)) < _BRIEF_WORDS


def find_named_skills(query: str, candidates: Candidates) -> tuple[str, ...]:
    """Return the candidates whose names occur in a request.

    A name of several words, such as ``pdf-forms``, counts wherever it occurs. A name of one word may be any word, so it
    counts as a call, ``/pdf``, in quotes, or beside the word "skill".
    """
    known = candidates.by_name
    words = _WORD.findall(query) if query.isascii() else (*_WORD.findall(query), *_ASCII_WORD.findall(query))
    marked = (match[match.lastindex or 0] for match in _MARKED.finditer(query))
    possible_names = (*marked, *(word for word in words if not word.isalnum()))
    # The name in a file may have a colon where the catalogue has a hyphen, and both are names of the skill.
    spellings = (spelling for name in possible_names for spelling in (name, name.replace(":", "-")))
    return tuple(dict.fromkeys(name for name in spellings if name in known))[:_MAX_NAMED]


# -- one request -------------------------------------------------------------------------------------------------------


def measure_lines(skills: Sequence[Skill]) -> int:
    """Return the tokens of a listing of skills as lines of text, by our estimate."""
    return estimate_tokens(render_lines(make_entries(skills, has_location=False)))


class ListingChoice(NamedTuple):
    """Which skills are listed, and why."""

    names: tuple[str, ...] | None = None
    """The names in the order of the listing; ``None``: every skill that may be shown, by name."""
    how: Literal["all", "picked", "chosen"] = "all"
    """``all``: nothing is left out, unless the budget shortens the listing. ``picked``: a selector without a budget
    picked the skills. ``chosen``: an ``AutoSelector`` chose them, within the budget."""
    budget: int | None = None
    """The tokens that an ``AutoSelector`` leaves for the listing; ``None``: no such selector decides."""
    reasons: Mapping[str, ShownReason] = {}  # never changed
    """Why skills are shown, by name, as far as the conversation decides that."""
    no_room: tuple[str, ...] = ()
    """The skills that were among the best for the request and found no room."""


@dataclass(slots=True)
class ListingTurn:
    """One request of a conversation, or a look at it without one."""

    measure: Measure = measure_lines
    """Returns the tokens of a listing of some skills."""
    shown: Mapping[tuple[str, int], ShownList] = field(default_factory=dict)
    """What the conversation has been shown, by place and budget."""
    required: Mapping[str, ShownReason] = field(default_factory=dict)
    """The skills that are shown whatever the request is, by name, each with the reason."""
    place: str = ""
    """The name of the listing: listings of two places are chosen apart from each other."""
    budget: int | None = None
    """The tokens of the place; ``None``: those of the selector."""
    whole: tuple[int, bool] | None = None
    """How many skills there are, and whether a listing of them all fits, where that is known."""
    choice: ListingChoice | None = None
    """What was decided."""
    change: tuple[tuple[str, int], ShownList | None, ShownList] | None = None
    """What the conversation is to remember: a list by its place and budget, as it was and as it is now."""
    failures: list[Exception] = field(default_factory=list)
    """What selectors of the host raised."""

    def fits(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a listing of all candidates fits, with nothing shortened."""
        if self.whole is not None and self.whole[0] == len(candidates):
            return self.whole[1]
        return all(self.measure(candidates[:size]) <= budget for size in part_sizes(len(candidates), budget))

    def show_all(self, candidates: Candidates, budget: int, *, is_request: bool) -> tuple[Skill, ...]:
        """Return all candidates, those first that were shown before; the conversation begins with a request."""
        old, shown = self._read_lists(budget)
        self.choice = ListingChoice(budget=budget, reasons=shown.reasons)
        if not is_request and not shown.names:
            return candidates
        new = shown.append(dict.fromkeys(candidates.by_name, WHOLE))
        self._remember(budget, old, new)
        skills = _find_skills(new, candidates)
        # In the usual order they are the candidates themselves, so that all conversations share one listing.
        return candidates if skills == candidates else skills

    def show_best(self, candidates: Candidates, request: ListingRequest, budget: int) -> tuple[Skill, ...]:
        """Return what was shown before and what the request adds to it; all candidates when there is nothing of either.

        The budget shortens a listing of all.
        """
        count = self._make_counter(candidates)
        old, shown = self._read_lists(budget)
        if old is None:  # it was made for another budget: as much of it is kept as the first request may fill
            names, most = shown.names, int(_FIRST_SHARE * budget)
            begun = shown.keep(names[: find_largest(len(names), lambda number: count(names[:number]), most)])
        else:
            begun = cut_whole(shown, count, budget)
        no_room: tuple[str, ...] = ()
        if begun.names or request.ranking or request.named:
            new, no_room = extend_shown(begun, request, count, budget)
            if new.names:
                self._remember(budget, old, new)
            skills = _find_skills(new, candidates)
            if skills:
                self.choice = ListingChoice(None, "chosen", budget, new.reasons, no_room)
                return skills
        self.choice = ListingChoice(budget=budget, no_room=no_room)
        return candidates

    def has_room(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a request may add more than its best few skills to what was shown before."""
        old, _ = self._read_lists(budget)
        return old is None or has_room(old, self._make_counter(candidates), budget)

    def _make_counter(self, candidates: Candidates) -> Callable[[Sequence[str]], int]:
        """Return a function that counts the tokens of a listing of those names that are candidates."""
        known = candidates.by_name
        return lambda names: self.measure(tuple(known[name] for name in names if name in known))

    def _read_lists(self, budget: int) -> tuple[ShownList | None, ShownList]:
        """Return the list of this place and budget, and the one to go on from: the latest of the place without one."""
        own = self.shown.get((self.place, budget))
        return own, own or find_latest_shown(self.shown, self.place) or ShownList()

    def _remember(self, budget: int, old: ShownList | None, new: ShownList) -> None:
        if new is not old:
            self.change = ((self.place, budget), old, new)


def find_latest_shown(shown: Mapping[tuple[str, int], ShownList], place: str) -> ShownList | None:
    """Return the list of a place that changed last, whatever its budget; ``None`` where there is none."""
    return next((made for (other, _), made in reversed(tuple(shown.items())) if other == place), None)


def _find_skills(shown: ShownList, candidates: Candidates) -> tuple[Skill, ...]:
    """Return the skills of a list that are candidates now: filters, or another catalogue, may have removed some."""
    known = candidates.by_name
    return tuple(known[name] for name in shown.names if name in known)


# -- the selector ------------------------------------------------------------------------------------------------------


class AutoSelector(TurnSelector):
    """Shows every skill while the listing fits a budget; beyond it, those that fit the requests of a conversation best.

    The first request fills three quarters of the budget, the best skills first. Each later request appends those of its
    best skills that are not shown yet, while the budget lasts. What was shown stays, in its order, so that the prompt
    caches of providers stay warm. Active, preloaded and named skills are always shown. Without a request everything is
    listed, and shortened to the budget.

    ``budget``: tokens for the listing, 4,000 unless the host says otherwise. ``window``: the tokens of the model's
    context window: the listing takes 2 % of it. The budget of a toolset counts instead of both. ``base``: the
    selector that ranks, the best name first; without it words rank, and meaning where ``Catalog.prepare_search`` has
    prepared it. When ``base`` fails, words rank too. Raises ``SourceError`` for a ``base`` that filters.
    """

    strict = False
    ordered = True

    def __init__(self, budget: int | None = None, window: int | None = None, base: Selector | None = None) -> None:
        check_count(budget, "budget", optional=True)
        check_count(window, "window", optional=True)
        if budget is not None and window is not None:
            raise SourceError("budget and window both say how many tokens the listing may cost: pass one of them")
        if base is not None:
            check_base(base)
        self.budget = (
            budget if budget is not None else DEFAULT_BUDGET if window is None else int(_WINDOW_SHARE * window)
        )
        self.base = base
        self.is_async = base is not None and is_asynchronous(base)
        self._plain_lists = CandidateCache()

    def __repr__(self) -> str:
        """Return the tokens of the listing, and what ranks if it is not the words."""
        return f"AutoSelector(budget={self.budget}{'' if self.base is None else f', base={self.base!r}'})"

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str] | Awaitable[list[str]]:
        """Return the names to show for ``query`` as the first request of a conversation; the session knows the others.

        Everything is returned for ``""``. The tokens are those of lines of text. To be awaited where ``base`` is.
        """

        def choose() -> list[str]:
            return [skill.name for skill in self.choose_skills(query, candidates)]

        return run_in_thread(choose) if self.is_async else choose()

    def choose_skills(self, query: str, skills: Sequence[Skill], turn: ListingTurn | None = None) -> tuple[Skill, ...]:
        """Return the skills to show in a turn of a conversation, in their order; ``turn.choice`` says more."""
        candidates, turn = self._plain_lists.get_candidates(skills), turn or ListingTurn()
        query, budget = query.strip(), self.budget if turn.budget is None else turn.budget
        if turn.fits(candidates, budget):
            return turn.show_all(candidates, budget, is_request=bool(query))
        required = {name: why for name, why in turn.required.items() if name in candidates.by_name}
        if not query and find_latest_shown(turn.shown, turn.place) is None:
            # Without a request nothing can be chosen yet, and the budget shortens a listing of everything from its end.
            everything = turn.show_all(candidates, budget, is_request=False)
            first = tuple(candidates.by_name[name] for name in required)
            return (*first, *(skill for skill in everything if skill.name not in required)) if first else everything
        request = ListingRequest(required=required)
        if query:
            brief = is_brief_request(query)
            # Ranking more skills than can be shown takes time for nothing.
            few = brief or not turn.has_room(candidates, budget)
            limit = LATER_SKILLS if few else max(LATER_SKILLS, budget // SMALL_ENTRY)
            ranking, words = self._rank_skills(query, candidates, limit, turn)
            request = ListingRequest(ranking, find_named_skills(query, candidates), required, words, brief)
        return turn.show_best(candidates, request, budget)

    def _rank_skills(self, query: str, candidates: Candidates, limit: int, turn: ListingTurn) -> tuple[list[str], str]:
        """Return the names that fit the query, the best first, and the query if its words were ranked."""
        if self.base is not None:
            try:
                return rank_names(self.base, query, candidates), ""
            except Exception as error:  # noqa: BLE001 - the host's code; the conversation goes on, and words rank
                turn.failures.append(error)
        # A whole document is not kept for as long as the conversation, only to explain a listing.
        words = query if len(query) <= _MAX_KEPT_QUERY else ""
        return [hit.name for hit in candidates.rank(query, limit)], words


def find_auto_selector(selector: Selector | None) -> AutoSelector | None:
    """Return the selector, or the first one of a chain, that chooses for a conversation, or ``None``."""
    if isinstance(selector, SelectorChain):
        return next(filter(None, map(find_auto_selector, selector.selectors)), None)
    return selector if isinstance(selector, AutoSelector) else None


SELECTOR_NAMES = ("auto", "lexical", "all")


def make_named_selector(
    name: str, dialect: str = "prowess", *, budget: int | None = None, window: int | None = None
) -> Selector | Literal["auto"] | None:
    """Return the selector of a session by its name; ``None``, for the name ``all``, shows everything.

    ``budget`` is how many tokens the listing may cost, ``window`` the context window of the model.
    """
    if name == "all":
        return None
    if name == "lexical":
        return LexicalSelector()
    # The dialects of other systems show everything, as these systems do: only the default does not count there.
    if dialect != "prowess" or (budget is None and window is None):
        return "auto"
    return AutoSelector(budget) if budget is not None else AutoSelector(window=window)

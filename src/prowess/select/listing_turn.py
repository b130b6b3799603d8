"""One request of a conversation: how much its listing may cost, what was shown before, and what is shown now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.select.budget import find_largest, fits_whole
from prowess.select.shown_list import WHOLE, ShownList, cut_whole, extend_shown, first_part, has_room
from prowess.spec.render import make_entry, render_lines
from prowess.spec.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.select.candidates import Candidates
    from prowess.select.shown_list import ListingRequest, ShownReason
    from prowess.skills.skill import Skill

    Measure = Callable[[Sequence[Skill]], int]


def measure_lines(skills: Sequence[Skill]) -> int:
    """Return the tokens of a listing of skills as lines of text, by our estimate."""
    return estimate_tokens(render_lines(map(make_entry, skills)))


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


class ShownChange(NamedTuple):
    """What a request changes in what a conversation has been shown: one list, by its place and budget."""

    key: tuple[str, int]
    old: ShownList | None
    new: ShownList


class ListingTurn:
    """One request of a conversation, or a look at it without one.

    ``measure`` returns the tokens of a listing of some skills. ``place`` is the name of the listing: listings of two
    places are chosen apart from each other. ``budget``: the tokens of the place; ``None``: those of the selector.
    ``shown``: what the conversation has been shown. ``required``: the skills that are shown whatever the request is, by
    name, each with the reason. ``whole``: how many skills there are, and whether a listing of them all fits, where that
    is known.
    """

    def __init__(
        self,
        measure: Measure = measure_lines,
        *,
        place: str = "",
        budget: int | None = None,
        shown: Mapping[tuple[str, int], ShownList] | None = None,
        required: Mapping[str, ShownReason] | None = None,
        whole: tuple[int, bool] | None = None,
    ) -> None:
        self.measure = measure
        self.place = place
        self.budget = budget
        self.required = required or {}
        self.choice: ListingChoice | None = None
        """What was decided."""
        self.change: ShownChange | None = None
        """What the conversation is to remember."""
        self.failures: list[Exception] = []
        """What selectors of the host raised."""
        self._shown = shown or {}
        self._whole = whole

    def fits(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a listing of all candidates fits, with nothing shortened."""
        if self._whole is not None and self._whole[0] == len(candidates):
            return self._whole[1]
        return fits_whole(len(candidates), lambda number: self.measure(candidates[:number]), budget)

    def has_shown(self) -> bool:
        """Return whether the conversation has been shown skills in this place."""
        return find_latest_shown(self._shown, self.place) is not None

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
        begun = _cut_list(shown, count, budget) if old is None else cut_whole(shown, count, budget)
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
        own = self._shown.get((self.place, budget))
        return own, own or find_latest_shown(self._shown, self.place) or ShownList()

    def _remember(self, budget: int, old: ShownList | None, new: ShownList) -> None:
        if new is not old:
            self.change = ShownChange((self.place, budget), old, new)


def find_latest_shown(shown: Mapping[tuple[str, int], ShownList], place: str) -> ShownList | None:
    """Return the list of a place that changed last, whatever its budget; ``None`` where there is none."""
    return next((made for (other, _), made in reversed(tuple(shown.items())) if other == place), None)


def _cut_list(shown: ShownList, count: Callable[[Sequence[str]], int], budget: int) -> ShownList:
    """Return the beginning of a list that was made for another budget: as much as the first request may fill."""
    number = find_largest(len(shown.names), lambda number: count(shown.names[:number]), first_part(budget))
    return shown.keep(shown.names[:number])


def _find_skills(shown: ShownList, candidates: Candidates) -> tuple[Skill, ...]:
    """Return the skills of a list that are candidates now: filters, or another catalogue, may have removed some."""
    known = candidates.by_name
    return tuple(known[name] for name in shown.names if name in known)

"""One request of a conversation: how much its listing may cost, what was shown before, and what is shown now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from prowess.select.budget import find_largest, fits_whole
from prowess.select.shown_list import WHOLE, ShownList, cut_whole, extend_shown, first_part, has_room
from prowess.spec.render import make_entry, render_lines
from prowess.spec.tokens import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from prowess.select.candidates import Candidates
    from prowess.select.shown_list import ListingRequest, ShownReason
    from prowess.skills.skill import Skill


class ListingRoom(Protocol):
    """The place of a listing: what it may cost there, and how its tokens are counted."""

    @property
    def place(self) -> str:
        """The name of the place; the listings of two places are chosen apart from each other."""
        ...

    @property
    def budget(self) -> int | None:
        """The tokens of the place; ``None``: those of the selector."""
        ...

    @property
    def selects_by_default(self) -> bool:
        """Whether the default selector of a session counts here."""
        ...

    def fits(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a listing of all candidates fits the budget, with nothing shortened."""
        ...

    def count(self, skills: tuple[Skill, ...], budget: int) -> int:
        """Return the tokens that count against the budget when these skills are listed."""
        ...


class LineRoom:
    """The room of ``Session.index``: lines of text, counted by our estimate."""

    place = ""
    budget = None
    selects_by_default = True

    def fits(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a listing of all candidates fits the budget."""
        return fits_whole(len(candidates), lambda number: self.count(candidates[:number], budget), budget)

    def count(self, skills: tuple[Skill, ...], budget: int) -> int:  # noqa: ARG002 - the protocol's signature
        """Return the tokens of the lines."""
        return estimate_tokens(render_lines(map(make_entry, skills)))


class ShownLists(Protocol):
    """What a conversation remembers of its listings, for each place and budget."""

    def read_shown(self, place: str, budget: int) -> ShownList | None:
        """Return the list of a place and a budget; ``None`` where there is none."""
        ...

    def read_latest_shown(self, place: str) -> ShownList | None:
        """Return the list of a place that changed last, whatever its budget; ``None`` where there is none."""
        ...

    def replace_shown(self, place: str, budget: int, old: ShownList | None, new: ShownList) -> bool:
        """Put ``new`` in the place of ``old``; return ``False``, and change nothing, when another stands there."""
        ...


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


class ListingTurn:
    """One request of a conversation, or a look at it without one; ``choice`` is what was decided.

    ``lists`` is what the conversation remembers; without it nothing was shown before. ``required`` returns the skills
    that are shown whatever the request is, by name, each with the reason.
    """

    def __init__(
        self,
        room: ListingRoom,
        lists: ShownLists | None = None,
        required: Callable[[], Mapping[str, ShownReason]] = dict,
    ) -> None:
        self.room = room
        self.find_required = required
        self.choice: ListingChoice | None = None
        self._lists = lists

    def has_shown(self) -> bool:
        """Return whether the conversation has been shown skills in this place."""
        return self._lists is not None and self._lists.read_latest_shown(self.room.place) is not None

    def show_all(self, candidates: Candidates, budget: int, *, is_request: bool) -> tuple[Skill, ...]:
        """Return all candidates, those first that were shown before; the conversation begins with a request."""
        old, shown = self._read_lists(budget)
        self.choice = ListingChoice(budget=budget, reasons=shown.reasons)
        if not is_request and not shown.names:
            return candidates
        new = shown.append(dict.fromkeys(candidates.by_name, WHOLE))
        if new is not old:
            # When another request was faster, its list stays: the next request appends what is missing there.
            self._replace_list(budget, old, new)
        skills = _find_skills(new, candidates)
        # In the usual order they are the candidates themselves, so that all conversations share one listing.
        return candidates if skills == candidates else skills

    def show_best(self, candidates: Candidates, request: ListingRequest, budget: int) -> tuple[Skill, ...]:
        """Return what was shown before and what the request adds to it; all candidates when there is nothing of either.

        The budget shortens a listing of all.
        """
        count = self._make_counter(candidates, budget)
        no_room: tuple[str, ...] = ()
        while True:
            old, shown = self._read_lists(budget)
            begun = _cut_list(shown, count, budget) if old is None else cut_whole(shown, count, budget)
            if not (begun.names or request.ranking or request.named):
                break
            new, no_room = extend_shown(begun, request, count, budget)
            # Another request of the conversation may have been faster: this one then comes after it.
            if new is not old and new.names and not self._replace_list(budget, old, new):
                continue
            skills = _find_skills(new, candidates)
            if not skills:
                break
            self.choice = ListingChoice(None, "chosen", budget, new.reasons, no_room)
            return skills
        self.choice = ListingChoice(budget=budget, no_room=no_room)
        return candidates

    def has_room(self, candidates: Candidates, budget: int) -> bool:
        """Return whether a request may add more than its best few skills to what was shown before."""
        old, _ = self._read_lists(budget)
        return old is None or has_room(old, self._make_counter(candidates, budget), budget)

    def _make_counter(self, candidates: Candidates, budget: int) -> Callable[[Sequence[str]], int]:
        """Return a function that counts the tokens of a listing of those names that are candidates."""
        known = candidates.by_name
        return lambda names: self.room.count(tuple(known[name] for name in names if name in known), budget)

    def _read_lists(self, budget: int) -> tuple[ShownList | None, ShownList]:
        """Return the list of this place and budget, and the one to go on from: the latest of the place without one."""
        if self._lists is None:
            return None, ShownList()
        own = self._lists.read_shown(self.room.place, budget)
        return own, own or self._lists.read_latest_shown(self.room.place) or ShownList()

    def _replace_list(self, budget: int, old: ShownList | None, new: ShownList) -> bool:
        return self._lists is None or self._lists.replace_shown(self.room.place, budget, old, new)


def _cut_list(shown: ShownList, count: Callable[[Sequence[str]], int], budget: int) -> ShownList:
    """Return the beginning of a list that was made for another budget: as much as the first request may fill."""
    number = find_largest(len(shown.names), lambda number: count(shown.names[:number]), first_part(budget))
    return shown.keep(shown.names[:number])


def _find_skills(shown: ShownList, candidates: Candidates) -> tuple[Skill, ...]:
    """Return the skills of a list that are candidates now: filters, or another catalogue, may have removed some."""
    known = candidates.by_name
    return tuple(known[name] for name in shown.names if name in known)

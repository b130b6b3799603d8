"""Why each skill of a session is in a listing, or is not: found out for one skill when somebody asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from prowess.select.shown_list import NO_ROOM, WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.conversation.session import Session
    from prowess.select.budget import BudgetReport
    from prowess.select.listing_turn import ListingChoice

_NOT_BEST = "not among the best for the request"


class ListingReasons(Mapping[str, str]):
    """The reasons by the names of all skills of the catalogue. What was shown is what the report says."""

    def __init__(
        self, session: Session, choice: ListingChoice, report: BudgetReport, allowed: tuple[str, ...] | None
    ) -> None:
        self._session = session
        self._choice = choice
        self._report = report
        self._allowed = allowed
        self._shown = frozenset(report.shown)
        self._catalog = session.catalog
        self._words: dict[str, dict[str, str]] = {}

    def __getitem__(self, name: str) -> str:
        skill = self._catalog[name]  # UnknownSkillError is a KeyError
        if skill.name in self._shown:
            return self._explain_shown(skill.name)
        hidden = self._session.explain_hidden(skill)
        if hidden or (self._allowed is not None and skill.name not in self._allowed):
            return hidden or "not among the allowed skills"
        return self._explain_left_out(skill.name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names)

    def __len__(self) -> int:
        return len(self._catalog)

    def __repr__(self) -> str:
        """Return how many skills there are, since there may be thousands of reasons."""
        return f"<the reasons for {len(self)} skills>"

    def __reduce__(self) -> tuple[type[dict[str, str]], tuple[dict[str, str]]]:
        """Return how another process gets the reasons: as a dictionary, since it has not the session."""
        return dict, (dict(self),)

    def _explain_shown(self, name: str) -> str:
        reason = self._choice.reasons.get(name)
        if reason is None or (reason == WHOLE and self._choice.how == "all"):
            why = self._explain_unchosen()
        else:
            details = (f"rank {reason.rank}" if reason.rank else "", self._find_words(reason.query).get(name, ""))
            inside = "; ".join(filter(None, details))
            why = f"{reason.text} ({inside})" if inside else reason.text
        if name in self._report.shortened:
            return f"{why}; the budget shortened its description"
        return f"{why}; the budget left out its description" if name in self._report.dropped else why

    def _find_words(self, query: str) -> dict[str, str]:
        """Return what of a request fits each skill that it brought into the listing, by name."""
        # Only now, by another search: nobody may ask, and remembering it costs more than the whole conversation.
        if query and query not in self._words:
            names = [name for name, reason in self._choice.reasons.items() if reason.query == query]
            hits = self._catalog.rank_skills(query, names, len(names))
            self._words[query] = {hit.name: hit.why for hit in hits}
        return self._words.get(query, {})

    def _explain_unchosen(self) -> str:
        """Return why a skill is shown for which no request was the reason."""
        if self._choice.how == "picked":
            return "picked by the selector"
        if self._report.omitted:
            return "no request has chosen skills, so as many are listed as fit the budget"
        return "everything is listed" if self._report.budget is None or self._report.is_cut else "everything fits"

    def _explain_left_out(self, name: str) -> str:
        if self._choice.how == "picked" and name not in (self._choice.names or ()):
            return "not picked by the selector"
        return _NOT_BEST if self._choice.how == "chosen" and name not in self._choice.no_room else NO_ROOM

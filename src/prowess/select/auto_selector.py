"""The default selector: everything while it fits a budget, then what fits the requests of the conversation best."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from prowess.arguments import check_count, check_method, check_texts
from prowess.errors import SourceError
from prowess.select.budget import SMALL_ENTRY
from prowess.select.candidates import CandidateCache
from prowess.select.listing_turn import ListingTurn
from prowess.select.selectors import SelectorChain, SkillQuery
from prowess.select.shown_list import (
    LATER_SKILLS,
    ListingRequest,
    find_named_skills,
    is_brief_request,
)
from prowess.select.steps import answer_steps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from prowess.select.candidates import Candidates
    from prowess.select.selectors import Selector
    from prowess.select.steps import Steps
    from prowess.skills.skill import Skill

DEFAULT_BUDGET = 4_000
"""The tokens of a listing unless the host says otherwise: about sixty skills, from which models still choose well."""
_WINDOW_SHARE = 0.02
"""The share of a model's context window that a listing takes."""
_MAX_KEPT_QUERY = 2_000
"""The characters of the longest request that is remembered."""


class AutoSelector:
    """Shows every skill while the listing fits a budget; beyond it, those that fit the requests of a conversation best.

    The first request fills three quarters of the budget, the best skills first. Each later request appends those of its
    best skills that are not shown yet, while the budget lasts. What was shown stays, in its order, so that the prompt
    caches of providers stay warm. Active, preloaded and named skills are always shown. Without a request everything is
    listed, and shortened to the budget.

    ``budget``: tokens for the listing, 4,000 unless the host says otherwise. ``window``: the tokens of the model's
    context window, of which the listing takes 2 %. The budget of a toolset counts instead of both. ``base``: the
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
        self.budget = _budget_of(budget, window)
        self.base = base
        self._plain_lists = CandidateCache()

    def __repr__(self) -> str:
        """Return the tokens of the listing, and what ranks if it is not the words."""
        return f"AutoSelector(budget={self.budget}{'' if self.base is None else f', base={self.base!r}'})"

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str] | Awaitable[list[str]]:
        """Return the names to show for ``query`` as the first request of a conversation; the session knows the others.

        Everything is returned for ``""``. The tokens are those of lines of text. To be awaited where ``base`` is.
        """
        return answer_steps(self._select_names(query, candidates))

    def _select_names(self, query: str, candidates: Sequence[Skill]) -> Steps[list[str]]:
        skills = yield from self.choose_skills(query, candidates)
        return [skill.name for skill in skills]

    def choose_skills(
        self, query: str, skills: Sequence[Skill], turn: ListingTurn | None = None
    ) -> Steps[tuple[Skill, ...]]:
        """Return the skills to show in a turn of a conversation, in their order; ``turn.choice`` says more."""
        candidates, turn = self._plain_lists.get_candidates(skills), turn or ListingTurn()
        query, budget = query.strip(), self.budget if turn.budget is None else turn.budget
        if turn.fits(candidates, budget):
            return turn.show_all(candidates, budget, is_request=bool(query))
        required = {name: why for name, why in turn.required.items() if name in candidates.by_name}
        if not (query or turn.has_shown()):
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
            ranking, words = yield from self._rank_skills(query, candidates, limit, turn)
            request = ListingRequest(ranking, find_named_skills(query, candidates), required, words, brief)
        return turn.show_best(candidates, request, budget)

    def _rank_skills(
        self, query: str, candidates: Candidates, limit: int, turn: ListingTurn
    ) -> Steps[tuple[list[str], str]]:
        """Return the names that fit the query, the best first, and the query if its words were ranked."""
        if self.base is not None:
            try:
                answer = self.base.select(SkillQuery(query), candidates)
                names = check_texts((yield answer) if inspect.isawaitable(answer) else answer, "what select() gives")
                return [name for name in dict.fromkeys(names) if name in candidates.by_name], ""
            except Exception as error:  # noqa: BLE001 - the host's code; the conversation goes on, and words rank
                turn.failures.append(error)
        # A whole document is not kept for as long as the conversation, only to explain a listing.
        words = query if len(query) <= _MAX_KEPT_QUERY else ""
        return [hit.name for hit in candidates.rank(query, limit)], words


def _budget_of(budget: int | None, window: int | None) -> int:
    if window is not None:
        return int(_WINDOW_SHARE * window)
    return DEFAULT_BUDGET if budget is None else budget


def check_base(base: Selector) -> None:
    """Raise ``SourceError`` unless the argument ``base`` is a selector that ranks, so no filter and no chain."""
    check_method(base, "base", "select", "pass a prowess.Selector that ranks, such as LexicalSelector(60)")
    kind = type(base).__name__
    if isinstance(base, AutoSelector):
        raise SourceError("base is a selector that ranks, not an AutoSelector; pass LexicalSelector(60)")
    if isinstance(base, SelectorChain) or getattr(base, "strict", False):
        remedy = f"pass SelectorChain({kind}(…), AutoSelector(…))"
        raise SourceError(f"base is a selector that ranks, and {kind} keeps the order of names; {remedy}")

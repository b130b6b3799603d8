"""Which skills of one moment a model is shown: decided from the moment alone; the session remembers what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.select.auto import AutoSelector, ListingChoice
from prowess.select.selectors import ask_selector

if TYPE_CHECKING:
    from prowess.conversation.moment import Moment
    from prowess.select.auto import ListingTurn
    from prowess.select.selectors import Selector


def choose(
    moment: Moment,
    query: str,
    selector: Selector | None,
    turn: ListingTurn,
) -> ListingChoice:
    """Return what to list in a place of its own, such as the prompt of a toolset."""
    check_text(query, "query")
    if selector is None:
        return ListingChoice()
    # Fast path of the bench row "prompt() and tools() again": nothing was shown yet, and nothing is asked for.
    if not query and isinstance(selector, AutoSelector) and not moment.visible_active and not turn.has_shown():
        return ListingChoice(budget=selector.budget if turn.budget is None else turn.budget)
    skills = moment.eligible()
    picked = ask_selector(selector, query, skills, turn)
    choice = turn.choice or ListingChoice(how="picked")
    return choice if picked is skills else choice._replace(names=tuple(skill.name for skill in picked))

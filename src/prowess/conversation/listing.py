"""Which skills of one moment a model is shown: decided from the moment alone; the session remembers what changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.arguments import check_text
from prowess.select.auto import AutoSelector, ListingChoice, ListingTurn, find_auto_selector, measure_lines
from prowess.select.selectors import ask_selector

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.conversation.moment import Moment
    from prowess.select.auto import Measure
    from prowess.select.selectors import Selector


def open_turn(
    moment: Moment,
    measure: Measure = measure_lines,
    *,
    place: str = "",
    budget: int | None = None,
    whole: tuple[int, bool] | None = None,
) -> ListingTurn:
    """Return the turn of a request that is made at this moment; ``ListingTurn`` says what the arguments are."""
    return ListingTurn(measure, place=place, budget=budget, shown=moment.shown, required=moment.required, whole=whole)


def choose(
    moment: Moment,
    query: str,
    selector: Selector | None,
    turn: ListingTurn,
    allowed: Iterable[str] | None = None,
) -> ListingChoice:
    """Return what to list in a place of its own, such as the prompt of a toolset; ``allowed=None``: any skill."""
    check_text(query, "query")
    if selector is None:
        return ListingChoice()
    # Fast path of the bench row "prompt() and tools() again": nothing was shown yet, and nothing is asked for.
    if not query and isinstance(selector, AutoSelector) and not moment.visible_active and not turn.has_shown():
        return ListingChoice(budget=selector.budget if turn.budget is None else turn.budget)
    skills = moment.eligible()
    if allowed is not None and find_auto_selector(selector) is not None:
        skills = skills.keep_names(allowed)
    picked = ask_selector(selector, query, skills, turn)
    choice = turn.choice or ListingChoice(how="picked")
    return choice if picked is skills else choice._replace(names=tuple(skill.name for skill in picked))


def choose_reachable(moment: Moment, query: str, selector: Selector | None, turn: ListingTurn) -> ListingChoice | None:
    """Return what every request could bring into a listing; ``None``: only the request decides that.

    An ``AutoSelector`` can bring in everything that the filters before it leave, whatever the query is.
    """
    auto = find_auto_selector(selector)
    if auto is None:
        return None
    check_text(query, "query")
    choice = ListingChoice(budget=auto.budget if turn.budget is None else turn.budget)
    if selector is auto:
        return choice
    skills, look = moment.eligible(), ListingTurn()
    left = ask_selector(selector, "", skills, look)
    turn.failures += look.failures
    return choice if len(left) == len(skills) else choice._replace(names=tuple(skill.name for skill in left))

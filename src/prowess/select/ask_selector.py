"""Asking a selector for skills: whatever it does, the answer is some of the candidates."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from prowess.arguments import check_texts
from prowess.select.auto_selector import AutoSelector
from prowess.select.candidates import Candidates
from prowess.select.listing_turn import ListingTurn
from prowess.select.selectors import SelectorChain, SkillQuery
from prowess.select.steps import await_steps, run_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.select.selectors import Selector
    from prowess.select.steps import Steps
    from prowess.skills.skill import Skill


def ask_selector(
    selector: Selector | None, query: str, candidates: Sequence[Skill], turn: ListingTurn | None = None
) -> tuple[Skill, ...]:
    """Return the candidates that ``selector`` picks; all of them when it fails and is not a filter.

    They stay in the order of the candidates, unless the selector is ``ordered``. A selector that must be awaited is
    awaited by ``run_awaitable``. ``turn`` is the turn of a conversation that an ``AutoSelector`` chooses for, and gets
    what selectors raise; without it, the request is the only one.
    """
    return run_steps(_ask_chain(selector, query, candidates, turn or ListingTurn()))


async def ask_selector_async(
    selector: Selector | None, query: str, candidates: Sequence[Skill], turn: ListingTurn
) -> tuple[Skill, ...]:
    """Return the candidates that ``selector`` picks, as ``ask_selector`` does, and await it in the caller's loop."""
    return await await_steps(_ask_chain(selector, query, candidates, turn))


def find_auto_selector(selector: Selector | None) -> AutoSelector | None:
    """Return the selector, or the first one of a chain, that chooses for a conversation; ``None`` without one."""
    if isinstance(selector, SelectorChain):
        return next(filter(None, map(find_auto_selector, selector.selectors)), None)
    return selector if isinstance(selector, AutoSelector) else None


def _ask_chain(
    selector: Selector | None, query: str, candidates: Sequence[Skill], turn: ListingTurn
) -> Steps[tuple[Skill, ...]]:
    """Ask the selectors of a chain one after the other, and return the skills that are left."""
    remaining = candidates if isinstance(candidates, Candidates) else tuple(candidates)
    if selector is None:
        return remaining
    if isinstance(selector, AutoSelector):
        return (yield from selector.choose_skills(query, remaining, turn))
    if not isinstance(selector, SelectorChain):
        return (yield from _ask_single(selector, query, remaining, turn))
    for part in selector.selectors:
        left = yield from _ask_chain(part, query, remaining, turn)
        remaining = remaining.narrow(left) if isinstance(remaining, Candidates) else left
    return remaining


def _ask_single(
    selector: Selector, query: str, candidates: tuple[Skill, ...], turn: ListingTurn
) -> Steps[tuple[Skill, ...]]:
    # A strict selector is a filter: when it fails, nothing may pass. Any other only narrows, so everything is shown.
    strict = bool(getattr(selector, "strict", False))
    if not query and not strict:
        return candidates
    try:
        answer = selector.select(SkillQuery(query), candidates)
        names = check_texts((yield answer) if inspect.isawaitable(answer) else answer, "what select() gives")
    except Exception as error:  # noqa: BLE001 - a selector is code of the host; the conversation goes on
        turn.failures.append(error)
        return () if strict else candidates
    picked = _pick_skills(names, candidates, ordered=bool(getattr(selector, "ordered", False)))
    return picked if picked or strict else candidates


def _pick_skills(names: Sequence[str], candidates: tuple[Skill, ...], *, ordered: bool) -> tuple[Skill, ...]:
    """Return the candidates of these names: in the order of the names if that is asked for, else in their own."""
    if not ordered:
        wanted = frozenset(names)
        return tuple(skill for skill in candidates if skill.name in wanted)
    by_name = {skill.name: skill for skill in candidates}
    return tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name)

"""Asking a selector for skills: whatever it does, the answer is some of the candidates, in their order."""

from __future__ import annotations

import inspect
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from prowess.arguments import check_texts
from prowess.select.selectors import SelectorChain
from prowess.thread_work import await_result, is_loop_running

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from prowess.select.selectors import Selector
    from prowess.skills.skill import Skill

    OnFailure = Callable[[Exception], None]
    Steps = Generator[Any, Any, tuple[Skill, ...]]


def ask_selector(
    selector: Selector | None, query: str, candidates: Sequence[Skill], failed: OnFailure | None = None
) -> tuple[Skill, ...]:
    """Return the candidates that ``selector`` picks, in their order; all of them when it fails and is no filter.

    ``failed`` is called with what a selector raises. A selector that must be awaited is awaited by ``run_awaitable``.
    """
    steps = _ask_chain(selector, query, candidates, failed)
    try:
        waiting = next(steps)
        while True:
            try:
                answer = run_awaitable(waiting)
            except Exception as error:  # noqa: BLE001 - the selector's; the steps decide
                waiting = steps.throw(error)
            else:
                waiting = steps.send(answer)
    except StopIteration as done:
        return tuple(done.value)


async def ask_selector_async(
    selector: Selector | None, query: str, candidates: Sequence[Skill], failed: OnFailure | None = None
) -> tuple[Skill, ...]:
    """Return the candidates that ``selector`` picks, as ``ask_selector`` does, and await it in the caller's loop."""
    steps = _ask_chain(selector, query, candidates, failed)
    try:
        waiting = next(steps)
        while True:
            try:
                answer = await waiting
            except Exception as error:  # noqa: BLE001 - the selector's; the steps decide
                waiting = steps.throw(error)
            else:
                waiting = steps.send(answer)
    except StopIteration as done:
        return tuple(done.value)


def _ask_chain(
    selector: Selector | SelectorChain | None, query: str, candidates: Sequence[Skill], failed: OnFailure | None
) -> Steps:
    """Ask the selectors of a chain one after the other, and return the skills that are left.

    It yields what must be awaited and is sent the result, so that the two callers, of which only one may await, share
    the rules.
    """
    remaining = tuple(candidates)
    if selector is None:
        return remaining
    if not isinstance(selector, SelectorChain):
        return (yield from _ask_single(selector, query, remaining, failed))
    for part in selector.selectors:
        remaining = yield from _ask_chain(part, query, remaining, failed)
    return remaining


def _ask_single(selector: Selector, query: str, candidates: tuple[Skill, ...], failed: OnFailure | None) -> Steps:
    # A strict selector is a filter: when it fails, nothing may pass. Any other only narrows, so everything is shown.
    strict = bool(getattr(selector, "strict", False))
    if not query and not strict:
        return candidates
    try:
        answer: Any = selector.select(query, candidates)
        names = set(check_texts((yield answer) if inspect.isawaitable(answer) else answer, "what select() gives"))
    except Exception as error:  # noqa: BLE001 - a selector is code of the host; the conversation goes on
        if failed is not None:
            failed(error)
        return () if strict else candidates
    picked = tuple(skill for skill in candidates if skill.name in names)
    return picked if picked or strict else candidates


def run_awaitable(awaitable: Any) -> Any:  # noqa: ANN401 - whatever the selector answers
    """Return the result of an awaitable: on the loop of the host that awaits this work, else in a loop of its own.

    In a thread whose loop is running already, the awaitable gets another thread.
    """
    if not is_loop_running():
        return await_result(awaitable)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few selectors need it, and it takes a while

    # With a copy of the context: the awaitable may ask for what the host set for this conversation.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, await_result, awaitable).result()

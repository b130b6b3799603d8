"""Asking a selector, whatever it does: the answer is always some of the candidates, in their order."""

from __future__ import annotations

import inspect
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
    """The candidates that ``selector`` picks. One that must be awaited runs in a thread with a loop of its own."""
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
    """The same, awaiting in the caller's loop."""
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
    """Yields whatever must be awaited, so that both callers share the rules."""
    left = tuple(candidates)
    if selector is None:
        return left
    if not isinstance(selector, SelectorChain):
        return (yield from _ask_one(selector, query, left, failed))
    for part in selector.selectors:
        left = yield from _ask_chain(part, query, left, failed)
    return left


def _ask_one(selector: Selector, query: str, candidates: tuple[Skill, ...], failed: OnFailure | None) -> Steps:
    strict = bool(getattr(selector, "strict", False))
    if not query and not strict:
        return candidates
    try:
        answer: Any = selector.select(query, candidates)
        names = set(check_texts((yield answer) if inspect.isawaitable(answer) else answer, "what select() gives"))
    except Exception as error:  # noqa: BLE001 - a selector is someone else's code; the conversation goes on
        if failed is not None:
            failed(error)
        return () if strict else candidates
    picked = tuple(skill for skill in candidates if skill.name in names)
    return picked if picked or strict else candidates


def run_awaitable(awaitable: Any) -> Any:  # noqa: ANN401 - whatever the selector answers
    """Return the result of an awaitable: on the loop of the host that awaits this work, else in a loop of its own.

    Where a loop is already running here, that is in another thread.
    """
    if not is_loop_running():
        return await_result(awaitable)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few selectors need it
    from contextvars import copy_context  # noqa: PLC0415

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, await_result, awaitable).result()

"""Steps of work that may have to await something: written once as a generator, run by plain and by asynchronous code.

A generator yields what must be awaited, is sent the result, and returns the outcome. A failure is thrown into it.
"""

from __future__ import annotations

from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from prowess.thread_work import await_result, is_loop_running, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    T = TypeVar("T")
    Steps = Generator[Any, Any, T]
else:
    T = TypeVar("T")


def run_steps(steps: Steps[T]) -> T:
    """Return the outcome of the steps; what must be awaited is awaited by ``run_awaitable``."""
    try:
        waiting = next(steps)
        while True:
            try:
                answer = run_awaitable(waiting)
            except Exception as error:  # noqa: BLE001 - the steps decide what it means
                waiting = steps.throw(error)
            else:
                waiting = steps.send(answer)
    except StopIteration as done:
        outcome: T = done.value
        return outcome


async def await_steps(steps: Steps[T]) -> T:
    """Return the outcome of the steps, and await what they yield in the caller's loop."""
    return await _go_on_in_threads(steps, partial(next, steps))


def answer_steps(steps: Steps[T]) -> T | Awaitable[T]:
    """Return the outcome of the steps, or, where something must be awaited, an awaitable that gives it."""
    try:
        waiting = next(steps)
    except StopIteration as done:
        outcome: T = done.value
        return outcome
    return _await_rest(steps, waiting)


async def _await_rest(steps: Steps[T], waiting: Awaitable[Any]) -> T:
    """Return the outcome of steps that have begun, and of which ``waiting`` is to be awaited first."""
    return await _go_on_in_threads(steps, await _await_next(steps, waiting))


async def _go_on_in_threads(steps: Steps[T], go_on: Callable[[], Any]) -> T:
    """Return the outcome of steps, of which ``go_on`` takes the next one.

    Each step is taken in a thread: it may call a plain function of the host, which must not hold the loop up.
    """
    while True:
        is_last, value = await run_in_thread(partial(_take_step, go_on))
        if is_last:
            outcome: T = value
            return outcome
        go_on = await _await_next(steps, value)


async def _await_next(steps: Steps[T], waiting: Awaitable[Any]) -> Callable[[], Any]:
    """Await what the steps wait for, and return what takes the next step with its result or its failure."""
    try:
        answer = await waiting
    except Exception as error:  # noqa: BLE001 - the steps decide what it means
        return partial(steps.throw, error)
    return partial(steps.send, answer)


def _take_step(go_on: Callable[[], Any]) -> tuple[bool, Any]:
    """Return whether a step was the last one, with the outcome of the steps, or else with what must be awaited next."""
    try:
        return False, go_on()
    except StopIteration as done:  # it cannot leave a coroutine as an exception
        return True, done.value


def run_awaitable(awaitable: Any) -> Any:  # noqa: ANN401 - whatever the host's code answers
    """Return the result of an awaitable: on the loop of the host that awaits this work, else in a loop of its own.

    In a thread whose loop is running already, the awaitable gets another thread.
    """
    if not is_loop_running():
        return await_result(awaitable)
    from concurrent.futures import ThreadPoolExecutor

    # With a copy of the context: the awaitable may ask for what the host set for this conversation.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(copy_context().run, await_result, awaitable).result()

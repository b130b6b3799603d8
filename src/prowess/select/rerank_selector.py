"""A selector that has the host, say with a model, put the best skills of another selector into a better order."""

from __future__ import annotations

import inspect
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

from prowess.arguments import check_callable, check_count, check_texts, raise_bad_argument
from prowess.host_errors import log_host_error
from prowess.select.auto_selector import check_base
from prowess.select.selectors import SkillQuery
from prowess.select.steps import answer_steps

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from prowess.select.selectors import Selector
    from prowess.select.steps import Steps
    from prowess.skills.skill import Skill

    Rerank = Callable[[str, Sequence[Skill]], Iterable[str] | Awaitable[Iterable[str]]]

DEFAULT_TOP = 30
"""How many of the best skills are reordered unless the host says otherwise."""
DEFAULT_TIMEOUT = 10.0
"""The seconds for which the host's function is waited for unless the host says otherwise."""
_ANSWER = "what rerank() gives"


class RerankSelector:
    """Gives the ``top`` best skills of ``base`` the order of ``rerank(query, skills)``, which returns names.

    Skills that it leaves out go behind, and names of other skills are ignored. When it fails, takes more than
    ``timeout`` seconds (``None``: it may take any time) or returns anything but names, the order of ``base`` stays, and
    the error is logged. ``rerank`` may be a coroutine function. With a ``timeout``, a plain function runs in a thread,
    and is left alone there when the time is over. Use it as the ``base`` of an ``AutoSelector``, which decides how many
    skills are shown. Raises ``SourceError`` for a ``base`` that filters.
    """

    strict = False
    ordered = True

    def __init__(
        self, base: Selector, rerank: Rerank, top: int = DEFAULT_TOP, *, timeout: float | None = DEFAULT_TIMEOUT
    ) -> None:
        check_base(base)
        if rerank is None:
            raise_bad_argument("rerank", "is callable", rerank)
        check_callable(rerank, "rerank")
        check_count(top, "top")
        _check_seconds(timeout)
        self.base = base
        self.rerank = rerank
        self.top = top
        self.timeout = timeout

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str] | Awaitable[list[str]]:
        """Return the names that ``base`` picks, in the better order; to be awaited where ``base`` or ``rerank`` is."""
        return answer_steps(self._order_names(query, candidates))

    def _order_names(self, query: str, candidates: Sequence[Skill]) -> Steps[list[str]]:
        answer = self.base.select(SkillQuery(query), candidates)
        picked = check_texts((yield answer) if inspect.isawaitable(answer) else answer, "what select() gives")
        by_name = {skill.name: skill for skill in candidates}
        names = [name for name in dict.fromkeys(picked) if name in by_name]
        best = [by_name[name] for name in names[: self.top]]
        order = (yield from self._ask_host(query, tuple(best))) if best else ()
        known = frozenset(names[: self.top])
        return list(dict.fromkeys([*(name for name in order if name in known), *names]))

    def _ask_host(self, query: str, skills: tuple[Skill, ...]) -> Steps[tuple[str, ...]]:
        """Return the names that the host's function gives; none when it fails."""
        try:
            answer = self._call_rerank(query, skills)
            if inspect.isawaitable(answer):
                answer = yield _await_in_time(answer, self.timeout)
            return check_texts(answer, _ANSWER)
        except Exception as error:  # noqa: BLE001 - the host's code; the order that was there stays
            log_host_error("rerank", error)
            return ()

    def _call_rerank(self, query: str, skills: tuple[Skill, ...]) -> Any:  # noqa: ANN401 - whatever the host answers
        if self.timeout is None or inspect.iscoroutinefunction(self.rerank):
            return self.rerank(query, skills)
        return _call_in_time(lambda: self._call_and_read(query, skills), self.timeout)

    def _call_and_read(self, query: str, skills: tuple[Skill, ...]) -> Any:  # noqa: ANN401 - names, or an awaitable
        """Return the names that a plain function gives; an awaitable, which it may give too, is returned as it is."""
        answer = self.rerank(query, skills)
        # A generator does its work when it is read: that must end in time as well, so it is read in this thread.
        return answer if inspect.isawaitable(answer) else check_texts(answer, _ANSWER)


def _call_in_time(call: Callable[[], Any], seconds: float) -> Any:  # noqa: ANN401 - whatever the host answers
    """Return what ``call`` returns in a thread; raise what it raises, or ``TimeoutError`` when it takes too long."""
    outcome: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def run() -> None:
        try:
            outcome.put((call(), None))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.put((None, error))

    # A daemon: a function that hangs must not keep the process from ending.
    Thread(target=copy_context().run, args=(run,), name="prowess rerank", daemon=True).start()
    try:
        answer, error = outcome.get(timeout=seconds)
    except Empty:
        raise TimeoutError(f"rerank took more than {seconds:g} seconds") from None
    if error is not None:
        raise error
    return answer


async def _await_in_time(awaitable: Awaitable[Any], seconds: float | None) -> Any:  # noqa: ANN401 - the host's answer
    import asyncio

    return await asyncio.wait_for(awaitable, seconds)


def _check_seconds(given: object) -> None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int | float) or given <= 0):
        raise_bad_argument("timeout", "is a number of seconds above 0, or None", given)

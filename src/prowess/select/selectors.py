"""Selectors: what narrows the skills that are shown for a query, by tag, by words, by the host, or one after the other.

Whatever a selector does, ``ask_selector`` answers with some of the candidates. A selector that is asynchronous is
awaited on the loop of the host that awaits the call, else on a loop of its own.
"""

from __future__ import annotations

from contextvars import copy_context
from functools import cached_property, partial
from inspect import isawaitable, iscoroutinefunction
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol

from prowess.arguments import check_callable, check_count, check_method, check_texts, raise_bad_argument
from prowess.errors import SourceError, log_host_error
from prowess.search.terms import tags_of
from prowess.skills.catalog import Catalog
from prowess.thread_work import run_awaitable, run_in_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import Self

    from prowess.literals import Semantic
    from prowess.select.auto import ListingTurn
    from prowess.skills.search_library import SearchHits
    from prowess.skills.skill import Skill

    Rerank = Callable[[str, Sequence[Skill]], Iterable[str] | Awaitable[Iterable[str]]]

DEFAULT_LIMIT = 20
"""How many skills ``LexicalSelector`` shows by default."""
DEFAULT_TOP = 30
"""How many of the best skills are reordered unless the host says otherwise."""
DEFAULT_TIMEOUT = 10.0
"""The seconds for which the host's function is waited for unless the host says otherwise."""
_ANSWER = "what rerank() gives"


class SkillQuery(str):
    """What a selector is asked: the text of the request, which it may also take apart as ``text`` and ``kind``."""

    __slots__ = ()
    kind = "skill"
    """What the candidates are. Hosts may ask the same selectors about tools of their own."""

    @property
    def text(self) -> str:
        """The request as a plain string."""
        return str(self)


class Selector(Protocol):
    """Chooses which of the candidates are worth showing for a query, by name; may be asynchronous.

    With ``strict = True`` it is a filter: it is asked without a query too, and after an empty answer nothing is shown.
    Otherwise it only narrows: when it fails or answers with nothing, everything is shown. With ``ordered = True`` the
    listing has the order of the answer, otherwise that of the names.
    """

    def select(self, query: SkillQuery, candidates: Sequence[Skill]) -> Iterable[str] | Awaitable[Iterable[str]]:
        """Return the names to show; a selector that takes a plain ``str`` will do."""
        ...


class Candidates(tuple["Skill", ...]):  # noqa: SLOT001 - a tuple with slots cannot carry its catalogue
    """The skills of one catalogue that a selector may choose from, in the order of the listing.

    ``catalog`` is the catalogue that they come from. It may have more skills: those that filters hide.
    """

    catalog: Catalog

    def __new__(cls, skills: Iterable[Skill], catalog: Catalog, by_name: Mapping[str, Skill] | None = None) -> Self:
        """Return the candidates; ``by_name`` are the skills by their names, where the caller has them already."""
        self = super().__new__(cls, skills)
        self.catalog = catalog
        if by_name is not None:
            vars(self)["by_name"] = by_name  # in place of what the cached property would compute
        return self

    def __reduce__(self) -> tuple[type[Candidates], tuple[tuple[Skill, ...], Catalog]]:
        """Return how another process makes the candidates again."""
        return Candidates, (tuple(self), self.catalog)

    @cached_property
    def by_name(self) -> Mapping[str, Skill]:
        """The candidates by their names."""
        return {skill.name: skill for skill in self}

    def rank(self, query: str, limit: int, semantic: Semantic = "auto") -> SearchHits:
        """Return at most ``limit`` of the candidates that fit ``query``, the best first; ``False``: by words alone."""
        among = None if len(self) == len(self.catalog) else self.by_name
        return self.catalog.rank_skills(query, among, limit, semantic=semantic)


class CandidateCache:
    """Makes candidates of plain lists of skills; the last ones are kept, because their search index is expensive."""

    def __init__(self) -> None:
        self._last: Candidates | None = None

    def get_candidates(self, skills: Sequence[Skill]) -> Candidates:
        """Return ``skills`` as candidates: themselves if they are candidates, else with a catalogue of their own."""
        if isinstance(skills, Candidates):
            return skills
        last = self._last
        if last is None or tuple(last) != tuple(skills):
            last = self._last = Candidates(skills, Catalog(skills))
        return last


class ModelDrivenSelector:
    """Shows everything, in the order given: the model decides."""

    strict = False

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return every name."""
        return [skill.name for skill in candidates]


class TagSelector:
    """Shows the skills that have at least one of the tags, in ``tags:`` or ``metadata.tags``; case counts.

    Of a skill with more than ``Limits.max_indexed_tags`` tags, only the first ones count.
    """

    strict = True

    def __init__(self, tags: Iterable[str]) -> None:
        self.tags = tuple(dict.fromkeys(tag.strip() for tag in check_texts(tags, "tags") if tag.strip()))

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return the names of the skills that have one of the tags; none when the selector has no tags."""
        wanted = set(self.tags)
        return [skill.name for skill in candidates if wanted.intersection(tags_of(skill, skill.limits))]


class LexicalSelector:
    """Shows the skills whose words fit the query best. Meaning does not count, also where it is prepared."""

    strict = False

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        check_count(limit, "limit")
        self.limit = limit
        self._plain_lists = CandidateCache()

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return at most ``limit`` names, the best first."""
        hits = self._plain_lists.get_candidates(candidates).rank(query, self.limit, semantic=False)
        return [hit.name for hit in hits]


def _check_names(
    answer: Iterable[str] | Awaitable[Iterable[str]], what: str = "what select() gives"
) -> tuple[str, ...]:
    """Return the names in an answer of the host, which is awaited where that is needed."""
    return check_texts(run_awaitable(answer) if isawaitable(answer) else answer, what)


def is_asynchronous(selector: object) -> bool:
    """Return whether the ``select`` of a selector must be awaited."""
    return getattr(selector, "is_async", False) or iscoroutinefunction(getattr(selector, "select", None))


def rank_names(selector: Selector, query: str, candidates: Sequence[Skill]) -> list[str]:
    """Return the names that a selector picks, in its order, each once; what it raises is raised."""
    picked = dict.fromkeys(_check_names(selector.select(SkillQuery(query), candidates)))
    known = _by_name(candidates)
    return [name for name in picked if name in known]


def _by_name(skills: Sequence[Skill]) -> Mapping[str, Skill]:
    return skills.by_name if isinstance(skills, Candidates) else {skill.name: skill for skill in skills}


def ask_selector(
    selector: Selector | None, query: str, candidates: Sequence[Skill], turn: ListingTurn | None = None
) -> tuple[Skill, ...]:
    """Return the candidates that ``selector`` picks; all of them when it fails and is not a filter.

    They stay in the order of the candidates, unless the selector is ``ordered``. ``turn`` is the turn of a conversation
    that an ``AutoSelector`` chooses for, and gets what selectors raise; without it, the request is the only one.
    """
    remaining = candidates if isinstance(candidates, Candidates) else tuple(candidates)
    if selector is None:
        return remaining
    if isinstance(selector, TurnSelector):
        return selector.choose_skills(query, remaining, turn)
    # A strict selector is a filter: when it fails, nothing may pass. Any other only narrows, so everything is shown.
    strict = bool(getattr(selector, "strict", False))
    if not query and not strict:
        return remaining
    try:
        names = _check_names(selector.select(SkillQuery(query), remaining))
    except Exception as error:  # noqa: BLE001 - a selector is code of the host; the conversation goes on
        if turn is not None:
            turn.failures.append(error)
        return () if strict else remaining
    by_name = _by_name(remaining)
    if not getattr(selector, "ordered", False):
        wanted = frozenset(names)
        names = tuple(name for name in by_name if name in wanted)
    picked = tuple(by_name[name] for name in dict.fromkeys(names) if name in by_name)
    return picked if picked or strict else remaining


class TurnSelector:
    """A selector of ours that a session asks with the turn of its conversation, in place of ``select``."""

    def choose_skills(self, query: str, skills: Sequence[Skill], turn: ListingTurn | None = None) -> tuple[Skill, ...]:
        """Return the skills to show in a turn, in their order; ``None``: the request is the only one."""
        raise NotImplementedError


class SelectorChain(TurnSelector):
    """Selectors one after the other, each over what the one before has left: ``SelectorChain(tags, lexical)``."""

    def __init__(self, *selectors: Selector) -> None:
        for index, selector in enumerate(selectors):
            check_method(selector, f"selectors[{index}]", "select", "pass a prowess.Selector")
        self.selectors = selectors

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return the names that are left at the end; a session asks the selectors of the chain one by one."""
        return [skill.name for skill in self.choose_skills(query, candidates)]

    def choose_skills(self, query: str, skills: Sequence[Skill], turn: ListingTurn | None = None) -> tuple[Skill, ...]:
        """Return the skills that are left when each selector of the chain was asked."""
        remaining = tuple(skills) if not isinstance(skills, Candidates) else skills
        for part in self.selectors:
            left = ask_selector(part, query, remaining, turn)
            remaining = Candidates(left, remaining.catalog) if isinstance(remaining, Candidates) else left
        return remaining


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
            raise_bad_argument("rerank", "must be callable", rerank)
        check_callable(rerank, "rerank")
        check_count(top, "top")
        seconds: object = timeout
        if seconds is not None and (isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0):
            raise_bad_argument("timeout", "must be a number of seconds above 0, or None", seconds)
        self.base = base
        self.rerank = rerank
        self.top = top
        self.timeout = timeout
        self.is_async = is_asynchronous(base) or iscoroutinefunction(rerank)

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str] | Awaitable[list[str]]:
        """Return the names that ``base`` picks, in the better order; to be awaited where ``base`` or ``rerank`` is."""
        order = partial(self._order_names, query, candidates)
        return run_in_thread(order) if self.is_async else order()

    def _order_names(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        names = rank_names(self.base, query, candidates)
        known = frozenset(names[: self.top])
        by_name = _by_name(candidates)
        best = tuple(by_name[name] for name in names[: self.top])
        order = self._ask_host(query, best) if best else ()
        return list(dict.fromkeys([*(name for name in order if name in known), *names]))

    def _ask_host(self, query: str, skills: tuple[Skill, ...]) -> tuple[str, ...]:
        """Return the names that the host's function gives; none when it fails."""

        def call() -> Any:
            answer = self.rerank(query, skills)
            # A generator does its work when it is read: that must end in time as well, so it is read here.
            return answer if isawaitable(answer) else check_texts(answer, _ANSWER)

        try:
            is_timed = self.timeout is not None and not iscoroutinefunction(self.rerank)
            answer = _call_in_time(call, self.timeout) if is_timed else call()
            return _check_names(_await_in_time(answer, self.timeout) if isawaitable(answer) else answer, _ANSWER)
        except Exception as error:  # noqa: BLE001 - the host's code; the order that was there stays
            log_host_error("rerank", error)
            return ()


def _call_in_time(call: Callable[[], Any], seconds: float | None) -> Any:
    """Return what ``call`` returns in a thread; raise what it raises, or ``TimeoutError`` when it takes too long."""
    from concurrent.futures import Future, wait  # loads logging

    outcome: Future[Any] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome.set_exception(error)

    # A daemon: a function that hangs must not keep the process from ending.
    Thread(target=copy_context().run, args=(run,), name="prowess rerank", daemon=True).start()
    if not wait([outcome], seconds).done:
        raise TimeoutError(f"rerank took more than {seconds:g} seconds")
    return outcome.result()


async def _await_in_time(awaitable: Awaitable[Any], seconds: float | None) -> Any:
    import asyncio

    return await asyncio.wait_for(awaitable, seconds)


def check_base(base: Selector) -> None:
    """Raise ``SourceError`` unless the argument ``base`` is a selector that ranks, so no filter and no chain."""
    check_method(base, "base", "select", "pass a prowess.Selector that ranks, such as LexicalSelector(60)")
    kind = type(base).__name__
    if isinstance(base, SelectorChain) or getattr(base, "strict", False):
        remedy = f"pass SelectorChain({kind}(…), AutoSelector(…))"
        raise SourceError(f"base is a selector that ranks, and {kind} keeps the order of names; {remedy}")
    if isinstance(base, TurnSelector):
        raise SourceError(f"base is a selector that ranks, not an {kind}; pass LexicalSelector(60)")

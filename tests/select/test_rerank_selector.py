"""Reordering by the host: what it says counts, and whatever goes wrong leaves the order that was there."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest

import prowess
from prowess import AutoSelector, LexicalSelector, RerankSelector, Session, TagSelector, Toolset

Made = Callable[..., prowess.Skill]

BASE = ["form-1", "form-2", "form-3", "form-4"]
SECONDS = 5
"""How long a function hangs that nobody stops."""


class Ranks:
    """A base that always answers with the same names."""

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
        return BASE


@pytest.fixture
def skills(made: Made) -> tuple[prowess.Skill, ...]:
    return prowess.Catalog(made(name, "Fills forms.") for name in (*BASE, "other")).skills


def reorder(
    rerank: Callable[..., object], skills: Sequence[prowess.Skill], top: int = 30, timeout: float | None = 10.0
) -> list[str]:
    """The names, whether or not they have to be awaited."""
    selector = RerankSelector(Ranks(), rerank, top, timeout=timeout)  # type: ignore[arg-type]
    answer = selector.select("fill a form", skills)

    async def wait() -> list[str]:
        return answer if isinstance(answer, list) else await answer

    return asyncio.run(wait())


def test_the_order_is_that_of_the_host(skills: Sequence[prowess.Skill]) -> None:
    asked: list[tuple[str, list[str]]] = []

    def rerank(query: str, best: Sequence[prowess.Skill]) -> list[str]:
        asked.append((query, [skill.name for skill in best]))
        return [skill.name for skill in best][::-1]

    assert reorder(rerank, skills) == BASE[::-1]
    assert asked == [("fill a form", BASE)]


def call(function: Callable[..., object], *arguments: object) -> object:
    return function(*arguments)


def test_a_coroutine_function_is_awaited(skills: Sequence[prowess.Skill]) -> None:
    async def rerank(_query: str, best: Sequence[prowess.Skill]) -> list[str]:
        await asyncio.sleep(0)
        return [best[2].name]

    assert reorder(rerank, skills) == ["form-3", "form-1", "form-2", "form-4"]
    assert reorder(partial(call, rerank), skills)[0] == "form-3", "and so is what a plain function returns"


@pytest.mark.parametrize(
    ("said", "order"),
    [
        (["form-3"], ["form-3", "form-1", "form-2", "form-4"]),
        (["other", "form-2", "nobody", "form-2"], ["form-2", "form-1", "form-3", "form-4"]),
        ([], BASE),
        (("form-4", "form-3", "form-2", "form-1"), BASE[::-1]),
    ],
)
def test_what_is_left_out_goes_behind_and_other_names_are_ignored(
    said: Iterable[str], order: list[str], skills: Sequence[prowess.Skill]
) -> None:
    assert reorder(lambda _query, _best: said, skills) == order


def test_only_the_best_are_reordered(skills: Sequence[prowess.Skill]) -> None:
    assert reorder(lambda _query, _best: ["form-4", "form-2"], skills, top=2) == [
        "form-2",
        "form-1",
        "form-3",
        "form-4",
    ]
    assert reorder(lambda _query, _best: BASE[::-1], skills, top=0) == BASE


@pytest.mark.parametrize("answer", [None, 7, "form-3", [7], [b"form-3"], {"form-3": 1}.items()])
def test_nonsense_keeps_the_order_and_is_logged(
    answer: object, skills: Sequence[prowess.Skill], caplog: pytest.LogCaptureFixture
) -> None:
    assert reorder(lambda _query, _best: answer, skills) == BASE
    assert "rerank" in caplog.text


@pytest.mark.parametrize("timeout", [None, 10.0])
def test_a_failure_keeps_the_order_and_is_logged(
    timeout: float | None, skills: Sequence[prowess.Skill], caplog: pytest.LogCaptureFixture
) -> None:
    def rerank(_query: str, _best: Sequence[prowess.Skill]) -> list[str]:
        raise RuntimeError("the model is down")

    assert reorder(rerank, skills, timeout=timeout) == BASE
    assert "the model is down" in caplog.text


def test_a_function_that_hangs_keeps_the_order(
    skills: Sequence[prowess.Skill], caplog: pytest.LogCaptureFixture
) -> None:
    is_over = threading.Event()

    def hang(_query: str, _best: Sequence[prowess.Skill]) -> list[str]:
        is_over.wait()
        return BASE[::-1]

    try:
        assert reorder(hang, skills, timeout=0.01) == BASE
    finally:
        is_over.set()
    assert "rerank took more than 0.01 seconds" in caplog.text


def test_a_generator_that_hangs_keeps_the_order(skills: Sequence[prowess.Skill]) -> None:
    is_over = threading.Event()

    def hang(_query: str, _best: Sequence[prowess.Skill]) -> Iterator[str]:
        yield "form-4"
        is_over.wait(SECONDS)
        yield "form-3"

    try:
        assert reorder(hang, skills, timeout=0.01) == BASE
    finally:
        is_over.set()


def test_a_generator_that_ends_in_time_gives_the_order(skills: Sequence[prowess.Skill]) -> None:
    assert reorder(lambda _query, best: (skill.name for skill in reversed(best)), skills) == BASE[::-1]


def test_a_coroutine_that_hangs_keeps_the_order_and_is_cancelled(skills: Sequence[prowess.Skill]) -> None:
    cancelled: list[bool] = []

    async def hang(_query: str, _best: Sequence[prowess.Skill]) -> list[str]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return []

    assert reorder(hang, skills, timeout=0.01) == BASE
    assert cancelled == [True]


class RanksLater:
    """A base that has to be awaited."""

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
        await asyncio.sleep(0)
        return BASE


@pytest.mark.parametrize("base", [Ranks(), RanksLater()])
def test_a_plain_function_does_not_hold_the_loop_up(base: Ranks | RanksLater, skills: Sequence[prowess.Skill]) -> None:
    async def whole() -> list[str]:
        has_run = threading.Event()
        asyncio.get_running_loop().call_later(0.01, has_run.set)  # only a free loop does this

        def rerank(_query: str, best: Sequence[prowess.Skill]) -> list[str]:
            return [skill.name for skill in reversed(best)] if has_run.wait(SECONDS) else []

        toolset = Toolset(Session(prowess.Catalog(skills), selector=RerankSelector(base, rerank)), "read_skill")
        await toolset.aprompt("fill a form")
        return list(toolset.report().shown)

    assert asyncio.run(whole()) == BASE[::-1]


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (("words", sorted), {}, "base"),
        ((TagSelector(["a"]), sorted), {}, "TagSelector"),
        ((AutoSelector(), sorted), {}, "LexicalSelector"),
        ((LexicalSelector(), None), {}, "rerank"),
        ((LexicalSelector(), "model"), {}, "rerank"),
        ((LexicalSelector(), sorted, -1), {}, "top"),
        ((LexicalSelector(), sorted), {"timeout": 0}, "timeout"),
        ((LexicalSelector(), sorted), {"timeout": "soon"}, "timeout"),
        ((LexicalSelector(), sorted), {"timeout": True}, "timeout"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(arguments: tuple[Any, ...], options: dict[str, Any], said: str) -> None:
    with pytest.raises(prowess.SourceError, match=said):
        RerankSelector(*arguments, **options)


@pytest.mark.parametrize("is_awaited", [False, True])
def test_it_ranks_for_a_conversation(is_awaited: bool, made: Made) -> None:
    catalog = prowess.Catalog(made(f"form-{number:02}", "Fills forms of every kind.") for number in range(40))

    def last_first(_query: str, best: Sequence[prowess.Skill]) -> list[str]:
        return sorted((skill.name for skill in best), reverse=True)

    async def later(query: str, best: Sequence[prowess.Skill]) -> list[str]:
        return last_first(query, best)

    base = RerankSelector(LexicalSelector(20), later if is_awaited else last_first, top=10)
    session = Session(catalog, selector=AutoSelector(120, base=base))
    shown = [skill.name for skill in session.candidates("fill in the forms")]
    assert shown == [f"form-{number:02}" for number in range(9, 9 - len(shown), -1)]
    assert len(shown) > 3


def test_in_a_session_it_keeps_its_order(skills: Sequence[prowess.Skill]) -> None:
    session = Session(prowess.Catalog(skills), selector=RerankSelector(Ranks(), lambda _query, _best: BASE[::-1]))
    assert [skill.name for skill in session.candidates("fill a form")] == BASE[::-1]

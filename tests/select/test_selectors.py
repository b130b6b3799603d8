"""The selectors: who is worth showing for a query."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import prowess
from prowess import LexicalSelector, ModelDrivenSelector, Selector, SelectorChain, Session, TagSelector, Toolset

Made = Callable[..., prowess.Skill]
Shown = Callable[[Selector | None, str], list[str]]


@pytest.fixture
def catalog(made: Made) -> prowess.Catalog:
    return prowess.Catalog(
        [
            made("ledger", "Keeps books of money.", tags=("finance",)),
            made("tax", "Files a return of money.", metadata_tags="finance, law"),
            made("charts", "Draws charts of numbers.", tags=("office", "Finance")),
            made("poems", "Writes verses."),
        ]
    )


class Fixed:
    """A selector that answers what it was given, and remembers what it was asked."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[tuple[str, list[str]]] = []

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:
        self.asked.append((query, [skill.name for skill in candidates]))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


class Strict(Fixed):
    strict = True


class Later(Fixed):
    """The same, to be awaited."""

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().select(query, candidates)


class LaterStrict(Later):
    strict = True


def names(catalog: prowess.Catalog, selector: Selector | None, query: str = "money") -> list[str]:
    return [skill.name for skill in Session(catalog, selector=selector).candidates(query)]


def awaited(catalog: prowess.Catalog, selector: Selector | None, query: str = "money") -> list[str]:
    async def ask() -> list[str]:
        toolset = Toolset(Session(catalog, selector=selector), "read_skill")
        await toolset.aprompt(query)
        return list(toolset.report().shown)

    return asyncio.run(ask())


WAYS = pytest.mark.parametrize("ask", [names, awaited])
Ask = Callable[..., list[str]]
ALL = ["charts", "ledger", "poems", "tax"]


# -- ours -----------------------------------------------------------------------------------------------------------


@WAYS
def test_without_a_selector_everything_is_shown_by_name(ask: Ask, catalog: prowess.Catalog) -> None:
    assert ask(catalog, None) == ALL


def test_a_model_driven_selector_gives_every_name_in_the_order_given(catalog: prowess.Catalog) -> None:
    selector = ModelDrivenSelector()
    assert selector.select("money", catalog.skills[::-1]) == ALL[::-1]
    assert selector.select("", ()) == []


@WAYS
def test_a_model_driven_selector_shows_everything(ask: Ask, catalog: prowess.Catalog) -> None:
    assert ask(catalog, ModelDrivenSelector()) == ALL


@WAYS
@pytest.mark.parametrize("query", ["", "money", "nothing fits"])
def test_tags_are_those_of_the_field_and_of_the_metadata(ask: Ask, query: str, catalog: prowess.Catalog) -> None:
    assert ask(catalog, TagSelector(["finance"]), query) == ["ledger", "tax"]


@WAYS
@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        (["law"], ["tax"]),
        (["law", "office"], ["charts", "tax"]),
        (["Finance"], ["charts"]),
        ([" finance ", "finance"], ["ledger", "tax"]),
        (["financ"], []),
        ([""], []),
        ([], []),
    ],
)
def test_one_common_tag_is_enough_and_case_counts(
    ask: Ask, tags: list[str], shown: list[str], catalog: prowess.Catalog
) -> None:
    assert ask(catalog, TagSelector(tags), "") == shown


def test_tags_of_a_selector_are_trimmed_and_kept_once() -> None:
    assert TagSelector([" a", "b ", "a", "", " "]).tags == ("a", "b")


@pytest.mark.parametrize("written", ["a,b", " a , b ", "[a, b]", '["a", "b"]', "a,,b,"])
def test_tags_in_metadata_are_separated_by_commas(written: str, made: Made) -> None:
    catalog = prowess.Catalog([made("x", metadata_tags=written)])
    assert [names(catalog, TagSelector([tag]), "") for tag in ("a", "b", "c", "")] == [["x"], ["x"], [], []]


@WAYS
def test_a_lexical_selector_shows_what_fits_by_name(ask: Ask, catalog: prowess.Catalog) -> None:
    assert ask(catalog, LexicalSelector(), "money") == ["ledger", "tax"]
    assert ask(catalog, LexicalSelector(), "drawing a chart") == ["charts"]
    assert ask(catalog, LexicalSelector(), "") == ALL
    assert ask(catalog, LexicalSelector(), "zzz") == ALL


def test_a_lexical_selector_gives_the_best_first_and_no_more_than_its_limit(made: Made) -> None:
    skills = [made("a", "Charts and many other things besides."), made("charts", "Draws."), made("z", "Charts.")]
    assert LexicalSelector().select("charts", skills)[0] == "charts"
    assert len(LexicalSelector(limit=2).select("charts", skills)) == 2
    assert names(prowess.Catalog(skills), LexicalSelector(limit=1), "charts") == ["charts"]


def test_a_lexical_selector_follows_when_the_candidates_change(made: Made) -> None:
    selector = LexicalSelector()
    assert selector.select("charts", [made("a", "Charts.")]) == ["a"]
    assert selector.select("charts", [made("b", "Charts."), made("c", "Other.")]) == ["b"]
    assert selector.select("charts", []) == []


@WAYS
def test_a_chain_asks_each_over_what_the_one_before_has_left(ask: Ask, catalog: prowess.Catalog) -> None:
    assert ask(catalog, SelectorChain(TagSelector(["finance"]), LexicalSelector()), "return") == ["tax"]
    assert ask(catalog, SelectorChain(TagSelector(["finance"]), LexicalSelector()), "verses") == ["ledger", "tax"]
    assert ask(catalog, SelectorChain(TagSelector(["finance"]), LexicalSelector()), "") == ["ledger", "tax"]
    assert ask(catalog, SelectorChain(TagSelector(["none"]), LexicalSelector()), "return") == []
    assert ask(catalog, SelectorChain(), "return") == ALL


@WAYS
def test_a_chain_in_a_chain_is_asked_through(ask: Ask, catalog: prowess.Catalog) -> None:
    last = Fixed(["tax", "poems"])
    inner = SelectorChain(TagSelector(["finance"]), Later(["tax", "ledger", "charts"]))
    assert ask(catalog, SelectorChain(inner, last), "money") == ["tax"]
    assert last.asked == [("money", ["ledger", "tax"])]


def test_a_chain_is_a_selector_itself(catalog: prowess.Catalog) -> None:
    chain = SelectorChain(TagSelector(["finance"]), LexicalSelector())
    assert chain.select("return", catalog.skills) == ["tax"]


# -- anyone's -------------------------------------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("kind", [Fixed, Later])
def test_a_selector_narrows_and_the_order_stays_by_name(ask: Ask, kind: type[Fixed], catalog: prowess.Catalog) -> None:
    selector = kind(["tax", "charts", "tax"])
    assert ask(catalog, selector) == ["charts", "tax"]
    assert selector.asked == [("money", ALL)]


@WAYS
@pytest.mark.parametrize("kind", [Fixed, Later])
def test_without_a_query_a_selector_is_not_asked(ask: Ask, kind: type[Fixed], catalog: prowess.Catalog) -> None:
    selector = kind(["tax"])
    assert ask(catalog, selector, "") == ALL
    assert selector.asked == []


@WAYS
@pytest.mark.parametrize("kind", [Strict, LaterStrict])
def test_a_strict_selector_is_asked_without_a_query_too(ask: Ask, kind: type[Fixed], catalog: prowess.Catalog) -> None:
    selector = kind(["tax"])
    assert ask(catalog, selector, "") == ["tax"]
    assert selector.asked == [("", ALL)]


@WAYS
@pytest.mark.parametrize("kind", [Fixed, Later])
@pytest.mark.parametrize("answer", [[], (), ["unknown"], ["TAX", "tax "], set(), None, 5, [["tax"]], ValueError("x")])
def test_an_answer_that_picks_nothing_shows_everything(
    ask: Ask, kind: type[Fixed], answer: object, catalog: prowess.Catalog
) -> None:
    assert ask(catalog, kind(answer)) == ALL


@WAYS
@pytest.mark.parametrize("kind", [Strict, LaterStrict])
@pytest.mark.parametrize("answer", [[], ["unknown"], None, ValueError("x")])
def test_an_answer_of_a_strict_selector_that_picks_nothing_shows_nothing(
    ask: Ask, kind: type[Fixed], answer: object, catalog: prowess.Catalog
) -> None:
    assert ask(catalog, kind(answer)) == []


@WAYS
@pytest.mark.parametrize("kind", [Fixed, Later])
def test_unknown_names_among_known_ones_are_left_out(ask: Ask, kind: type[Fixed], catalog: prowess.Catalog) -> None:
    assert ask(catalog, kind(["nope", "tax", ""])) == ["tax"]


@pytest.mark.parametrize("kind", [Fixed, Later, Strict, LaterStrict])
def test_a_failure_is_told_and_the_conversation_goes_on(kind: type[Fixed], catalog: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    session = Session(catalog, selector=kind(ValueError("broken")), on_event=events.append)
    session.candidates("money")
    asyncio.run(Toolset(session, "read_skill").aprompt("money"))
    assert [event.kind for event in events] == ["selector-failed", "selector-failed", "listed"]
    assert events[0].detail["error"] == "ValueError: broken"


def test_one_failing_part_of_a_chain_does_not_stop_the_others(catalog: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    chain = SelectorChain(
        Fixed(ValueError("broken")), TagSelector(["finance"]), Later(ValueError("too")), Fixed(["tax"])
    )
    session = Session(catalog, selector=chain, on_event=events.append)
    assert [skill.name for skill in session.candidates("money")] == ["tax"]
    assert [event.detail["error"] for event in events] == ["ValueError: broken", "ValueError: too"]


class Lazy:
    """Fails only when its answer is gone through."""

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterator[str]:  # noqa: ARG002
        yield "tax"
        raise ValueError("late")


@WAYS
def test_a_generator_that_fails_half_way_shows_everything(ask: Ask, catalog: prowess.Catalog) -> None:
    assert ask(catalog, Lazy()) == ALL


class Streamed:
    """Gives something that can be neither awaited nor gone through at once."""

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> AsyncIterator[str]:  # noqa: ARG002
        yield "tax"


@WAYS
def test_an_answer_of_the_wrong_kind_shows_everything(ask: Ask, catalog: prowess.Catalog) -> None:
    selector: Any = Streamed()
    assert ask(catalog, selector) == ALL


def test_an_asynchronous_selector_can_be_asked_where_a_loop_is_running(catalog: prowess.Catalog) -> None:
    async def inside() -> list[str]:
        return names(catalog, Later(["tax"]))

    assert asyncio.run(inside()) == ["tax"]


class Looking:
    """Remembers the ambient filter and the thread's loop it was asked in."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002
        self.seen.append(prowess.current_skill_filter())
        return [skill.name for skill in candidates]


def test_an_asynchronous_selector_sees_the_ambient_filter_of_the_call(catalog: prowess.Catalog) -> None:
    selector = Looking()
    session = Session(catalog, selector=selector)
    with prowess.skill_filter("*"):
        session.candidates("money")
        asyncio.run(Toolset(session, "read_skill").aprompt("money"))
    assert selector.seen == ["*", "*"]


def test_a_selector_sees_only_what_the_filter_lets_through(catalog: prowess.Catalog) -> None:
    selector = Strict(["tax"])
    session = Session(catalog, selector=selector, filter="none")
    assert session.candidates("money") == ()
    assert selector.asked == [("money", [])]


def test_a_selector_may_call_back_into_the_session(catalog: prowess.Catalog) -> None:
    class Curious:
        def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002
            session.activate("tax")
            return list(session.active_skills)

    session = Session(catalog, selector=Curious())
    assert [skill.name for skill in session.candidates("money")] == ["tax"]


def test_another_selector_counts_from_then_on(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=TagSelector(["law"]))
    assert session.index() == "Available skills:\n- tax: Files a return of money."
    session.set_selector(TagSelector(["office"]))
    assert session.index() == "Available skills:\n- charts: Draws charts of numbers."
    session.set_selector(None)
    assert [skill.name for skill in session.candidates()] == ALL


ANSWERS = st.lists(st.sampled_from([*ALL, "unknown", ""]))


@given(answer=ANSWERS, strict=st.booleans(), query=st.sampled_from(["", "money"]))
def test_the_answer_is_always_some_of_the_candidates_in_order(answer: list[str], strict: bool, query: str) -> None:
    catalog = prowess.Catalog(prowess.Skill(prowess.Frontmatter(name=name, description="d"), body="b") for name in ALL)
    selector = Strict(answer) if strict else Fixed(answer)
    known = sorted(set(answer) & set(ALL))
    expected = known if strict or (query and known) else ALL
    assert names(catalog, selector, query) == expected

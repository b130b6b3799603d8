"""The selector for conversations: everything while it fits, then the best, and what was shown stays."""

import asyncio
import pickle
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import prowess
from prowess import AutoSelector, Candidates, LexicalSelector, SelectorChain, Session, TagSelector, Toolset
from prowess.select.auto import (
    WHOLE,
    ListingRequest,
    ShownList,
    ShownReason,
    cut_whole,
    extend_shown,
    find_named_skills,
    is_brief_request,
)

Made = Callable[..., prowess.Skill]

TOPICS = ("invoice", "poem", "chart", "lecture", "garden", "recipe", "contract", "melody")
PARTS = ("draft", "review", "merge", "archive", "export", "translate", "check", "print", "sort", "plan")


@pytest.fixture
def many(made: Made) -> prowess.Catalog:
    """Eighty skills, ten for each of eight topics; all of them cost about 1,400 tokens as lines."""
    return prowess.Catalog(
        made(f"{topic}-{part}", f"Knows how to {part} each {topic} that is given to it.", tags=(topic,))
        for topic in TOPICS
        for part in PARTS
    )


class Ranks:
    """A ranking of the host's own, which remembers what it was asked."""

    def __init__(self, *names: str, error: Exception | None = None) -> None:
        self.names = names
        self.error = error
        self.asked: list[tuple[str, int]] = []

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:
        self.asked.append((query, len(candidates)))
        if self.error is not None:
            raise self.error
        return self.names


class RanksLater(Ranks):
    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:  # type: ignore[override]
        await asyncio.sleep(0)
        return super().select(query, candidates)


def names(skills: Iterable[prowess.Skill]) -> list[str]:
    return [skill.name for skill in skills]


def tokens(session: Session, query: str = "") -> int:
    return prowess.estimate_tokens(session.index(query).removeprefix("Available skills:\n"))


# -- arguments --------------------------------------------------------------------------------------------------------


def test_the_budget_is_4000_tokens_or_two_in_a_hundred_of_the_window() -> None:
    assert AutoSelector().budget == 4_000
    assert AutoSelector(budget=500).budget == 500
    assert AutoSelector(window=128_000).budget == 2_560


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": -1}, "budget"),
        ({"budget": "many"}, "budget"),
        ({"budget": True}, "budget"),
        ({"window": 1.5}, "window"),
        ({"budget": 1, "window": 1}, "one of them"),
        ({"base": "words"}, "base"),
        ({"base": TagSelector(["a"])}, r"SelectorChain\(TagSelector"),
        ({"base": SelectorChain(LexicalSelector())}, "SelectorChain"),
        ({"base": AutoSelector()}, "LexicalSelector"),
    ],
)
def test_a_wrong_argument_is_refused_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(prowess.SourceError, match=said):
        AutoSelector(**options)


@pytest.mark.parametrize("wrong", ["lexical", "AUTO", 7])
def test_a_session_takes_auto_a_selector_or_none(wrong: object, many: prowess.Catalog) -> None:
    with pytest.raises(prowess.SourceError, match="selector"):
        Session(many, selector=wrong)  # type: ignore[arg-type]
    with pytest.raises(prowess.SourceError, match="selector"):
        Session(many).set_selector(wrong)  # type: ignore[arg-type]


# -- asked by itself --------------------------------------------------------------------------------------------------


def test_everything_is_returned_in_its_order_while_it_fits(many: prowess.Catalog) -> None:
    assert AutoSelector().select("review a poem", many.skills) == list(many.names)


def test_beyond_the_budget_the_best_come_first_and_fit_three_quarters_of_it(many: prowess.Catalog) -> None:
    picked = AutoSelector(budget=300).select("please review this poem for me", many.skills)
    assert isinstance(picked, list)
    assert picked[0] == "poem-review"
    assert 3 < len(picked) < 20
    lines = "\n".join(f"- {name}: {many[name].description}" for name in picked)
    assert 150 < prowess.estimate_tokens(lines) <= 225


def test_without_a_query_and_without_a_match_everything_is_returned(many: prowess.Catalog) -> None:
    selector = AutoSelector(budget=300)
    for query in ("", "   ", "astronomy of the southern sky"):
        assert selector.select(query, many.skills) == list(many.names)


def test_what_ranks_may_be_the_hosts(many: prowess.Catalog) -> None:
    base = Ranks("poem-print", "nobody", "chart-plan", "poem-print")
    assert AutoSelector(300, base=base).select("which one is it?", many.skills) == ["poem-print", "chart-plan"]
    assert base.asked == [("which one is it?", 80)]


def test_a_ranking_that_must_be_awaited_makes_the_answer_awaitable(many: prowess.Catalog) -> None:
    answer = AutoSelector(300, base=RanksLater("poem-print")).select("which one is it?", many.skills)
    assert not isinstance(answer, list)

    async def wait() -> list[str]:
        return await answer

    assert asyncio.run(wait()) == ["poem-print"]


@pytest.mark.parametrize("error", [RuntimeError("down"), TimeoutError()])
def test_words_rank_when_what_ranks_fails(error: Exception, many: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    session = Session(many, selector=AutoSelector(300, base=Ranks(error=error)), on_event=events.append)
    assert names(session.candidates("please review this poem for me"))[0] == "poem-review"
    assert [event.kind for event in events] == ["selector-failed"]


@pytest.mark.parametrize("nonsense", [None, 7, "poem-print", [3], [b"x"]])
def test_words_rank_when_what_ranks_gives_no_names(nonsense: object, many: prowess.Catalog) -> None:
    class Nonsense:
        def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
            return nonsense  # type: ignore[return-value]

    session = Session(many, selector=AutoSelector(300, base=Nonsense()))
    assert names(session.candidates("please review this poem for me"))[0] == "poem-review"


def test_a_selector_can_be_pickled_and_so_can_candidates(many: prowess.Catalog) -> None:
    again = pickle.loads(pickle.dumps(AutoSelector(window=50_000, base=LexicalSelector(7))))  # noqa: S301 - our own
    assert (again.budget, again.base.limit) == (1_000, 7)
    candidates = Candidates(many.skills[:3], many)
    copy = pickle.loads(pickle.dumps(candidates))  # noqa: S301 - our own
    assert (type(copy), names(copy), len(copy.catalog)) == (Candidates, names(candidates), 80)
    assert list(copy.by_name) == names(candidates)


# -- in a session -----------------------------------------------------------------------------------------------------


def test_the_first_request_chooses_and_later_ones_append(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(400))
    assert len(session.candidates()) == 80
    first = session.candidates("please review this poem for me")
    assert first[0].name == "poem-review"
    second = session.candidates("and now sort my recipe collection")
    assert second[: len(first)] == first
    assert "recipe-sort" in names(second[len(first) :])
    assert len(second) - len(first) <= 5
    assert session.candidates() == second, "without a query it does not flip back"
    assert tokens(session) <= 400


def test_one_request_twice_adds_nothing(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(400))
    once = session.candidates("please review this poem for me")
    assert session.candidates("please review this poem for me") == once


def test_what_no_longer_fits_is_not_appended(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(400))
    shown: tuple[prowess.Skill, ...] = ()
    for topic, part in zip(TOPICS, PARTS, strict=False):
        more = session.candidates(f"please {part} every {topic} that I have")
        assert more[: len(shown)] == shown
        shown = more
    assert 300 < tokens(session) <= 400


def test_a_request_that_finds_nothing_does_not_begin_the_list(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(400))
    assert len(session.candidates("astronomy of the southern sky")) == 80
    assert session.candidates("please review this poem for me")[0].name == "poem-review"


def test_a_greeting_leaves_the_budget_to_the_request_that_follows(made: Made, many: prowess.Catalog) -> None:
    catalog = many | prowess.Catalog(made(f"hello-{number}", "Says hello there.") for number in range(20))
    session = Session(catalog, selector=AutoSelector(400))
    assert len(session.candidates("Hello there!")) == 5
    assert len(session.candidates("please review this poem for me")) > 12


@pytest.mark.parametrize(
    ("query", "brief"),
    [("hi", True), ("Hello there!", True), ("fill the form", False), ("internationalize everything", False)],
)
def test_one_or_two_short_words_say_little(query: str, brief: bool) -> None:
    assert is_brief_request(query) is brief


def test_a_filter_before_it_holds_for_each_request(many: prowess.Catalog) -> None:
    chain = SelectorChain(TagSelector(["poem", "chart"]), AutoSelector(150))
    session = Session(many, selector=chain)
    assert len(session.candidates()) == 20
    first = session.candidates("please review this poem for me")
    second = session.candidates("and now sort my recipe collection")
    assert second[: len(first)] == first
    assert {name.partition("-")[0] for name in names(second)} <= {"poem", "chart"}


def test_another_selector_begins_anew(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(400))
    session.candidates("please review this poem for me")
    session.set_selector(AutoSelector(300))
    assert len(session.candidates()) == 80
    assert session.candidates("and now sort my recipe collection")[0].name == "recipe-sort"
    session.set_selector(None)
    assert len(session.candidates("and now sort my recipe collection")) == 80


def test_sub_agents_choose_for_themselves(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(300))
    mine = session.candidates("please review this poem for me")
    child = session.open_child()
    assert len(child.candidates()) == 80
    assert child.candidates("and now sort my recipe collection")[0].name == "recipe-sort"
    assert session.candidates() == mine


@pytest.mark.parametrize("ask", ["plain", "awaited"])
def test_the_host_may_rank_for_a_conversation(ask: str, many: prowess.Catalog) -> None:
    kind = Ranks if ask == "plain" else RanksLater
    session = Session(many, selector=AutoSelector(300, base=kind("chart-plan", "poem-print")))

    async def wait() -> str:
        return await Toolset(session, budget=300).aprompt("which one is it?")

    assert re.findall("<name>(.*?)</name>", asyncio.run(wait())) == ["chart-plan", "poem-print"]
    assert names(session.candidates("which one is it?")) == ["chart-plan", "poem-print"]


def test_a_session_gives_selectors_candidates_with_their_catalogue(many: prowess.Catalog) -> None:
    seen: list[Sequence[prowess.Skill]] = []

    class Sees:
        def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
            seen.append(candidates)
            return []

    Session(many, selector=SelectorChain(TagSelector(["poem"]), Sees()), explicit_only=["poem-sort"]).candidates("x")
    (candidates,) = seen
    assert isinstance(candidates, Candidates)
    assert candidates.catalog is many
    assert len(candidates) == 9


def test_only_candidates_are_ranked_however_well_others_fit(many: prowess.Catalog) -> None:
    session = Session(many, selector=AutoSelector(100), explicit_only=["poem-review"])
    assert "poem-review" not in names(session.candidates("please review this poem for me"))


# -- names in requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("use poem-review on this", ["poem-review"]),
        ("Use poem-review.", ["poem-review"]),
        ("/poem-review now", ["poem-review"]),
        ("$poem-review now, then chart-plan", ["poem-review", "chart-plan"]),
        ("请用poem-review检查", ["poem-review"]),
        ("poem-reviewer", []),
        ("a plan for my pdf", []),
        ("/pdf", ["pdf"]),
        ("/pdf, please", ["pdf"]),
        ("the path is /usr/pdf", []),
        ('what does "pdf" do?', ["pdf"]),
        ("what does `pdf` do?", ["pdf"]),
        ("with the pdf skill", ["pdf"]),
        ("with the skill pdf", ["pdf"]),
        ("maestro:agent-base", ["maestro-agent-base"]),
        ("", []),
    ],
)
def test_a_name_in_a_request_is_found(query: str, found: list[str], made: Made, many: prowess.Catalog) -> None:
    catalog = many | prowess.Catalog([made("pdf"), made("maestro-agent-base")])
    assert list(find_named_skills(query, Candidates(catalog.skills, catalog))) == found


@pytest.mark.parametrize("text", ["a_" * 40, "a" * 60_000, "a-" * 30_000, "skill " * 10_000, '"a' * 30_000])
def test_names_are_found_quickly_in_a_request_of_any_text(text: str, many: prowess.Catalog) -> None:
    began = time.process_time()
    query = f"/{text}! {many.names[0]}"
    assert find_named_skills(query, Candidates(many.skills, many)) == many.names[:1]
    assert time.process_time() - began < 5


def test_a_document_full_of_names_names_a_few(many: prowess.Catalog) -> None:
    assert len(find_named_skills(" ".join(many.names), Candidates(many.skills, many))) == 8


# -- the list ---------------------------------------------------------------------------------------------------------


def ten_each(names: Sequence[str]) -> int:
    return 10 * len(names)


CHOSEN = ShownReason("chosen for the first request", 1)


def listing(names: str, reason: ShownReason = CHOSEN) -> ShownList:
    return ShownList(tuple(names), dict.fromkeys(names, reason))


def test_the_first_request_fills_three_quarters() -> None:
    shown, no_room = extend_shown(ShownList(), ListingRequest("abcdefghijkl"), ten_each, 100)
    assert (shown.names, no_room) == (tuple("abcdefg"), ())


def test_a_later_request_appends_its_best_five_and_says_which_found_no_room() -> None:
    shown, no_room = extend_shown(listing("abcdefg"), ListingRequest("bvwxyz"), ten_each, 100)
    assert shown.names == (*"abcdefg", *"vwx")
    assert no_room == ("y",)


def test_while_half_is_free_a_later_request_fills_like_the_first() -> None:
    shown, _ = extend_shown(listing("a"), ListingRequest("bcdefghijkl"), ten_each, 100)
    assert shown.names == tuple("abcdefg")


def test_named_and_required_skills_are_added_beyond_the_budget() -> None:
    request = ListingRequest("z", ("n",), {"p": ShownReason("preloaded"), "b": ShownReason("active")})
    shown, no_room = extend_shown(listing("abcdefghij"), request, ten_each, 100)
    assert (shown.names, no_room) == ((*"abcdefghij", "n", "p"), ("z",))
    assert (shown.reasons["n"].text, shown.reasons["p"].text) == ("named in the request", "preloaded")


def test_reasons_name_the_rank_and_the_request() -> None:
    first, _ = extend_shown(ShownList(), ListingRequest("a", query="fill a form"), ten_each, 100)
    assert first.reasons == {"a": ("chosen for the first request", 1, "fill a form")}
    later, _ = extend_shown(first, ListingRequest("ab", query="sign it"), ten_each, 100)
    assert later.reasons["b"] == ("appended for a later request", 2, "sign it")


def test_a_counter_whose_sums_do_not_add_up_is_never_exceeded() -> None:
    """The tokens of two texts together may be more than their sum."""

    def uneven(names: Sequence[str]) -> int:
        return len(names) ** 2

    for budget in range(0, 200, 7):
        shown, _ = extend_shown(ShownList(), ListingRequest("abcdefghijkl"), uneven, budget)
        shown, _ = extend_shown(shown, ListingRequest("uvwxyz"), uneven, budget)
        assert uneven(shown.names) <= budget


def test_what_was_shown_while_everything_fitted_goes_first_when_it_does_not_fit_any_more() -> None:
    mixed = listing("abc", WHOLE).append(dict.fromkeys("xyz", CHOSEN)).append(dict.fromkeys("de", WHOLE))
    assert cut_whole(mixed, ten_each, 80) is mixed
    assert cut_whole(mixed, ten_each, 60).names == tuple("abcxyz")
    assert cut_whole(mixed, ten_each, 45).names == tuple("axyz")
    assert cut_whole(mixed, ten_each, 10).names == tuple("xyz"), "what a request chose stays"

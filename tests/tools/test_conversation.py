"""The listing of a conversation over a large library: chosen for the first request, then only appended to."""

import asyncio
import gc
import json
import pickle
import random
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest

import prowess
from prowess import AutoSelector, SelectorChain, Session, TagSelector, Toolset

Put = Callable[..., Path]
Talk = Callable[..., Session]

TOPICS = ("invoice", "poem", "chart", "lecture", "garden", "recipe", "contract", "melody")
PARTS = ("draft", "review", "merge", "archive", "export", "translate", "check", "print", "sort", "plan")
POEM = "please review this poem for me"
RECIPE = "and now sort my recipe collection"
CHART = "export the chart as a picture"
BUDGET = 600
FOREIGN = [dialect for dialect in prowess.DIALECTS if dialect != "prowess"]


def make_skill(name: str, description: str = "", *, tags: tuple[str, ...] = ()) -> prowess.Skill:
    text = description or "Knows how to {1} each {0} that is given to it.".format(*name.split("-"))
    return prowess.Skill(prowess.Frontmatter(name=name, description=text, tags=tags), body=f"Steps of {name}.")


NAMES = [f"{topic}-{part}" for topic in TOPICS for part in PARTS]
LIBRARY = [make_skill(name, tags=(name.partition("-")[0],)) for name in NAMES]


@pytest.fixture
def catalog() -> prowess.Catalog:
    """Eighty skills, which cost about 2,500 tokens in the listing of our dialect."""
    return prowess.Catalog(LIBRARY)


def begin(catalog: prowess.Catalog, budget: int = BUDGET, **options: object) -> Toolset:
    return Toolset(Session(catalog, selector=AutoSelector(budget), **options))  # type: ignore[arg-type]


def listed(prompt: str) -> list[str]:
    return re.findall(r"<name>([^<]*)</name>", prompt)


def entries(prompt: str) -> str:
    """The beginning of a prompt, up to its last entry: what a provider's cache can use again."""
    return prompt[: prompt.rindex("</skill>")]


# -- the course of a conversation -------------------------------------------------------------------------------------


def test_every_later_prompt_begins_with_the_entries_of_the_earlier_ones(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, 900)
    before = ""
    for query in (POEM, RECIPE, "", CHART, POEM, "garden-plan, please", "", "merge two contracts into one"):
        prompt = toolset.prompt(query)
        assert prompt.startswith(entries(before) if before else "")
        before = prompt
    assert listed(before)[0] == "poem-review"
    assert {"recipe-sort", "chart-export", "garden-plan"} <= set(listed(before))


def test_the_first_request_fills_three_quarters_and_later_ones_the_rest(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    toolset.prompt(POEM)
    assert 0.6 * BUDGET < toolset.report().tokens <= 0.75 * BUDGET
    for topic, part in zip(TOPICS, PARTS, strict=False):
        toolset.prompt(f"please {part} every {topic} that I have")
    assert 0.8 * BUDGET < toolset.report().tokens <= BUDGET


def test_without_a_request_everything_is_shortened_and_the_first_request_still_chooses(
    catalog: prowess.Catalog,
) -> None:
    toolset = begin(catalog)
    shortened = toolset.prompt()
    assert listed(shortened) == sorted(NAMES)[: len(listed(shortened))]
    assert toolset.report().tokens <= BUDGET
    assert shortened == Toolset(Session(catalog, selector=None)).prompt() or toolset.report().is_cut
    chosen = toolset.prompt(POEM)
    assert listed(chosen)[0] == "poem-review"
    assert toolset.prompt() == chosen, "and it does not flip back"


def test_while_everything_fits_nothing_is_chosen(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, 4_000)
    for query in ("", POEM, RECIPE):
        assert toolset.prompt(query) == Toolset(Session(catalog, selector=None)).prompt()
    assert not toolset.report().is_cut


def test_two_in_a_hundred_of_the_window_are_the_budget(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(window=30_000))
    toolset = Toolset(session)
    toolset.prompt(POEM)
    assert toolset.report().budget == 600
    assert toolset.report().tokens <= 450


def test_the_default_of_a_session_has_4000_tokens() -> None:
    skills = [make_skill(name, f"Has to review each {name} in many ways. " * 6) for name in NAMES]
    toolset = Toolset(Session(prowess.Catalog(skills)))
    assert listed(toolset.prompt(POEM))[0] == "poem-review"
    assert (toolset.report().budget, toolset.report().is_cut) == (4_000, True)
    assert 2_500 < toolset.report().tokens <= 3_000


def test_what_is_listed_is_never_shortened(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    for query in (POEM, RECIPE, CHART):
        toolset.prompt(query)
        assert (toolset.report().shortened, toolset.report().dropped) == ((), ())


# -- active, preloaded and named --------------------------------------------------------------------------------------


def test_a_skill_that_was_found_by_search_and_loaded_is_listed_from_then_on(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    before = toolset.prompt(POEM)
    assert "melody-merge" not in before
    found = toolset.call("search_skills", {"query": "merge a melody"}).data["names"]
    assert found[0] == "melody-merge"
    assert "Steps of melody-merge." in toolset.call("load_skill", {"name": "melody-merge"}).content
    for query in ("", RECIPE):
        after = toolset.prompt(query)
        assert after.startswith(entries(before))
        assert "melody-merge" in listed(after)
    assert toolset.report().reasons["melody-merge"] == "active"
    toolset.session.deactivate("melody-merge")
    assert toolset.prompt() == after, "nothing that was shown is taken away"


def test_active_and_named_skills_are_listed_when_the_budget_is_full(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    for topic, part in zip(TOPICS, PARTS, strict=False):
        before = toolset.prompt(f"please {part} every {topic} that I have")
    left = [name for name in NAMES if name not in listed(before)]
    toolset.session.activate(left[0])
    after = toolset.prompt(f"use {left[1]} for it")
    assert after.startswith(entries(before))
    assert set(left[:2]) <= set(listed(after))
    assert toolset.report().reasons[left[1]] == "named in the request"


def test_preloaded_skills_are_listed_with_the_first_request(tmp_path: Path, put: Put, catalog: prowess.Catalog) -> None:
    put("always-on", description="Sets the tone of every answer.")
    source = prowess.Source.directory(tmp_path / "skills", preload=True)
    toolset = begin(prowess.Catalog.from_sources([source]) | catalog)
    prompt = toolset.prompt(POEM)
    assert listed(prompt)[0] == "always-on"
    assert toolset.report().reasons["always-on"] == "preloaded"


def test_the_selectors_budget_is_for_the_listing_and_not_for_preloaded_text(tmp_path: Path, put: Put) -> None:
    put("always-on", body="Say what you are going to do. " * 2_000)
    put("other", description="Does another thing.")
    source = prowess.Source.directory(tmp_path / "skills" / "always-on", preload=True)
    catalog = prowess.Catalog.from_sources([source, prowess.Source.directory(tmp_path / "skills")])
    toolset = Toolset(Session(catalog))
    assert listed(toolset.prompt("do the other thing now")) == ["always-on", "other"]
    assert not toolset.report().is_cut


# -- tools ------------------------------------------------------------------------------------------------------------


def test_tools_do_not_depend_on_the_query(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    first = toolset.tools(POEM)
    for query in ("", POEM, RECIPE, "nothing of the kind"):
        toolset.prompt(query)
        assert toolset.tools(query) == first
    assert "search_skills" in [tool.name for tool in first]
    assert "enum" not in first[0].parameters["properties"]["name"]


def test_there_is_an_enum_only_while_nothing_is_cut(catalog: prowess.Catalog) -> None:
    few = prowess.Catalog(catalog.skills[:12])
    whole = Toolset(Session(few)).tools(POEM)
    assert whole[0].parameters["properties"]["name"]["enum"] == list(few.names)
    assert "search_skills" not in [tool.name for tool in whole]
    cut = begin(few, 100).tools(POEM)
    assert "enum" not in cut[0].parameters["properties"]["name"]
    assert "search_skills" in [tool.name for tool in cut]


def test_every_allowed_skill_can_be_loaded_and_no_other(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(100))
    toolset = Toolset(session, allowed=[name for name in NAMES if "poem" not in name])
    toolset.prompt(RECIPE)
    assert not toolset.call("load_skill", {"name": "melody-draft"}).is_error
    assert toolset.call("load_skill", {"name": "poem-draft"}).is_error


def test_a_filter_before_the_selector_holds_for_the_tools_too(catalog: prowess.Catalog) -> None:
    toolset = Toolset(Session(catalog, selector=SelectorChain(TagSelector(["poem"]), AutoSelector(4_000))))
    assert listed(toolset.prompt(POEM)) == sorted(name for name in NAMES if name.startswith("poem"))
    small = Toolset(Session(catalog, selector=SelectorChain(TagSelector(["poem", "chart"]), AutoSelector(200))))
    first = small.prompt(POEM)
    assert small.prompt(CHART).startswith(entries(first))
    assert {name.partition("-")[0] for name in listed(small.prompt(RECIPE))} == {"poem", "chart"}
    assert small.tools(POEM) == small.tools(CHART)


# -- what changes around a conversation -------------------------------------------------------------------------------


def test_allowed_skills_alone_are_ranked(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(BUDGET))
    allowed = [name for name in NAMES if name != "poem-review"]
    toolset = Toolset(session, allowed=allowed)
    first = toolset.prompt(POEM)
    assert set(listed(first)) <= set(allowed)
    assert toolset.prompt(RECIPE).startswith(entries(first))
    assert toolset.report().reasons["poem-review"] == "not among the allowed skills"
    few = Toolset(session, allowed=["melody-plan", "garden-sort"])
    assert listed(few.prompt(POEM)) == ["garden-sort", "melody-plan"], "they fit, so that both are shown"


def test_skills_that_are_kept_for_explicit_calls_are_not_shown(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, explicit_only=["poem-review"])
    assert "poem-review" not in listed(toolset.prompt("/poem-review " + POEM))
    assert "explicit" in toolset.report().reasons["poem-review"]


def test_a_filter_hides_for_as_long_as_it_holds(tmp_path: Path, put: Put) -> None:
    for skill in LIBRARY:
        put(skill.name, description=skill.description)
    session = Session(prowess.scan(tmp_path / "skills"), selector=AutoSelector(BUDGET), base_dir=tmp_path)
    toolset = Toolset(session)
    before = toolset.prompt(POEM)
    with prowess.skill_filter("skills/poem-*"):
        inside = listed(toolset.prompt())
        assert inside[0] == "poem-review"
        assert sorted(inside) == sorted(name for name in NAMES if name.startswith("poem")), "all of these fit"
    after = toolset.prompt()
    assert after.startswith(entries(before))
    assert set(listed(after)) == {*listed(before), *inside}, "and what was shown stays"
    session.set_filter("skills/[!p]*")
    without = toolset.prompt()
    assert [name for name in listed(after) if not name.startswith("poem")] == listed(without)
    assert toolset.report().reasons["poem-review"] == "a filter hides it"
    session.set_filter("")
    assert toolset.prompt() == after


def test_when_a_filter_is_lifted_the_budget_still_holds(tmp_path: Path, put: Put) -> None:
    """Behind each filter everything fits, but not all of it together."""
    for skill in LIBRARY:
        put(skill.name, description=skill.description)
    session = Session(prowess.scan(tmp_path / "skills"), selector=AutoSelector(BUDGET), base_dir=tmp_path)
    toolset = Toolset(session)
    for topic in TOPICS:
        with prowess.skill_filter(f"skills/{topic}-*"):
            assert len(listed(toolset.prompt(f"what can you do with a {topic}?"))) == 10
    prompt = toolset.prompt()
    assert toolset.report().tokens <= BUDGET
    assert listed(prompt)[:10] == sorted(name for name in NAMES if name.startswith("invoice"))


def test_a_refresh_takes_away_what_is_gone_and_adds_what_fits(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    before = listed(toolset.prompt(POEM))
    gone = before[1]
    newer = [skill for skill in LIBRARY if skill.name != gone]
    toolset.session.refresh(prowess.Catalog([*newer, make_skill("sonnet-rhyme", "Finds rhymes for a sonnet.")]))
    after = listed(toolset.prompt("find a rhyme for my sonnet"))
    assert after[: len(before) - 1] == [name for name in before if name != gone]
    assert "sonnet-rhyme" in after
    toolset.session.refresh(catalog)
    assert listed(toolset.prompt())[: len(before)] == before, "a skill that is back stands where it stood"


def test_a_live_catalogue_keeps_what_was_shown(tmp_path: Path, put: Put) -> None:
    for skill in LIBRARY:
        put(skill.name, description=skill.description)
    with prowess.live(tmp_path / "skills", every=0.02, notice="stat") as live:
        toolset = Toolset(Session(live, selector=AutoSelector(BUDGET)))
        before = toolset.prompt(POEM)
        put("sonnet-rhyme", description="Finds rhymes for a sonnet.")
        while (seen := live.catalog) and "sonnet-rhyme" not in seen:  # the folder may be noticed before its file
            live.wait_for_change(seen)
        after = toolset.prompt("find a rhyme for my sonnet")
        assert after.startswith(entries(before))
        assert "sonnet-rhyme" in listed(after)


def test_a_library_that_outgrows_the_budget_keeps_what_was_shown(catalog: prowess.Catalog) -> None:
    few = prowess.Catalog(LIBRARY[::5])
    toolset = begin(few)
    before = toolset.prompt(RECIPE)
    assert listed(before) == list(few.names)
    toolset.session.refresh(few | prowess.Catalog([make_skill("a-new", "Is new.")]))
    grown = toolset.prompt(RECIPE)
    assert grown.startswith(entries(before)), "what is new is appended, although its name comes first"
    assert listed(grown)[-1] == "a-new"
    toolset.session.refresh(catalog)
    assert listed(toolset.prompt(POEM))[: len(few)] == list(few.names)


def test_a_skill_that_changed_is_shown_as_it_is_now(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    before = listed(toolset.prompt(POEM))
    other = make_skill("poem-review", "Reads verses with a critical eye.")
    toolset.session.refresh(prowess.Catalog([other, *LIBRARY]))
    after = toolset.prompt()
    assert listed(after) == before
    assert "Reads verses with a critical eye." in after


def test_another_selector_begins_anew(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    toolset.prompt(POEM)
    toolset.session.set_selector("auto")
    assert listed(toolset.prompt(RECIPE)) == list(catalog.names), "within 4,000 tokens everything fits"
    toolset.session.set_selector(AutoSelector(BUDGET))
    assert listed(toolset.prompt(RECIPE))[0] == "recipe-sort"


# -- saved sessions ---------------------------------------------------------------------------------------------------


def test_a_restored_session_shows_the_same_listing(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    toolset.prompt(POEM)
    toolset.session.activate("melody-merge")
    before = toolset.prompt(RECIPE)
    saved = toolset.session.save()
    other_process = prowess.Catalog(LIBRARY)
    session, issues = Session.restore(other_process, saved, selector=AutoSelector(BUDGET))
    assert issues == ()
    again = Toolset(session)
    assert again.prompt() == before
    assert again.tools() == toolset.tools()
    assert again.prompt(CHART) == toolset.prompt(CHART)
    assert session.save() == toolset.session.save()
    assert again.report().reasons["poem-review"] == "chosen for the first request (rank 1)"
    assert again.report().reasons["melody-merge"] == toolset.report().reasons["melody-merge"] == "active"
    assert POEM not in saved, "what a person wrote is not saved"


def test_a_save_from_before_has_nothing_that_was_shown(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    toolset.prompt(POEM)
    data = json.loads(toolset.session.save())
    del data["shown"]
    session, _ = Session.restore(catalog, json.dumps(data), selector=AutoSelector(BUDGET))
    assert listed(Toolset(session).prompt(RECIPE))[0] == "recipe-sort"


@pytest.mark.parametrize(
    "shown",
    [
        None,
        {},
        "poem-review",
        [["prowess", 600, []]],
        [{"place": "prowess", "budget": 600}],
        [{"place": "prowess", "budget": "600", "names": []}],
        [{"place": "prowess", "budget": True, "names": []}],
        [{"place": 7, "budget": 600, "names": []}],
        [{"place": "prowess", "budget": 600, "names": ["a"]}],
        [{"place": "prowess", "budget": 600, "names": [7], "reasons": [["active", 0]]}],
        [{"place": "prowess", "budget": 600, "names": [], "reasons": 7}],
        [{"place": "prowess", "budget": 600, "names": ["a"], "reasons": []}],
        [{"place": "prowess", "budget": 600, "names": ["a"], "reasons": [["active"]]}],
        [{"place": "prowess", "budget": 600, "names": ["a"], "reasons": [["active", "0"]]}],
        [{"place": "prowess", "budget": 600, "names": ["a"], "reasons": [[7, 0]]}],
    ],
)
def test_a_save_with_anything_else_in_its_place_is_refused(shown: object, catalog: prowess.Catalog) -> None:
    data = json.loads(Session(catalog).save()) | {"shown": shown}
    with pytest.raises(prowess.SourceError, match="saved session"):
        Session.restore(catalog, json.dumps(data))


def test_names_that_somebody_wrote_into_a_save_show_no_more_than_may_be_shown(catalog: prowess.Catalog) -> None:
    names = ["poem-review", "poem-review", "nobody", "chart-plan"]
    data = json.loads(Session(catalog, explicit_only=["chart-plan"]).save())
    data["shown"] = [{"place": "prowess", "budget": BUDGET, "names": names, "reasons": [["active", 0]] * 4}]
    session, _ = Session.restore(catalog, json.dumps(data), selector=AutoSelector(BUDGET))
    assert listed(Toolset(session).prompt()) == ["poem-review"]


# -- several toolsets -------------------------------------------------------------------------------------------------


def test_two_toolsets_over_one_session_show_the_same(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(BUDGET))
    first = Toolset(session).prompt(POEM)
    assert Toolset(session).prompt() == first
    assert Toolset(session, allowed=NAMES).prompt(RECIPE).startswith(entries(first))


def test_toolsets_with_other_budgets_keep_their_own_listings(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    sizes = (300, 700, 1_200)
    toolsets = [Toolset(session, budget=budget) for budget in sizes]
    before = [toolset.prompt(POEM) for toolset in toolsets]
    for query in (RECIPE, CHART, "", "plan my garden for the spring"):
        after = [toolset.prompt(query) for toolset in toolsets]
        assert [new.startswith(entries(old)) for new, old in zip(after, before, strict=True)] == [True] * 3
        assert all(prowess.estimate_tokens(new) <= budget for new, budget in zip(after, sizes, strict=True))
        before = after
    assert all("recipe-sort" in prompt for prompt in before)


def test_a_budget_that_changes_with_each_request_keeps_the_beginning(catalog: prowess.Catalog) -> None:
    session = Session(catalog)
    before = listed(Toolset(session, budget=1_000).prompt(POEM))
    for budget in range(990, 700, -10):
        after = listed(Toolset(session, budget=budget).prompt(POEM))
        common = min(len(before), len(after))
        assert after[:common] == before[:common]
        assert common > 10
    assert len(json.loads(session.save())["shown"]) == 8, "the latest of them are remembered"


@pytest.mark.parametrize("dialect", FOREIGN)
def test_other_dialects_show_everything_by_default(dialect: prowess.DialectName) -> None:
    skills = [make_skill(name, f"Cares for each {name} in many ways. " * 6) for name in NAMES]
    catalog = prowess.Catalog(skills)
    toolset, plain = Toolset(Session(catalog), dialect), Toolset(Session(catalog, selector=None), dialect)
    for query in ("", POEM):
        assert (toolset.prompt(query), toolset.tools(query)) == (plain.prompt(query), plain.tools(query))
    assert (toolset.report().is_cut, toolset.report().budget) == (False, None)


@pytest.mark.parametrize("dialect", FOREIGN)
@pytest.mark.parametrize("in_description", [False, True])
def test_a_selector_that_the_host_gave_works_in_every_dialect(
    dialect: prowess.DialectName, in_description: bool, catalog: prowess.Catalog
) -> None:
    session = Session(catalog, selector=AutoSelector(BUDGET))
    toolset = Toolset(session, dialect, allowed=NAMES[::-1], index_in_description=in_description)

    def ask(query: str) -> str:
        prompt, tools = toolset.prompt(query), toolset.tools(query)
        assert "enum" not in str(tools[0].parameters)
        return prompt or tools[0].description

    first = ask(POEM)
    shown = toolset.report().shown
    assert shown[0] == "poem-review"
    second = ask(RECIPE)
    assert toolset.report().shown[: len(shown)] == shown
    assert second.index("poem-review") == first.index("poem-review")
    assert ask("") == second
    assert toolset.report().tokens <= BUDGET


def test_two_dialects_over_one_session_choose_apart_from_each_other(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(BUDGET))
    ours, theirs = Toolset(session), Toolset(session, "use_skill")
    ours.prompt(POEM)
    theirs.prompt(RECIPE)
    assert (ours.report().shown[0], theirs.report().shown[0]) == ("poem-review", "recipe-sort")
    assert ours.prompt().startswith(entries(ours.prompt()))


# -- the budget of a toolset ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [0, 20, 60, 150, 400, 900])
def test_the_budget_of_a_toolset_wins_and_holds_for_the_whole_prompt(budget: int, catalog: prowess.Catalog) -> None:
    toolset = Toolset(Session(catalog, selector=AutoSelector(4_000)), budget=budget)
    for query in (POEM, RECIPE, CHART, "use melody-merge for it", ""):
        prompt = toolset.prompt(query)
        assert prowess.estimate_tokens(prompt) <= budget or not toolset.report().shown
        assert toolset.report().budget == budget


def test_tokens_are_counted_as_the_toolset_counts_them(catalog: prowess.Catalog) -> None:
    session = Session(catalog, selector=AutoSelector(BUDGET))
    characters = Toolset(session, tokens=len)
    characters.prompt(POEM)
    assert (characters.report().tokens, characters.report().counter) == (len(characters.report().text), "len")
    assert 300 < characters.report().tokens <= BUDGET
    coarse = Toolset(Session(catalog, selector=AutoSelector(BUDGET)), tokens=lambda text: len(text) // 100)
    assert listed(coarse.prompt(POEM)) == list(catalog.names)


# -- asynchronous hosts and threads -----------------------------------------------------------------------------------


class RanksLater:
    """A ranking that must be awaited."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop] = []

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> Iterable[str]:
        self.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return [skill.name for skill in candidates if skill.name.partition("-")[0] in query]


def test_a_prompt_awaits_what_ranks_in_the_callers_loop(catalog: prowess.Catalog) -> None:
    base = RanksLater()
    toolset = Toolset(Session(catalog, selector=AutoSelector(BUDGET, base=base)))

    async def main() -> None:
        first = await toolset.aprompt(POEM)
        second = await toolset.aprompt(RECIPE)
        assert listed(first)[0] == "poem-archive"
        assert second.startswith(entries(first))
        assert await toolset.aprompt() == toolset.prompt() == second
        assert await toolset.atools(POEM) == toolset.tools()
        assert set(base.loops) == {asyncio.get_running_loop()}

    asyncio.run(main())
    assert toolset.prompt(CHART).startswith(entries(toolset.prompt()))


def test_requests_at_the_same_time_come_one_after_the_other(catalog: prowess.Catalog) -> None:
    """Whatever one of them was shown, each later prompt begins with it."""
    toolset = begin(catalog, 1_200)
    start = threading.Barrier(8)
    shown: list[list[str]] = []

    def ask(topic: str) -> None:
        start.wait()
        shown.extend(listed(toolset.prompt(f"please {part} every {topic} that I have")) for part in PARTS[:3])

    threads = [threading.Thread(target=ask, args=(topic,)) for topic in TOPICS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = listed(toolset.prompt())
    assert len(shown) == 24
    assert all(names == last[: len(names)] for names in shown)


# -- the caches -------------------------------------------------------------------------------------------------------


def test_conversations_that_ask_the_same_share_their_prompt(catalog: prowess.Catalog) -> None:
    prompts = [(toolset.prompt(POEM), toolset.prompt(RECIPE)) for toolset in (begin(catalog) for _ in range(5))]
    assert all(first is prompts[0][0] and second is prompts[0][1] for first, second in prompts)


def test_the_caches_do_not_grow_with_the_conversations(catalog: prowess.Catalog) -> None:
    limits = prowess.Limits(max_listings=4)
    queries = [f"use {NAMES[number]} and {NAMES[-number]}" for number in range(1, 40)]
    prompts = [begin(catalog, limits=limits).prompt(query) for query in queries]

    def is_kept(number: int) -> bool:
        again = begin(catalog, limits=limits).prompt(queries[number])
        assert again == prompts[number]
        return again is prompts[number]  # one that was made again is another string

    assert is_kept(-1)
    assert not any(map(is_kept, range(35)))


def test_a_report_is_made_again_when_its_listing_is_kept_no_more(catalog: prowess.Catalog) -> None:
    limits = prowess.Limits(max_listings=1)
    toolset = begin(catalog, limits=limits)
    toolset.prompt(POEM)
    before = toolset.report()
    begin(catalog, limits=limits).prompt(RECIPE)
    assert toolset.report() == before


def test_a_catalogue_goes_although_listings_were_made_of_it() -> None:
    catalog = prowess.Catalog(LIBRARY)
    toolset = begin(catalog)
    toolset.tools()
    assert toolset.prompt(POEM) is begin(catalog).prompt(POEM)  # so it is kept
    gone = weakref.ref(catalog)
    del toolset, catalog
    gc.collect()
    assert gone() is None


class FirstNames:
    """A ranking that costs nothing, whatever the size of the library."""

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
        return [skill.name for skill in candidates[:100]]


def test_no_more_is_counted_in_a_larger_library() -> None:
    """Counting tokens is most of the work of a prompt. Thousands of entries would take longer than searching them."""

    def count_work(size: int) -> int:
        counted = 0

        def count(text: str) -> int:
            nonlocal counted
            counted += len(text)
            return prowess.estimate_tokens(text)

        skills = (make_skill(f"skill-{number:04}", "Does one of the many things.") for number in range(size))
        session = Session(prowess.Catalog(skills), selector=AutoSelector(BUDGET, base=FirstNames()))
        toolset = Toolset(session, tokens=count)
        for query in ("", POEM, RECIPE):
            toolset.prompt(query)
            toolset.tools(query)
        return counted

    small, large = count_work(100), count_work(2_000)
    assert 0 < large <= 1.5 * small


# -- reports ----------------------------------------------------------------------------------------------------------


def test_the_report_says_of_every_skill_why_it_is_shown_or_not(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, explicit_only=["melody-plan"])
    toolset.prompt(POEM)
    toolset.session.activate("garden-draft")
    toolset.prompt(RECIPE)
    report = toolset.report()
    assert list(report.reasons) == list(catalog.names)
    assert report.reasons["poem-review"] == "chosen for the first request (rank 1; words: review, poem)"
    assert report.reasons["recipe-sort"] == "appended for a later request (rank 1; words: sort, recipe)"
    assert report.reasons["garden-draft"] == "active"
    assert report.reasons["melody-draft"] == "not among the best for the request"
    assert "explicit_only" in report.reasons["melody-plan"]
    assert set(report.shown) | set(report.omitted) == set(NAMES) - {"melody-plan"}
    assert "left out" in str(report)
    with pytest.raises(KeyError):
        report.reasons["nobody"]


def test_the_report_says_what_found_no_room(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, 200)
    toolset.prompt(POEM)
    for query in (RECIPE, CHART, "plan my garden for the spring"):
        toolset.prompt(query)
    assert "no room in the budget" in toolset.report().reasons.values()


def test_a_report_without_a_request_says_what_the_budget_did(catalog: prowess.Catalog) -> None:
    whole = Toolset(Session(catalog)).report()
    assert set(whole.reasons.values()) == {"everything fits"}
    cut = begin(catalog, 2_300).report()
    assert cut.reasons["poem-review"] == "everything is listed; the budget shortened its description"
    bare = begin(catalog).report()
    as_many = "no request has chosen skills, so as many are listed as fit the budget"
    assert bare.reasons["chart-archive"] == f"{as_many}; the budget left out its description"
    assert bare.reasons["recipe-translate"] == "no room in the budget"
    plain = Toolset(Session(catalog, selector=None)).report()
    assert set(plain.reasons.values()) == {"everything is listed"}


def test_a_report_of_another_selector_says_what_it_picked(catalog: prowess.Catalog) -> None:
    toolset = Toolset(Session(catalog, selector=prowess.LexicalSelector(3)))
    toolset.prompt(POEM)
    reasons = toolset.report().reasons
    assert (reasons["poem-review"], reasons["chart-plan"]) == ("picked by the selector", "not picked by the selector")


def test_a_report_can_be_pickled(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog)
    toolset.prompt(POEM)
    again = pickle.loads(pickle.dumps(toolset.report()))  # noqa: S301 - made in the line itself
    assert again == toolset.report()
    assert again.reasons == dict(toolset.report().reasons)


def test_listeners_hear_what_was_listed_and_what_was_left_out(catalog: prowess.Catalog) -> None:
    events: list[prowess.Event] = []
    toolset = begin(catalog, on_event=events.append)
    toolset.prompt(POEM)
    listing, cut = events
    assert (listing.kind, listing.detail["names"]) == ("listed", toolset.report().shown)
    assert (cut.kind, cut.detail["omitted"]) == ("cut", toolset.report().omitted)
    assert len(toolset.report().omitted) == 80 - len(toolset.report().shown)


def test_an_explanation_has_the_reason_of_the_listing(catalog: prowess.Catalog) -> None:
    toolset = begin(catalog, explicit_only=["melody-plan"])
    toolset.prompt(POEM)
    toolset.session.activate("poem-review")
    shown, left, hidden = (toolset.explain(name) for name in ("poem-review", "garden-draft", "melody-plan"))
    assert shown.reasons[-2] == "active in this conversation"
    assert shown.reasons[-1].startswith("in the listing: chosen for the first request")
    assert (left.visible, left.reasons[-1]) == (True, "not in the listing: not among the best for the request")
    assert (hidden.visible, "explicit_only" in hidden.reasons[-1]) == (False, True)
    assert toolset.explain("nobody") == catalog.explain("nobody")
    assert toolset.session.explain("garden-draft") == catalog.explain("garden-draft")


# -- whatever happens -------------------------------------------------------------------------------------------------


def take_steps(toolset: Toolset, rng: random.Random) -> Iterator[tuple[str, set[str]]]:
    """Do something to a conversation again and again; yield each prompt, and the names that may be in it."""
    session, library = toolset.session, list(LIBRARY)
    hidden: set[str] = set()
    for _ in range(40):
        step = rng.choice(("ask", "ask", "ask", "look", "load", "unload", "refresh", "greet"))
        query = ""
        if step == "ask":
            query = f"please {rng.choice(PARTS)} my {rng.choice(TOPICS)} and {rng.choice(NAMES)}"
        elif step == "greet":
            query = "hello"
        elif step == "load":
            toolset.call("load_skill", {"name": rng.choice(NAMES)})
        elif step == "unload" and session.active_skills:
            toolset.call("unload_skill", {"name": rng.choice(session.active_skills)})
        elif step == "refresh":
            hidden = set(rng.sample(NAMES, rng.choice((0, 5, 70))))
            session.refresh(prowess.Catalog(skill for skill in library if skill.name not in hidden))
        yield toolset.prompt(query), set(NAMES) - hidden


@pytest.mark.parametrize("budget", [200, 600, 1_500])
def test_whatever_happens_nothing_that_was_shown_is_taken_away_or_moves(budget: int, rng: random.Random) -> None:
    toolset = begin(prowess.Catalog(LIBRARY), budget)
    order: list[str] = []
    for prompt, present in take_steps(toolset, rng):
        names, reasons = listed(prompt), toolset.report().reasons
        assert [name for name in names if name in order] == [name for name in order if name in present]
        # What was shown because everything fitted may go when everything fits no more.
        chosen = [name for name in names if not reasons[name].startswith(("everything", "no request", "shown while"))]
        order += [name for name in chosen if name not in order]
    assert order


def test_an_active_skill_is_listed_before_any_request_although_not_all_fit() -> None:
    skills = [
        prowess.parse_skill(f"---\nname: skill-{number:04}\ndescription: Number {number}.\n---\nDo it.\n").skill
        for number in range(2_000)
    ]
    session = prowess.Session(prowess.Catalog(skills))
    toolset = prowess.Toolset(session)
    assert "skill-1999" not in toolset.prompt()
    session.activate("skill-1999")
    assert "skill-1999" in toolset.prompt()
    assert toolset.report().shown[0] == "skill-1999"

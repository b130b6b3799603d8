"""A prompt and a list of tools are made once, whoever asks; and anew as soon as anything that they show has changed."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]
Load = Callable[[prowess.Toolset, str], prowess.ToolResult]

MANY = 300
ASKERS = 4
TURNS = 60
BUDGETS = (150, 250, 300, 350, 400, 500)


@pytest.fixture
def library(put: Put, tmp_path: Path) -> prowess.Catalog:
    """Three skills: one with a script, one that forks, one more."""
    put("pdf", description="Fills forms.", files={"scripts/a.py": "print(1)\n"})
    put("csv", description="Profiles tables.", fields="context: fork\n")
    put("xml", description="Reads trees.", body="Read the tree.\n")
    return prowess.scan(tmp_path / "skills")


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """How many functions of ours were called inside the block, by this thread: does not depend on the machine."""
    count = [0]

    def note(frame: object, event: str, _argument: object) -> None:
        if event == "call" and "prowess" in frame.f_code.co_filename:  # type: ignore[attr-defined]  # a frame
            count[0] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(before)


def shown(toolset: prowess.Toolset, query: str = "") -> tuple[str, list[prowess.JsonSchemaTool]]:
    """Everything that a model is shown before it calls anything."""
    return toolset.prompt(query), [tool.to_json_schema() for tool in toolset.tools(query)]


def fresh(toolset: prowess.Toolset, catalog: prowess.Catalog) -> prowess.Toolset:
    """The same toolset over a copy of its catalogue, of which nothing is kept."""
    session = prowess.Session(
        prowess.Catalog(catalog.skills), filter=toolset.session.filter, base_dir=toolset.session.base_dir
    )
    return prowess.Toolset(session, toolset.dialect)


# -- made once ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [None, 4_000])
def test_asking_again_costs_nothing_that_grows_with_the_skills(
    budget: int | None, dialect: prowess.DialectName, put: Put, talk: Talk
) -> None:
    for number in range(MANY):
        put(f"skill-{number}", description="Does thing after thing, carefully.")
    toolset = prowess.Toolset(talk(on_event=None), dialect, budget=budget)
    first = shown(toolset)
    with counted_calls() as calls:
        again = shown(toolset)
    assert again == first
    assert calls[0] < MANY


def test_one_prompt_serves_every_session_over_a_catalogue(
    library: prowess.Catalog, dialect: prowess.DialectName
) -> None:
    first = prowess.Toolset(prowess.Session(library), dialect, index_in_description=False).prompt()
    other = prowess.Toolset(prowess.Session(library), dialect, index_in_description=False).prompt()
    assert first
    assert other is first


def test_without_a_budget_no_tokens_are_counted(put: Put, talk: Talk) -> None:
    """Counting reads every character of the listing; nobody who listens, and no bound, asked for it."""
    for number in range(MANY):
        put(f"skill-{number}", description="Does thing after thing, carefully.")
    toolset = prowess.Toolset(talk(on_event=None, selector=None))
    counting = prowess.estimate_tokens.__code__
    entered: list[object] = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code) if event == "call" else None)
    try:
        toolset.prompt()
    finally:
        sys.setprofile(None)
    assert counting not in entered


def test_asynchronous_hosts_get_the_same_prompt(library: prowess.Catalog) -> None:
    toolset = prowess.Toolset(prowess.Session(library))

    async def ask() -> tuple[str, Sequence[prowess.ToolDefinition]]:
        return await toolset.aprompt(), await toolset.atools()

    prompt, tools = asyncio.run(ask())
    assert prompt is toolset.prompt()
    assert tools == toolset.tools()


def test_every_prompt_is_told_of(library: prowess.Catalog, talk: Talk, events: list[prowess.Event]) -> None:
    toolset = prowess.Toolset(talk(library), budget=60)
    toolset.prompt()
    once = list(events)
    assert [event.kind for event in once] == ["listed", "cut"]
    toolset.prompt()
    assert [(event.kind, event.detail) for event in events] == [(event.kind, event.detail) for event in once * 2]


def test_the_report_is_of_the_toolset_that_is_asked(library: prowess.Catalog) -> None:
    session = prowess.Session(library)
    small, large = prowess.Toolset(session, budget=60), prowess.Toolset(session)
    small.prompt()
    large.prompt()
    assert (small.report().is_cut, small.report().budget) == (True, 60)
    assert (large.report().is_cut, large.report().budget) == (False, 4_000)


def test_a_host_that_changes_a_definition_changes_its_own_alone(library: prowess.Catalog) -> None:
    toolset = prowess.Toolset(prowess.Session(library))
    before = shown(toolset)
    for tool in toolset.tools():
        for value in tool.parameters["properties"].values():
            value["enum"] = ["rm"]
        tool.parameters["properties"]["more"] = {}
    assert shown(toolset) == before
    assert shown(prowess.Toolset(prowess.Session(library))) == before


def test_no_more_is_kept_than_the_limit_says(library: prowess.Catalog) -> None:
    limits = prowess.Limits(max_listings=2)

    def ask(budget: int) -> str:
        return prowess.Toolset(prowess.Session(library, limits=limits), budget=budget).prompt()

    first = ask(1_000)
    assert ask(1_000) is first
    ask(1_001)
    assert ask(1_000) is first, "what was asked for last is kept"
    ask(1_002)
    assert ask(1_000) is first
    ask(1_003)
    ask(1_004)
    assert ask(1_000) == first
    assert ask(1_000) is not first


# -- and anew -------------------------------------------------------------------------------------------------------


def test_another_catalogue_is_another_prompt(library: prowess.Catalog, put: Put, tmp_path: Path) -> None:
    session = prowess.Session(library)
    toolset = prowess.Toolset(session)
    toolset.prompt()
    put("new", description="Is new.")
    session.refresh(prowess.scan(tmp_path / "skills"))
    assert "Is new." in toolset.prompt()
    assert "new" in str(toolset.tools()[0].parameters)


def test_filters_of_both_kinds_and_their_folder_are_another_prompt(library: prowess.Catalog, tmp_path: Path) -> None:
    session = prowess.Session(library, base_dir=tmp_path)
    toolset = prowess.Toolset(session)
    assert "csv" in toolset.prompt()
    with prowess.skill_filter("skills/pdf"):
        assert "csv" not in toolset.prompt()
        assert "csv" not in str(toolset.tools()[0].parameters)
    assert "csv" in toolset.prompt()
    session.set_filter("skills/xml")
    assert "csv" not in toolset.prompt()
    (tmp_path / "elsewhere").mkdir()
    elsewhere = prowess.Session(library, filter="skills/xml", base_dir=tmp_path / "elsewhere")
    assert prowess.Toolset(elsewhere).prompt() == ""
    assert "xml" in toolset.prompt()


def test_options_of_a_toolset_are_another_prompt(library: prowess.Catalog) -> None:
    session = prowess.Session(library)
    whole = shown(prowess.Toolset(session))
    others = [
        prowess.Toolset(session, allowed=["pdf"]),
        prowess.Toolset(session, budget=60),
        prowess.Toolset(session, "read_skill"),
        prowess.Toolset(session, fork="host"),
        prowess.Toolset(session, "skill__activate"),
        prowess.Toolset(session, "skill__activate", index_in_description=False),
    ]
    seen = [whole, *map(shown, others)]
    assert all(one != other for at, one in enumerate(seen) for other in seen[at + 1 :])


class ByWord:
    """A selector that picks by name, and another thing whenever its table changes."""

    def __init__(self) -> None:
        self.extra = "xml"
        self.asked = 0

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:
        self.asked += 1
        return [skill.name for skill in candidates if skill.name in {query, self.extra}]


def test_a_selector_is_asked_each_time_and_what_it_picks_counts(library: prowess.Catalog) -> None:
    selector = ByWord()
    toolset = prowess.Toolset(prowess.Session(library, selector=selector))
    assert ("csv" in toolset.prompt("pdf"), "pdf" in toolset.prompt("pdf")) == (False, True)
    assert "csv" in toolset.prompt("csv")
    selector.extra = "csv"
    assert "csv" in toolset.prompt("pdf")
    assert selector.asked == 4
    toolset.session.set_selector(None)
    assert "xml" in toolset.prompt("pdf")


class Slow:
    """A selector during whose work the catalogue is read again."""

    def __init__(self, reload: Callable[[], object]) -> None:
        self.reload = reload

    def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002 - the protocol
        self.reload()
        return [skill.name for skill in candidates]


def test_what_was_picked_from_a_catalogue_is_not_kept_for_the_next(
    library: prowess.Catalog, put: Put, tmp_path: Path
) -> None:
    put("pdf", description="Fills other forms.")
    newer = prowess.scan(tmp_path / "skills")
    session = prowess.Session(library)
    session.set_selector(Slow(lambda: session.refresh(newer)))
    toolset = prowess.Toolset(session)
    assert "Fills forms." in toolset.prompt("forms"), "a call sees the catalogue with which it began"
    session.set_selector(Slow(lambda: None))
    assert "Fills other forms." in toolset.prompt("forms")


def test_active_and_preloaded_skills_are_another_prompt(library: prowess.Catalog, tmp_path: Path) -> None:
    preload = prowess.Source.directory(tmp_path / "skills" / "xml", preload=True)
    catalog = prowess.Catalog.from_sources([prowess.Source.directory(tmp_path / "skills"), preload])
    session = prowess.Session(catalog)
    toolset = prowess.Toolset(session)
    assert "Read the tree." in toolset.prompt()
    session.deactivate("xml")
    assert "Read the tree." not in toolset.prompt()
    assert "Read the tree." in prowess.Toolset(prowess.Session(catalog)).prompt()
    assert len(library) == 3


def test_a_grant_and_another_policy_are_another_list_of_tools(library: prowess.Catalog, tmp_path: Path) -> None:
    trust = prowess.Trust(tmp_path / "trust.json")
    trust.grant(library["pdf"])
    toolset = prowess.Toolset(prowess.Session(library, trust=trust), scripts=True)
    assert "run_skill_script" in [tool.name for tool in toolset.tools()]
    trust.policy = "never"
    assert "run_skill_script" not in [tool.name for tool in toolset.tools()]
    trust.policy = "granted"
    assert "run_skill_script" in [tool.name for tool in toolset.tools()]
    untrusted = prowess.Toolset(prowess.Session(library), scripts=True)
    assert "run_skill_script" not in [tool.name for tool in untrusted.tools()]


def test_a_prompt_that_is_made_while_the_filter_changes_is_kept_for_no_other_filter(
    library: prowess.Catalog, tmp_path: Path
) -> None:
    patterns = ("skills/pdf", "skills/xml", "")
    session = prowess.Session(library, base_dir=tmp_path)
    toolset = prowess.Toolset(session)
    is_over = threading.Event()

    def ask() -> None:
        while not is_over.is_set():
            shown(toolset)

    askers = [threading.Thread(target=ask) for _ in range(ASKERS)]
    for asker in askers:
        asker.start()
    try:
        for turn in range(TURNS):
            session.set_filter(patterns[turn % len(patterns)])
    finally:
        is_over.set()
        for asker in askers:
            asker.join()
    for pattern in patterns:
        session.set_filter(pattern)
        assert shown(toolset) == shown(fresh(toolset, library))


# -- the budget holds for the whole prompt --------------------------------------------------------------------------


@pytest.fixture
def wordy(put: Put, tmp_path: Path) -> prowess.Catalog:
    """Twelve skills with long descriptions, and one that is preloaded."""
    for number in range(12):
        put(f"skill-{number:02}", description="Looks at what it is given from several sides, and says what is there.")
    folder = put("always", body="Always say what you are going to do before you do it.\n" * 4)
    return prowess.Catalog.from_sources(
        [prowess.Source.directory(tmp_path / "skills"), prowess.Source.directory(folder, preload=True)]
    )


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_budget_holds_for_the_whole_prompt(
    budget: int, dialect: prowess.DialectName, wordy: prowess.Catalog
) -> None:
    toolset = prowess.Toolset(prowess.Session(wordy), dialect, budget=budget, index_in_description=False)
    prompt = toolset.prompt()
    assert "Always say what you are going to do" in prompt, "preloaded instructions are never cut"
    report = toolset.report()
    assert prowess.estimate_tokens(prompt) <= budget or not report.shown
    assert report.budget == budget
    assert report.shown or budget == min(BUDGETS), "what is left is used"


def test_a_listing_in_a_description_shares_the_budget_with_what_is_preloaded(wordy: prowess.Catalog) -> None:
    toolset = prowess.Toolset(prowess.Session(wordy), "skill__activate", budget=200)
    prompt, listing = toolset.prompt(), toolset.tools()[0].description.partition("\n\n")[2]
    assert listing == toolset.report().text
    assert prowess.estimate_tokens(prompt) + prowess.estimate_tokens(listing) <= 200


def test_search_is_offered_when_what_is_preloaded_leaves_no_room(wordy: prowess.Catalog) -> None:
    session = prowess.Session(wordy)
    tokens = prowess.estimate_tokens(prowess.Toolset(session).prompt())
    assert "search_skills" not in [tool.name for tool in prowess.Toolset(session, budget=tokens).tools()]
    cut = prowess.Toolset(session, budget=tokens - 20)
    assert "search_skills" in [tool.name for tool in cut.tools()]
    assert cut.report().is_cut


def test_a_report_can_be_changed_and_compared_as_before(wordy: prowess.Catalog) -> None:
    report = prowess.Toolset(prowess.Session(wordy), budget=300).report()
    assert replace(report, budget=1).tokens == report.tokens == prowess.estimate_tokens(report.text)

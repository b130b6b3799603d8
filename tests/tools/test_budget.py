"""A listing within a budget, in every dialect, and the report of what was cut."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import prowess

Put = Callable[..., Path]
Talk = Callable[..., prowess.Session]

NAMES = tuple(f"skill-{number:02}" for number in range(12))
LONG = "Reads what it is given, looks at it from several sides, and then says in a few words what it found there."


@pytest.fixture
def many(put: Put, talk: Talk) -> prowess.Session:
    """Twelve skills with long descriptions."""
    for name in NAMES:
        put(name, description=LONG)
    return talk()


def listing(toolset: prowess.Toolset) -> str:
    """Where the dialect has its listing."""
    prompt = toolset.prompt()
    return prompt or toolset.tools()[0].description


def test_without_a_budget_nothing_is_cut(dialect: prowess.DialectName, many: prowess.Session) -> None:
    toolset = prowess.Toolset(many, dialect)
    text = listing(toolset)
    assert text.count(LONG) == 12
    report = toolset.report()
    # The default selector of our own dialect has a budget; the systems of the others have none.
    assert (report.is_cut, report.budget, report.shown) == (False, 4_000 if dialect == "prowess" else None, NAMES)


def test_a_generous_budget_cuts_nothing(dialect: prowess.DialectName, many: prowess.Session) -> None:
    toolset = prowess.Toolset(many, dialect, budget=100_000)
    assert listing(toolset).count(LONG) == 12
    assert not toolset.report().is_cut


def test_descriptions_are_shortened_first(dialect: prowess.DialectName, many: prowess.Session) -> None:
    """Every name stays, and the report names those that were cut and fits the budget."""
    whole = prowess.Toolset(many, dialect, index_in_description=False)
    whole.prompt()
    budget = whole.report().tokens - 5 * len(NAMES)
    toolset = prowess.Toolset(many, dialect, budget=budget)
    text = listing(toolset)
    report = toolset.report()
    assert all(name in text for name in NAMES)
    assert (report.shown, report.shortened, report.dropped, report.omitted) == (NAMES, NAMES, (), ())
    assert report.tokens <= budget
    assert LONG not in text
    assert LONG[:20] in text


def test_then_descriptions_go_and_then_entries_from_the_end(
    dialect: prowess.DialectName, many: prowess.Session
) -> None:
    seen: set[tuple[bool, bool, bool]] = set()
    for budget in range(2_000, 20, -20):
        toolset = prowess.Toolset(many, dialect, budget=budget)
        text = listing(toolset)
        report = toolset.report()
        seen.add((bool(report.shortened), bool(report.dropped), bool(report.omitted)))
        assert report.shown + report.omitted == NAMES
        assert [name for name in NAMES if name in text] == list(report.shown)
        assert not report.shown or report.tokens <= budget
        assert (LONG[:12] in text) is not bool(report.dropped or not report.shown)
    assert seen >= {(False, False, False), (True, False, False), (False, True, False), (False, True, True)}


def test_a_budget_of_nothing_lists_nothing(dialect: prowess.DialectName, many: prowess.Session) -> None:
    toolset = prowess.Toolset(many, dialect, budget=0)
    text = listing(toolset)
    assert not any(name in text for name in NAMES)
    assert toolset.report().omitted == NAMES


def test_the_report_can_be_asked_for_at_once(dialect: prowess.DialectName, many: prowess.Session) -> None:
    """Before any listing; it says how tokens were counted, in one line for people."""
    report = prowess.Toolset(many, dialect, budget=60, index_in_description=False).report()
    assert isinstance(report, prowess.BudgetReport)
    assert report.is_cut
    assert report.counter == "estimate"
    assert "estimate" in str(report)
    assert "\n" not in str(report)
    assert report.tokens == prowess.estimate_tokens(report.text)


def test_the_report_is_of_the_last_listing(put: Put, talk: Talk) -> None:
    put("pdf", description="Fills forms.")
    put("csv", description="Profiles tables.")
    toolset = prowess.Toolset(talk(selector=prowess.LexicalSelector()))
    toolset.prompt("fill forms")
    assert toolset.report().shown == ("pdf",)
    toolset.prompt()
    assert toolset.report().shown == ("csv", "pdf")


def test_what_is_cut_can_still_be_loaded(many: prowess.Session) -> None:
    toolset = prowess.Toolset(many, budget=0)
    assert not toolset.call("load_skill", {"name": NAMES[-1]}).is_error


def test_a_hosts_own_count_of_tokens_decides_what_fits(put: Put, talk: Talk) -> None:
    for number in range(8):
        put(f"skill-{number}", description="Does a thing, and says so at some length. " * 4)
    counted: list[str] = []

    def count_characters(text: str) -> int:
        counted.append(text)
        return len(text)

    toolset = prowess.Toolset(talk(), budget=900, tokens=count_characters)
    report = (toolset.prompt(), toolset.report())[1]
    assert counted
    assert report.is_cut
    assert report.tokens == len(report.text) <= 900
    assert "count_characters" in str(report)
    assert not prowess.Toolset(talk(), budget=900, tokens=lambda text: len(text) // 100).report().is_cut


def test_a_count_of_tokens_is_a_function(put: Put, talk: Talk) -> None:
    put("pdf")
    with pytest.raises(prowess.SourceError, match="tokens"):
        prowess.Toolset(talk(), tokens=7)  # type: ignore[arg-type]


@dataclass
class Counter:
    """Counts tokens, and cannot be a key: whatever compares by its fields has no hash."""

    letters: int

    def __call__(self, text: str) -> int:
        return len(text) // self.letters


def test_tokens_are_counted_by_whatever_can_be_called(put: Put, talk: Talk) -> None:
    put("pdf", description="Long. " * 100)
    fine, coarse = (prowess.Toolset(talk(), budget=300, tokens=Counter(letters)) for letters in (1, 100))
    assert (fine.report().is_cut, coarse.report().is_cut) == (True, False)
    assert fine.prompt() == fine.child().prompt() == fine.prompt()
    assert [tool.name for tool in fine.tools()] == [tool.name for tool in fine.child().tools()]

"""Trigger tests: which queries find their skill, which fire wrongly, in both shapes of file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.errors import UnknownSkillError

if TYPE_CHECKING:
    from collections.abc import Sequence

SKILLS = Path(__file__).resolve().parents[2] / "examples" / "skills"


@pytest.fixture
def catalog() -> prowess.Catalog:
    return prowess.scan(SKILLS)


def outcomes(report: prowess.EvalReport) -> list[str]:
    return [result.outcome for result in report.results]


def test_each_case_is_a_hit_a_miss_quiet_or_a_false_fire(catalog: prowess.Catalog) -> None:
    cases = [
        prowess.EvalCase("what is in this csv file?", "csv-report"),
        prowess.EvalCase("zebra", "csv-report"),
        prowess.EvalCase("draft release notes", "csv-report", should_trigger=False),
        prowess.EvalCase("profile a csv", "csv-report", should_trigger=False),
    ]
    report = prowess.evaluate(cases, catalog)
    assert outcomes(report) == ["hit", "miss", "quiet", "false-fire"]
    assert (report.hit_rate, report.false_fire_rate, report.score) == (0.5, 0.5, 0.5)
    assert report.results[2].picked == ("release-notes",)


def test_without_cases_of_a_kind_there_is_no_rate(catalog: prowess.Catalog) -> None:
    report = prowess.evaluate([], catalog)
    assert (report.hit_rate, report.false_fire_rate, report.score) == (None, None, 1.0)


class Waiting:
    """A selector that has to be awaited, and always picks the same."""

    async def select(self, query: str, candidates: Sequence[prowess.Skill]) -> list[str]:  # noqa: ARG002
        return ["release-notes", "csv-report"]


def test_any_selector_can_be_judged_and_top_says_how_far_it_counts(catalog: prowess.Catalog) -> None:
    cases = [prowess.EvalCase("anything", "csv-report")]
    assert outcomes(prowess.evaluate(cases, catalog, selector=Waiting())) == ["miss"]
    assert outcomes(prowess.evaluate(cases, catalog, selector=Waiting(), top=2)) == ["hit"]


def make_catalog(**descriptions: str) -> prowess.Catalog:
    """Skills of these names, with hyphens for underscores, and these descriptions."""
    sources = [
        prowess.Source.inline(name.replace("_", "-"), text, "Do it.\n", tags=("ledger",))
        for name, text in descriptions.items()
    ]
    return prowess.Catalog.from_sources(sources)


def test_a_miss_names_the_skills_before_it_and_the_words_that_brought_them_there() -> None:
    catalog = make_catalog(
        report="Writes a report.",
        invoice_check="Checks invoices: missing amounts, missing invoices.",
        table="Makes a table for a report.",
        title="Titles a report.",
    )
    (result,) = prowess.evaluate([prowess.EvalCase("a report of missing invoices", "report")], catalog).results
    assert (result.outcome, result.place) == ("miss", 2)
    assert result.ahead == (prowess.EvalRival("invoice-check", "words: missing, invoices"),)
    assert result.why == "words: report"
    assert result.missing_words == ("missing", "invoices")


def test_a_miss_of_a_skill_that_no_word_finds_says_that_all_words_are_missing() -> None:
    catalog = make_catalog(report="Writes reports.", **{f"total_{n}": f"Adds up {n} totals." for n in "abcdefg"})
    (result,) = prowess.evaluate([prowess.EvalCase("sum totals", "report")], catalog).results
    assert (result.outcome, result.place, result.why) == ("miss", None, "")
    assert [rival.why for rival in result.ahead] == ["words: totals"] * 5
    assert result.missing_words == ("sum", "totals")


def test_words_in_the_name_in_tags_and_in_other_forms_are_not_missing() -> None:
    catalog = make_catalog(csv_report="Writes tables.", ledger="Reports tables: a table of ledgers in CSV reports.")
    (result,) = prowess.evaluate([prowess.EvalCase("report csv table ledgers colour", "csv-report")], catalog).results
    assert (result.outcome, result.missing_words) == ("miss", ("colour",))


def test_a_false_fire_says_by_which_words(catalog: prowess.Catalog) -> None:
    cases = [prowess.EvalCase("a poem about a csv", "csv-report", should_trigger=False)]
    (result,) = prowess.evaluate(cases, catalog).results
    assert (result.outcome, result.place, result.why) == ("false-fire", 1, "words: csv")
    assert (result.ahead, result.missing_words) == ((), ())


def test_what_came_out_right_needs_no_reason(catalog: prowess.Catalog) -> None:
    (result,) = prowess.evaluate([prowess.EvalCase("profile a csv", "csv-report")], catalog).results
    assert (result.place, result.why, result.ahead, result.missing_words) == (1, "", (), ())


def test_skills_that_another_selector_puts_first_are_named_too(catalog: prowess.Catalog) -> None:
    (result,) = prowess.evaluate([prowess.EvalCase("a csv", "csv-report")], catalog, selector=Waiting()).results
    assert (result.place, result.ahead) == (2, (prowess.EvalRival("release-notes", ""),))


def test_the_default_selector_is_judged_by_its_ranking_though_everything_fits(catalog: prowess.Catalog) -> None:
    cases = [prowess.EvalCase("what is in this csv file?", "csv-report")]
    for selector in (None, prowess.AutoSelector(), prowess.AutoSelector(base=prowess.LexicalSelector())):
        assert outcomes(prowess.evaluate(cases, catalog, selector=selector)) == ["hit"]
    worst = prowess.AutoSelector(base=Waiting())
    assert outcomes(prowess.evaluate(cases, catalog, selector=worst)) == ["miss"]


def test_a_case_about_an_unknown_skill_is_an_error(catalog: prowess.Catalog) -> None:
    with pytest.raises(UnknownSkillError):
        prowess.evaluate([prowess.EvalCase("x", "nope")], catalog)


def test_both_shapes_are_read_and_other_files_of_evals_left_alone(tmp_path: Path) -> None:
    made = prowess.create_skill("one", tmp_path)
    folder = made / "evals"
    folder.mkdir()
    evals = {"skill_name": "one", "evals": [{"id": 1, "prompt": "a", "expected_output": "b"}]}
    (folder / "evals.json").write_text(json.dumps(evals), encoding="utf-8")
    (folder / "triggers.json").write_text('[{"query": "b", "should_trigger": false}]', encoding="utf-8")
    (folder / "benchmark.json").write_text('{"runs": []}', encoding="utf-8")
    expected = [("a", "one", True), ("b", "one", False)]
    for path in (made, tmp_path):
        found = prowess.load_evals(path)
        assert [(case.query, case.skill, case.should_trigger) for case in found] == expected
    assert prowess.load_evals(folder / "triggers.json")[0].skill == "one"


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"runs": []}', '[{"query": 5}]', '[{"query": "a", "should_trigger": "yes"}]', "\xff"]
)
def test_a_file_that_holds_something_else_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_evals(file)
    assert caught.value.code == "bad-evals"


def test_a_folder_without_evals_is_an_error(tmp_path: Path) -> None:
    prowess.create_skill("one", tmp_path)
    with pytest.raises(prowess.SourceError):
        prowess.load_evals(tmp_path)


MALFORMED = [
    (
        '[\n  {"query": "a", "should_trigger": "no"}\n]',
        2,
        "'should_trigger' must be true or false, not the string 'no'",
    ),
    ('[{"query": "a"},\n {"querry": "b"}]', 2, "unknown key 'querry'; is 'query' meant?"),
    ('[{"query": "a",\n  "should_triger": false}]', 2, "unknown key 'should_triger'; is 'should_trigger' meant?"),
    ('[{"query": "a", "shouldTrigger": false}]', 1, "is 'should_trigger' meant?"),
    ('[{"query": "a", "should_not_trigger": true}]', 1, "is 'should_trigger' meant?"),
    (
        '[{"query": "a",\n  "trigger": false}]',
        2,
        "unknown key 'trigger': use 'should_trigger' to say whether the query is for the skill",
    ),
    ('[{"query": "a"}, "b"]', 1, "an entry must be an object such as {\"query\": …}, not the string 'b'"),
    ('[{"query": 5}]', 1, "'query' must be a string, not a number"),
    ('[{"should_trigger": true}]', 1, "the entry has no query"),
    ('[{"query": "a", "should_trigger": true, "should_trigger": false}]', 1, "occurs twice"),
    ('{"eval": [{"prompt": "a"}]}', 1, "unknown key 'eval'; is 'evals' meant?"),
    ('{"evals": [{"prompt": "a",\n "checks": "x"}]}', 1, "the task part of an eval is malformed"),
]


@pytest.mark.parametrize(("text", "line", "message"), MALFORMED)
def test_a_malformed_entry_fails_the_whole_run_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    folder = prowess.create_skill("one", tmp_path) / "evals"
    folder.mkdir()
    (folder / "good.json").write_text('[{"query": "b"}]', encoding="utf-8")
    (folder / "triggers.json").write_text(text, encoding="utf-8")
    with pytest.raises(prowess.SourceError) as caught:
        prowess.load_evals(tmp_path)
    assert caught.value.code == "bad-evals"
    assert f"line {line}: " in str(caught.value)
    assert message in str(caught.value)
    (found,) = [finding for finding in prowess.check(tmp_path).findings if finding.code == "bad-evals"]
    assert (found.line, found.severity, found.path) == (line, "error", str(folder / "triggers.json"))


def test_every_malformed_entry_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text('{"skill": "one", "queries": [{"query": 1}, {"query": 2}, {"querry": "c"}]}', encoding="utf-8")
    with pytest.raises(prowess.SourceError, match="2 more errors in evals"):
        prowess.load_evals(file)


def test_keys_of_other_tools_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    entry = '{"id": 7, "name": "x", "reason": "r", "split": "train", "type": "t", "prompt": "a", "skill": "one"}'
    file.write_text(f"[{entry}]", encoding="utf-8")
    (case,) = prowess.load_evals(file)
    assert (case.query, case.skill, case.should_trigger) == ("a", "one", True)


def test_the_evals_of_a_new_skill_do_not_count_until_they_are_written(tmp_path: Path) -> None:
    made = prowess.create_skill("one", tmp_path, parts=["evals"])
    with pytest.raises(prowess.SourceError, match="the evals are still the template's") as caught:
        prowess.load_evals(made)
    assert caught.value.code == "no-evals"
    file = made / "evals" / "triggers.json"
    findings = [finding for finding in prowess.check(made).findings if finding.path == str(file)]
    assert [(finding.code, finding.line, finding.severity) for finding in findings] == [
        ("placeholder-text", 2, "warning"),
        ("placeholder-text", 3, "warning"),
    ]
    entries = json.loads(file.read_text(encoding="utf-8"))
    entries[0]["query"] = "what a user says"
    file.write_text(json.dumps(entries), encoding="utf-8")
    assert [case.query for case in prowess.load_evals(made)] == ["what a user says"]

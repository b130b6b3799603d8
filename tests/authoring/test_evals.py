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

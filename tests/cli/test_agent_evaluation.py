"""``prowess eval --with-model`` on the command line: the table, the data, what is left, mistakes, and Ctrl-C."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: eval --with-model; pydantic-ai is not installed")

from tests.agent.runs import call
from tests.cli.agent_processes import PROGRAM
from tests.cli.persons import Person
from tests.cli.samples import with_evals, with_tasks
from tests.cli.shapes import problems
from tests.fake_models import Slow, Text, play, provide

if TYPE_CHECKING:
    from tests.cli.conftest import Command

SKILL = ".agents/skills/csv-report"
EVAL = ("eval", SKILL, "--with-model", "--model", "scripted:turns.json")


def write_script(*turns: dict[str, Any] | str) -> None:
    rows = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
    Path("turns.json").write_text(json.dumps({"turns": rows}), encoding="utf-8")


def test_table_has_loads_tasks_and_checks_that_did_not_hold(command: Command) -> None:
    with_tasks()
    ran = command(*EVAL, "--runs", "2")
    assert ran.status == 1  # the script writes no report.md
    rows = [row.split() for row in ran.out.splitlines()]
    assert next(row for row in rows if row[:2] == ["2/2", "-"])[3:] == ["csv-report", "Is", "it", "clean?"]
    assert any(row[:2] == ["0/2", "0/2"] for row in rows)
    assert "0/2   file report.md  Is it clean?" in ran.out
    assert "Failed: 50% of the runs right, wanted 100% (full listing 100%, tasks with the skill 0%" in ran.out
    assert "6/6 without csv-report: Is it clean? 1 of 2 checks held" in ran.err
    assert re.search(r"6 runs, about [\d,]+ tokens\n", ran.err)
    assert "csv-report is not trusted as it is now: its scripts and commands will be refused" in ran.err
    assert command(*EVAL, "--min", "0.5", "--runs", "1").status == 0


def test_data_has_the_rates_of_each_kind(command: Command) -> None:
    with_tasks()
    data = command(*EVAL, "--runs", "1", "--json").data
    assert problems(data, "eval (agent)") == []
    assert data["rates"] == {"full": 1.0, "selected": None, "with": 0.0, "without": 0.0}
    assert [arm["arm"] for arm in data["results"][0]["arms"]] == ["full", "with", "without"]
    assert (data["left"], data["stopped"], data["passed"], data["score"]) == (0, "", False, 0.5)


def test_other_skills_that_load_are_named_with_the_listing(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with_evals()
    write_script({**call("load_skill", name="release-notes"), "when": "csv"}, "Well.")
    assert "release-notes (1 full)" in command(*EVAL, "--runs", "1").out
    monkeypatch.setenv("PROWESS_BUDGET", "150")
    ran = command(*EVAL, "--runs", "1")
    assert "release-notes (1 full, 1 selected)" in ran.out
    assert (ran.status, "not csv-report" in ran.out) == (1, True)


def test_bound_leaves_runs_and_the_same_command_goes_on(command: Command) -> None:
    with_tasks()
    words = (*EVAL, "--runs", "1", "--results", "r.jsonl", "--min", "0")
    ran = command(*words, "--max-tokens", "4000")
    assert ran.status == 3
    assert "error[token-limit]: the evaluation has used" in ran.err
    assert re.search(r"the tokens are spent: \d runs? left; the same command goes on, with what r\.jsonl has", ran.err)
    assert "So far: " in ran.out
    assert command(*words).status == 0
    again = command(*words)
    assert (again.status, again.err.count("/3 ")) == (0, 0)


def test_task_that_cannot_be_judged_is_left_out_with_the_reason(command: Command) -> None:
    with_tasks()
    cases = [
        {"query": "Is it clean?", "checks": [{"command": "true"}]},
        {"query": "Is it?", "expectations": ["It is kind."]},
    ]
    Path(SKILL, "evals/tasks.json").write_text(json.dumps(cases), encoding="utf-8")
    write_script("Well.")
    ran = command(*EVAL, "--runs", "1", "--min", "0")
    assert "There is no terminal, so nobody is asked" in ran.err
    assert "Is it clean?: its checks have a command, and 'csv-report' is not trusted as it is now" in ran.out
    assert "Is it?: only a model can judge it: --judge names one" in ran.out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("eval", SKILL, "--runs", "2"), 2, "--runs is for an evaluation with a model: add --with-model"),
        (("eval", SKILL, "--max-tokens", "2"), 2, "--max-tokens is for an evaluation with a model"),
        ((*EVAL, "--top", "2"), 2, "leave --top, --selector out"),
        ((*EVAL, "--runs", "0"), 2, "--runs"),
        (("eval", SKILL, "--with-model"), 3, "error[no-model]"),
        ((*EVAL, "--judge", "openai:gpt-5.2"), 3, "there is no key for openai: set OPENAI_API_KEY"),
        ((*EVAL, "--results", "turns.json"), 3, "error[bad-results]"),
        ((*EVAL, "--results", "missing/r.jsonl"), 3, "error[unwritable]"),
        ((*EVAL, "--tools", "Delete"), 3, "not a tool of the agent"),
    ],
    ids=str,
)
def test_mistake_is_told_with_what_to_do(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], status: int, said: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with_tasks()
    Path("turns.json").chmod(0o600)
    ran = command(*words)
    assert (ran.status, said in ran.err) == (status, True), ran.err


def test_ctrl_c_shows_what_is_done_and_the_results_go_on(project: Path) -> None:
    with_tasks()
    waiting = Slow(Text("late"), wait=lambda: person.type("\x03"))
    with provide(play(Text("one"), waiting, *(Text("more") for _ in range(4)))) as provider:
        words = ("eval", SKILL, "--with-model", "--runs", "1", "--results", "r.jsonl", "--min", "0")
        model = ("--model", "tiny", "--base-url", f"{provider.url}/v1")
        with Person(*words, *model, columns=160, program=PROGRAM) as person:
            assert person.wait() == 130
            assert "the evaluation was ended: 2 runs left; the same command goes on" in person.screen
            assert "So far: " in person.screen
        kept = [json.loads(row) for row in (project / "r.jsonl").read_text().splitlines() if row]
        assert [row["arm"] for row in kept if row["event"] == "eval-run"] == ["full"]
        with Person(*words, *model, columns=160, program=PROGRAM) as person:
            assert person.wait() == 0
            assert "2/3 with" in person.screen


def test_person_at_the_terminal_is_asked_about_a_command_of_a_check_before_anything_is_spent(project: Path) -> None:
    with_tasks()
    cases = [{"query": "Is it clean?", "checks": [{"command": "touch made && test -f made"}]}]
    (project / SKILL / "evals/tasks.json").write_text(json.dumps(cases), encoding="utf-8")
    words = (*EVAL, "--runs", "2", "--sandbox", "none")
    with Person(*words, columns=160, program=PROGRAM) as person:
        person.read_until("[o/a/n]")
        assert "runs the command: touch made && test -f made" in person.screen
        assert "tokens)" not in person.screen
        person.type("o\n")
        assert person.wait() == 0
        assert person.screen.count("[o/a/n]") == 1
    assert not (project / "made").exists()

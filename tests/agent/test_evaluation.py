"""An evaluation with a model: which skill loads, how tasks come out, what is kept, and how it is bounded."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.agent.eval_judgement import parse_verdicts
from prowess.agent.eval_results import EvalResults
from prowess.agent.evaluation import EvalOptions, Evaluation
from prowess.agent.models import ModelChoice
from prowess.agent.transcript import read_transcript
from tests.agent.runs import Answering, Scene, call
from tests.fake_models import Failure, Text, ToolCall, play, provide
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from prowess.agent.eval_results import Arm, ArmResult, EvalAgentReport, EvalForecast, EvalRun


class Desk:
    """Cases of ``greet`` in the scene, the script of the model, and evaluations of them."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.base = scene.base
        self.made: list[EvalRun] = []

    def write_cases(self, *cases: dict[str, Any]) -> None:
        folder = self.scene.skills / "greet" / "evals"
        folder.mkdir(exist_ok=True)
        (folder / "evals.json").write_text(json.dumps(cases), encoding="utf-8")

    def write_script(self, *turns: dict[str, Any] | str, name: str = "turns.json") -> ModelChoice:
        rows = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
        (self.base / name).write_text(json.dumps({"turns": rows}), encoding="utf-8")
        return ModelChoice(f"scripted:{self.base / name}")

    def evaluate(
        self,
        model: ModelChoice,
        *,
        judge: ModelChoice | None = None,
        results: Path | None = None,
        cases: Path | None = None,
        **options: Any,
    ) -> EvalAgentReport:
        """Run an evaluation to its end; the runs that it made itself are ``made``."""
        self.made = []
        kept = EvalResults.open(str(results)) if results else None
        catalog = prowess.scan(self.scene.skills)
        made = EvalOptions(**{"runs": 1, **options})
        found = prowess.load_evals(cases or self.scene.skills / "greet")
        try:
            evaluation = Evaluation(found, catalog, model, made, judge=judge, results=kept)
            return asyncio.run(evaluation.run(lambda run, _done, _total: self.made.append(run)))
        finally:
            if kept is not None:
                kept.__exit__()


@pytest.fixture
def desk(scene: Scene) -> Desk:
    return Desk(scene)


def arm_of(report: EvalAgentReport, name: Arm, case: int = 0) -> ArmResult:
    return next(arm for arm in report.cases[case].arms if arm.arm == name)


# -- which skill loads -------------------------------------------------------------------------------------------------


def test_right_and_wrong_skills_that_load_are_counted_over_several_runs(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"}, {"query": "how long is it?", "should_trigger": False})
    hello = {**call("load_skill", name="greet"), "when": "say hello"}
    other = {**call("load_skill", name="count-words"), "when": "how long"}
    report = desk.evaluate(desk.write_script(hello, other, "Well."), runs=2)
    loads, quiet = arm_of(report, "full"), arm_of(report, "full", 1)
    assert (loads.runs, loads.loaded, loads.right, loads.others) == (2, 2, 2, {})
    assert (quiet.runs, quiet.loaded, quiet.right, quiet.others, quiet.loaded_other) == (2, 0, 2, {"count-words": 2}, 2)
    assert (report.score, report.rate("full"), report.left) == (1.0, 1.0, 0)
    assert len(desk.made) == 4
    assert report.spent == sum(run.tokens for run in desk.made) > 0


def test_full_listing_has_a_skill_that_the_selected_one_leaves_out(desk: Desk) -> None:
    desk.write_cases({"query": "how long is this text of words?"})
    turns = {**call("load_skill", name="greet"), "system": "Greets people"}, "I know no such skill."
    report = desk.evaluate(desk.write_script(*turns), budget=60)
    assert (arm_of(report, "full").loaded, arm_of(report, "selected").loaded) == (1, 0)


def test_a_query_is_run_with_one_listing_where_the_selector_lists_everything(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    model = desk.write_script("no")

    def arms_made(**options: Any) -> list[str]:
        desk.evaluate(model, **options)
        return [run.plan.arm for run in desk.made]

    assert arms_made() == arms_made(budget=4_000) == arms_made(window=200_000) == ["full"]
    assert arms_made(budget=60) == arms_made(window=3_000) == ["full", "selected"]
    results = desk.base / "results.jsonl"
    assert arms_made(results=results) == ["full"]
    assert arms_made(results=results, budget=60) == ["selected"]  # the listing of all skills is the same


def test_child_agent_of_a_skill_counts_as_loading_it(desk: Desk) -> None:
    cases = desk.base / "cases.json"
    cases.write_text(json.dumps([{"query": "review it", "skill": "review"}]), encoding="utf-8")
    model = desk.write_script(call("run_skill", name="review"), "Fine.", "Reviewed.")
    assert arm_of(desk.evaluate(model, cases=cases), "full").right == 1


def test_run_that_asks_which_skill_loads_is_short(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    loop = {**call("search_skills", query="x"), "repeat": True}
    report = desk.evaluate(desk.write_script(call("load_skill", name="greet"), loop))
    # It ends at its turns, and what was loaded until then counts.
    assert [run.status for run in desk.made] == ["limit"]
    assert report.score == 1.0


def test_model_cannot_read_the_tests_of_a_skill(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    look = [ToolCall("read_skill_file", {"name": "greet", "path": path}) for path in ("evals/evals.json", "SKILL.md")]
    load, end = ToolCall("load_skill", {"name": "greet"}), Text("Done.")
    with provide(play(load, *look, end, load, *look, end)) as provider:
        report = desk.evaluate(ModelChoice("tiny", f"{provider.url}/v1"), limits=prowess.Limits(max_trigger_turns=4))
    assert report.score == 1.0
    loaded, tests, text = provider.requests[3].results
    assert ("evals.json" in loaded, "no file 'evals/evals.json'" in tests) == (False, True)
    assert "Say hello" in text


# -- tasks -------------------------------------------------------------------------------------------------------------

TASK = {
    "query": "Greet Ann in out/letter.txt",
    "files": {"names/ann.txt": "Ann\n"},
    "checks": [{"text": "written"}, {"file": "out/letter.txt", "contains": "Good morning, Ann"}],
}
KNOWS = (
    {**call("load_skill", name="greet"), "system": "Greets people"},
    {**call("Read", path="names/ann.txt"), "when": "Say hello as"},
    {**call("Write", path="out/letter.txt", content="Good morning, Ann"), "when": "Ann\n"},
    {"text": "It is written.", "when": "Created"},
    "I cannot.",
)


def test_task_passes_with_the_skill_and_not_without_it(desk: Desk) -> None:
    desk.write_cases(TASK)
    report = desk.evaluate(desk.write_script(*KNOWS), runs=2)
    with_skill, without = arm_of(report, "with"), arm_of(report, "without")
    assert (with_skill.right, with_skill.runs, with_skill.loaded) == (2, 2, 2)
    assert (without.right, without.runs, without.loaded) == (0, 2, 0)
    assert set(with_skill.verdicts.values()) == {2}
    assert set(without.verdicts.values()) == {0}
    # What a model cannot do without the skill is not a failure of the skill.
    assert report.score == 1.0
    assert list(desk.scene.work.iterdir()) == []


def test_file_behind_a_link_or_outside_of_the_folder_holds_no_check(desk: Desk) -> None:
    desk.write_cases({"query": "q", "checks": [{"file": "made"}]})
    model = desk.write_script(call("Bash", command="ln -s /etc/passwd made"), "done")
    report = desk.evaluate(model, tools=("Bash",), person=Answering("once"), sandbox="none")
    assert arm_of(report, "with").right == 0
    for path in ("../x", "/etc/passwd", "a/../../b"):
        desk.write_cases({"query": "q", "checks": [{"file": path}]})
        with pytest.raises(prowess.SourceError, match="is malformed") as caught:
            desk.evaluate(desk.write_script("done"))
        assert caught.value.code == "bad-evals"


def test_files_are_copied_from_the_folder_of_the_skill(desk: Desk) -> None:
    task = {"query": "Copy it", "files": ["references/forms.md"], "checks": [{"file": "forms.md"}, {"text": "noon"}]}
    desk.write_cases(task)
    turns = (call("Read", path="forms.md"), {"text": "before noon", "when": "before noon"})
    assert arm_of(desk.evaluate(desk.write_script(*turns)), "without").right == 1
    desk.write_cases({**task, "files": ["references/missing.md"]})
    with pytest.raises(prowess.SourceError, match=r"missing\.md"):
        desk.evaluate(desk.write_script(*turns))


def test_sentences_are_judged_by_a_second_model(desk: Desk) -> None:
    desk.write_cases(
        {"prompt": "say hello", "expectations": ["It greets.", "It is short."], "expected_output": "Hello"}
    )
    model = desk.write_script("Good morning.")
    report = desk.evaluate(model)
    assert "--judge" in report.cases[0].left_out
    assert [arm.arm for arm in report.cases[0].arms] == ["full"]
    judge = desk.write_script('I think: {"verdicts": [true, false, true]}', name="judge.json")
    report = desk.evaluate(model, judge=judge)
    assert arm_of(report, "with").verdicts == {"It greets.": 1, "It is short.": 0, "Hello": 1}
    assert (arm_of(report, "with").right, report.cases[0].left_out) == (0, "")


@pytest.mark.parametrize("text", ["[" + "true " * 60, "[" + "true," * 20_000, "[true" + " " * 60_000, "[ " * 60_000])
def test_the_verdicts_of_a_judge_are_looked_for_in_linear_time(text: str) -> None:
    began = time.process_time()
    assert parse_verdicts(f"{text}x") == []
    assert parse_verdicts(f"{text}x [ true,\nfalse ]") == [True, False]
    assert time.process_time() - began < 5


def test_judge_sees_the_answer_and_the_files_between_marks(desk: Desk) -> None:
    desk.write_cases({"query": "say hello", "files": {"a.txt": "the content"}, "expectations": ["It greets."]})
    verdict = Text('{"verdicts": [true]}')
    with provide(play(verdict, verdict)) as provider:
        judge = ModelChoice("tiny", f"{provider.url}/v1")
        report = desk.evaluate(desk.write_script("Good morning."), judge=judge)
    assert arm_of(report, "with").right == 1
    said = provider.requests[0].said
    mark = next(row for row in said.splitlines() if row.startswith("----"))
    material = said.split(f"\n{mark}\n")[1]
    assert all(word in material for word in ("say hello", "Good morning.", "FILE a.txt:\nthe content"))
    assert "It greets." not in material


def test_judge_without_a_verdict_for_each_sentence_is_a_failed_run(desk: Desk) -> None:
    desk.write_cases({"query": "say hello", "expectations": ["It greets.", "It is short."]})
    judge = desk.write_script('{"verdicts": [true]}', name="judge.json")
    report = desk.evaluate(desk.write_script("Good morning."), judge=judge)
    assert (report.left, arm_of(report, "with").failed, arm_of(report, "with").runs) == (2, 1, 0)
    assert "no verdict for each criterion" in str(report.error)


# -- who decides -------------------------------------------------------------------------------------------------------

COMMANDED: dict[str, Any] = {"query": "q", "checks": [{"command": 'test -f "$SKILL_DIR/SKILL.md" && test ! -e no'}]}


def test_command_of_a_check_runs_only_for_a_skill_that_is_trusted(desk: Desk) -> None:
    desk.write_cases(COMMANDED)
    model = desk.write_script("done")
    for trust in ("ask", "granted", "never"):
        report = desk.evaluate(model, trust=trust, sandbox="none")
        assert "not trusted" in report.cases[0].left_out
        assert len(report.cases[0].arms) == 1
    prowess.Trust().grant(prowess.scan(desk.scene.skills)["greet"])
    assert "not trusted" in desk.evaluate(model, trust="never", sandbox="none").cases[0].left_out
    assert arm_of(desk.evaluate(model, trust="granted", sandbox="none"), "with").right == 1
    desk.write_cases({"query": "q", "checks": [{"command": "exit 1"}]})  # another digest
    assert "not trusted" in desk.evaluate(model, trust="granted", sandbox="none").cases[0].left_out


def test_command_of_a_file_outside_of_the_skill_is_covered_by_no_grant(desk: Desk) -> None:
    cases = desk.base / "cases.json"
    cases.write_text(json.dumps([{**COMMANDED, "skill": "greet"}]), encoding="utf-8")
    prowess.Trust().grant(prowess.scan(desk.scene.skills)["greet"])
    report = desk.evaluate(desk.write_script("done"), cases=cases, trust="granted", sandbox="none")
    assert "only evals in the folder of the skill" in report.cases[0].left_out
    person = Answering(trust="always")
    report = desk.evaluate(desk.write_script("done"), cases=cases, person=person, sandbox="none")
    assert arm_of(report, "with").right == 1
    assert len(prowess.Trust().grants()) == 1


def test_grant_covers_no_command_that_is_not_in_the_hashed_file(desk: Desk) -> None:
    desk.write_cases(COMMANDED)
    catalog = prowess.scan(desk.scene.skills)
    prowess.Trust().grant(catalog["greet"])
    # Whoever may write to the skill shows other evals while they are read, and the granted ones while they are hashed.
    desk.write_cases({"query": "q", "checks": [{"command": f"touch {desk.base / 'ran'}"}]})
    cases = prowess.load_evals(desk.scene.skills / "greet")
    desk.write_cases(COMMANDED)
    options = EvalOptions(runs=1, trust="granted", sandbox="none")
    report = asyncio.run(Evaluation(cases, catalog, desk.write_script("done"), options).run())
    assert "a grant covers only evals" in report.cases[0].left_out
    assert not (desk.base / "ran").exists()


def test_person_is_asked_about_an_equal_command_once(desk: Desk) -> None:
    desk.write_cases(COMMANDED)
    person = Answering(trust=True)
    report = desk.evaluate(desk.write_script("done"), person=person, runs=2, sandbox="none")
    assert (arm_of(report, "with").right, len(person.requests)) == (2, 1)
    assert person.requests[0].commands == (COMMANDED["checks"][0]["command"],)
    assert prowess.Trust().grants() == ()
    refused = desk.evaluate(desk.write_script("done"), person=Answering(trust=False), sandbox="none")
    assert "a person said no" in refused.cases[0].left_out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),  # nobody to ask
        ({"trust": "never"}, False),
        ({"trust": "granted", "sandbox": "none"}, False),  # only a sandbox needs no question
        ({"person": Answering("no"), "sandbox": "none"}, False),
        ({"person": Answering("once"), "sandbox": "none"}, True),
    ],
    ids=str,
)
def test_bash_runs_only_as_trust_and_sandbox_say(desk: Desk, options: dict[str, Any], expected: bool) -> None:
    desk.write_cases({"query": "q", "checks": [{"file": "made"}]})
    model = desk.write_script(call("Bash", command="echo x > made"), "done")
    report = desk.evaluate(model, tools=("Bash",), **options)
    assert arm_of(report, "with").right == expected


def test_bash_that_is_named_runs_in_the_sandbox_without_a_question(desk: Desk) -> None:
    require_sandbox()
    desk.write_cases({"query": "q", "checks": [{"file": "made"}]})
    model = desk.write_script(call("Bash", command="echo x > made"), "done")
    assert arm_of(desk.evaluate(model, trust="granted"), "with").right == 0  # it is not among the tools
    assert arm_of(desk.evaluate(model, trust="granted", tools=("Bash",)), "with").right == 1


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_finished_runs_are_not_repeated(desk: Desk) -> None:
    desk.write_cases(TASK)
    results = desk.base / "results.jsonl"
    first = desk.evaluate(desk.write_script(*KNOWS), results=results)
    assert (len(desk.made), results.stat().st_mode & 0o777) == (3, 0o600)
    again = desk.evaluate(desk.write_script(*KNOWS), results=results)
    assert (len(desk.made), again.spent, again.left) == (0, 0, 0)
    assert again.cases == first.cases
    more = desk.evaluate(desk.write_script(*KNOWS), results=results, runs=2)
    assert (len(desk.made), more.left) == (3, 0)


def test_each_run_leaves_its_transcript_answer_and_files(desk: Desk) -> None:
    desk.write_cases(TASK)
    results = desk.base / "results.jsonl"
    first = desk.evaluate(desk.write_script(*KNOWS), results=results)
    folders = {run.plan.arm: Path(run.folder) for run in desk.made}
    assert {folder.parent for folder in folders.values()} == {desk.base / "results.jsonl.runs"}
    kept = folders["with"]
    assert (kept / "files/out/letter.txt").read_text() == "Good morning, Ann"
    assert [path.name for path in folders["without"].glob("files/*")] == ["names"]
    assert (kept / "answer.txt").read_text() == "It is written."
    assert read_transcript(str(kept / "transcript.jsonl")).is_finished
    modes = {path.stat().st_mode & 0o777 for path in [kept.parent, *kept.parent.rglob("*")]}
    assert modes == {0o600, 0o700}
    assert [run.folder for run in arm_of(first, "with").finished] == [str(kept)]
    assert all(run.seconds > 0 for run in desk.made)
    again = desk.evaluate(desk.write_script(*KNOWS), results=results)
    assert arm_of(again, "with").finished == arm_of(first, "with").finished


def test_a_repository_that_the_model_made_is_named_and_not_kept(desk: Desk) -> None:
    """A shell prompt that asks git would run what its settings say."""
    files = {f"bare/{name}": "x" for name in ("HEAD", "objects/a", "refs/b", "config")}
    desk.write_cases({**TASK, "files": {**files, "short.txt": "1"}})
    desk.evaluate(desk.write_script("no"), results=desk.base / "results.jsonl")
    kept = Path(desk.made[-1].folder)
    assert [path.name for path in kept.glob("files/*")] == ["short.txt"]
    assert sorted((kept / "left-out.txt").read_text().split()) == sorted(files)


def test_files_beyond_the_bound_are_named_and_not_kept(desk: Desk) -> None:
    desk.write_cases({**TASK, "files": {"long.txt": "12345", "short.txt": "1"}})
    limits = prowess.Limits(max_eval_kept_bytes=4)
    desk.evaluate(desk.write_script("no"), results=desk.base / "results.jsonl", limits=limits)
    kept = Path(desk.made[-1].folder)
    assert [path.name for path in kept.glob("files/*")] == ["short.txt"]
    assert (kept / "left-out.txt").read_text() == "long.txt\n"


def test_a_run_that_is_made_again_has_nothing_of_the_earlier_one(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    results = desk.base / "results.jsonl"
    desk.evaluate(desk.write_script("no"), results=results)
    (first, *_) = desk.made
    Path(first.folder, "mine").touch()
    results.write_text("".join(line for line in results.read_text().splitlines(keepends=True)[:1]))
    desk.evaluate(desk.write_script("no"), results=results)
    assert [path.name for path in sorted(Path(first.folder).iterdir())] == ["answer.txt", "transcript.jsonl"]


def test_a_folder_of_runs_that_others_may_write_to_is_refused(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    folder = desk.base / "results.jsonl.runs"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(prowess.SourceError, match="others may write") as caught:
        desk.evaluate(desk.write_script("no"), results=desk.base / "results.jsonl")
    assert (caught.value.code, list(folder.iterdir())) == ("bad-results", [])


def test_what_changes_the_outcome_is_run_again(desk: Desk) -> None:
    desk.write_cases(TASK)
    results = desk.base / "results.jsonl"

    def arms_made(model: ModelChoice, **options: Any) -> list[str]:
        desk.evaluate(model, results=results, **options)
        return [run.plan.arm for run in desk.made]

    every = ["full", "with", "without"]
    assert arms_made(desk.write_script(*KNOWS)) == every
    assert arms_made(desk.write_script(*KNOWS, "another model")) == every
    with (desk.scene.skills / "greet/SKILL.md").open("a") as file:
        file.write("\nOne more line.\n")
    assert arms_made(desk.write_script(*KNOWS)) == ["full", "with"]  # without it, nothing has changed
    head = desk.scene.skills / "count-words/SKILL.md"
    head.write_text(head.read_text().replace("Counts words", "Counts many words"))
    assert arms_made(desk.write_script(*KNOWS)) == every  # the listing is another one
    assert arms_made(desk.write_script(*KNOWS), tools=("Read",)) == every
    assert arms_made(desk.write_script(*KNOWS)) == []
    prowess.Trust().grant(prowess.scan(desk.scene.skills)["greet"])
    assert arms_made(desk.write_script(*KNOWS)) == ["full", "with"]  # its scripts may run now


def test_the_forecast_counts_runs_tokens_and_untrusted_skills(desk: Desk) -> None:
    desk.write_cases({**TASK, "query": "count them", "skill": "count-words"})
    catalog = prowess.scan(desk.scene.skills)
    cases = prowess.load_evals(desk.scene.skills / "greet")
    acts = prowess.inventory(catalog["count-words"]).acts

    def forecast(**options: Any) -> EvalForecast:
        return asyncio.run(Evaluation(cases, catalog, desk.write_script("x"), EvalOptions(**options)).prepare())

    first = forecast(runs=2)
    assert (first.runs, first.stored, first.untrusted) == (6, 0, ("count-words",) if acts else ())
    assert forecast(runs=4).tokens == 2 * first.tokens > 0
    assert acts
    prowess.Trust().grant(catalog["count-words"])
    assert forecast(runs=2).untrusted == ()
    assert forecast(runs=2, trust="never").untrusted == ("count-words",)


def test_results_go_on_after_a_line_that_a_crash_has_cut(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"})
    results = desk.base / "results.jsonl"
    model = desk.write_script("no")
    desk.evaluate(model, results=results)
    text = results.read_text()
    results.write_text(text[:-40])
    desk.evaluate(model, results=results)
    assert len(desk.made) == 1
    desk.evaluate(model, results=results)
    assert desk.made == []


def test_file_of_something_else_is_not_a_file_of_results(desk: Desk) -> None:
    other = desk.base / "notes.txt"
    other.write_text("my notes\n")
    other.chmod(0o600)
    with pytest.raises(prowess.SourceError, match="not a file of results") as caught:
        EvalResults.open(str(other))
    assert (caught.value.code, other.read_text()) == ("bad-results", "my notes\n")
    kept = desk.base / "results.jsonl"
    with EvalResults.open(str(kept)), pytest.raises(prowess.SkillError, match="another run writes"):
        EvalResults.open(str(kept))
    kept.chmod(0o666)
    with pytest.raises(prowess.SourceError, match="others may write"):
        EvalResults.open(str(kept))


# -- bounds and faults -------------------------------------------------------------------------------------------------


def test_tokens_bound_all_runs_together_and_a_later_evaluation_goes_on(desk: Desk) -> None:
    desk.write_cases(TASK)
    results = desk.base / "results.jsonl"
    model = desk.write_script(*KNOWS)
    cost = desk.evaluate(model).spent
    stopped = desk.evaluate(model, results=results, max_tokens=cost // 2)
    assert (stopped.stopped, stopped.error and stopped.error.code) == ("tokens", "token-limit")
    done = len(desk.made)
    assert (0 < done < 3, stopped.left) == (True, 3 - done)
    finished = desk.evaluate(model, results=results)
    assert (len(desk.made), finished.left, finished.stopped) == (3 - done, 0, "")


def test_first_runs_of_all_cases_come_before_second_ones(desk: Desk) -> None:
    desk.write_cases({"query": "a"}, {"query": "b"})
    desk.evaluate(desk.write_script("no"), runs=2)
    assert [(run.plan.case.query, run.plan.number) for run in desk.made] == [
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
    ]


def test_failed_run_does_not_count_and_is_made_again(desk: Desk) -> None:
    desk.write_cases({"query": "say hello"}, {"query": "greet me"})
    results = desk.base / "results.jsonl"
    loads = (ToolCall("load_skill", {"name": "greet"}), Text("Hello."))
    with provide(play(Failure(400), *loads, *loads)) as provider:
        model = ModelChoice("tiny", f"{provider.url}/v1")
        report = desk.evaluate(model, results=results)
        assert (report.left, report.stopped, report.score) == (1, "", 1.0)
        assert report.error is not None
        assert "400" in report.error.message
        again = desk.evaluate(model, results=results)
    assert [run.plan.arm for run in desk.made] == ["full"]
    assert (again.left, again.score, again.error) == (0, 1.0, None)


def test_evaluation_stops_where_every_run_fails(desk: Desk) -> None:
    desk.write_cases(*({"query": str(number)} for number in range(5)))
    report = desk.evaluate(desk.write_script({"text": "x", "when": "never said"}))
    assert (len(desk.made), report.stopped, report.left) == (3, "failures", 5)
    assert report.error is not None
    assert report.error.code == "script-ended"


def test_unknown_skill_is_an_error_before_anything_runs(desk: Desk) -> None:
    cases = desk.base / "cases.json"
    cases.write_text(json.dumps([{"query": "q", "skill": "gret"}]), encoding="utf-8")
    with pytest.raises(prowess.UnknownSkillError, match="greet"):
        desk.evaluate(desk.write_script("x"), cases=cases)


@pytest.mark.parametrize(
    ("task", "code"),
    [
        ({"files": {"a.txt": "\ud800"}}, "bad-evals"),
        ({"files": {"\ud800.txt": "x"}}, "bad-evals"),
        ({"files": {"a": "x", "a-b": "y", "a/b": "z"}}, "bad-evals"),
        ({"files": {"a/b/c": "x", "a/b": "y"}}, "bad-evals"),
        ({"files": {"x" * 300: "x"}}, "unwritable"),
        ({"files": {".git/config": "x"}}, "bad-evals"),
        ({"files": {"a": "\u00e9"}, "checks": [{"file": "a", "contains": "\ud800"}]}, "bad-evals"),
        ({"checks": [{"command": "echo \ud800"}]}, "bad-evals"),
    ],
)
def test_evals_of_a_hostile_skill_raise_only_our_errors(desk: Desk, task: dict[str, Any], code: str) -> None:
    desk.write_cases({"prompt": "do it", "checks": [{"text": "a"}], **task})
    with pytest.raises(prowess.SkillError) as caught:
        desk.evaluate(desk.write_script("a"))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("cases", "bound"),
    [
        ([{"query": "q"}] * 4, {"max_evals": 3}),
        ([{"query": "q", "more": "x" * 500}], {"max_eval_bytes": 400}),
        ([{"query": "q", "checks": [{"text": f"{n}"} for n in range(4)]}], {"max_eval_checks": 3}),
        ([{"query": "q", "assertions": [f"It is {n}." for n in range(4)]}], {"max_eval_checks": 3}),
        ([{"query": "q", "files": {f"{n}.txt": "" for n in range(4)}}], {"max_files_per_skill": 3}),
        ([{"query": "q", "files": {f"{n}.txt": "abcd" for n in range(4)}}], {"max_eval_file_bytes": 15}),
        ([{"query": "q", "files": ["SKILL.md"]}], {"max_eval_file_bytes": 15}),
    ],
)
def test_evals_beyond_a_limit_are_refused(desk: Desk, cases: list[dict[str, Any]], bound: dict[str, int]) -> None:
    desk.write_cases(*({"checks": [{"text": "a"}], **case} for case in cases))
    limits = prowess.Limits(**bound)
    catalog, model = prowess.scan(desk.scene.skills), desk.write_script("a")

    def prepare() -> None:
        found = prowess.load_evals(desk.scene.skills / "greet", limits=limits)
        asyncio.run(Evaluation(found, catalog, model, EvalOptions(limits=limits)).prepare())

    with pytest.raises(prowess.SourceError) as caught:
        prepare()
    assert caught.value.code == "bad-evals"
    assert f"{next(iter(bound.values())):,}" in caught.value.message

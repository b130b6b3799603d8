"""What an evaluation with a model shows: a line as each run ends, the tables at the end, and how to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Line, Span, Style, Table, Title, line
from prowess.files.paths import shorten_path
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.agent.eval_runs import ArmResult, CaseResult, EvalAgentReport, EvalForecast, EvalRun

_MAX_SHOWN = 60


class EvaluationOutcome(NamedTuple):
    """The report of an evaluation, and what it was made with."""

    report: EvalAgentReport
    model: str
    judge: str
    runs: int
    skills: int
    least: float
    results: str

    @property
    def passed(self) -> bool:
        """True when no run is left and enough of them came out right."""
        score = self.report.score
        return score is not None and score >= self.least and not self.report.left


# -- while it runs -----------------------------------------------------------------------------------------------------


def note_forecast(forecast: EvalForecast) -> None:
    """Say how many runs begin, what they cost, and which skills cannot show what they do."""
    stored = f"; {format_count(forecast.stored, 'run')} taken from the file of results" if forecast.stored else ""
    if forecast.runs:
        printer.note(f"{format_count(forecast.runs, 'run')}, about {forecast.tokens:,} tokens{stored}")
    for name in forecast.untrusted:
        printer.note(
            f"{name} is not trusted as it is now: its scripts and commands will be refused, and the runs count that "
            f"against it (prowess trust grant {name})"
        )


def print_run(run: EvalRun, done: int, total: int) -> None:
    """Print a line about a run that has ended, for people who wait."""
    plan = run.plan
    if run.error is not None:
        how: Span = (f"failed: {run.error.message}", "bad")
    elif run.verdicts:
        held = sum(verdict.passed for verdict in run.verdicts)
        how = f"{held} of {format_count(len(run.verdicts), 'check')} held"
    else:
        how = f"loaded {', '.join(run.loaded) or 'nothing'}"
    words = f"{done}/{total} {plan.arm} {plan.case.skill}: {_shorten(plan.case.query)} "
    costs = f" ({run.tokens:,} tokens, {run.seconds:.1f} s)"
    printer.print_blocks([line((words, "dim"), how, (costs, "dim"))], error=True)


def note_left(outcome: EvaluationOutcome) -> None:
    """Say what is left, and how to go on."""
    report = outcome.report
    if not report.left:
        return
    why = {"tokens": "the tokens are spent", "failures": "the model fails", "interrupt": "the evaluation was ended"}
    way = (
        f"the same command goes on, with what {outcome.results} has"
        if outcome.results
        else "--results FILE keeps those that are done"
    )
    printer.note(f"{why.get(report.stopped, 'some runs failed')}: {format_count(report.left, 'run')} left; {way}")


def _shorten(text: str) -> str:
    first = " ".join(text.split())
    return first if len(first) <= _MAX_SHOWN else f"{first[:_MAX_SHOWN]}…"


# -- at the end --------------------------------------------------------------------------------------------------------


def print_outcome(outcome: EvaluationOutcome, *, as_data: bool) -> None:
    """Print the report as tables, or as JSON."""
    printer.print_answer(lambda: _to_dict(outcome), lambda: _to_blocks(outcome), as_data=as_data)


def _to_dict(outcome: EvaluationOutcome) -> dict[str, object]:
    report = outcome.report
    score = report.score
    return {
        "model": outcome.model,
        "judge": outcome.judge,
        "runs": outcome.runs,
        "skills": outcome.skills,
        "min": outcome.least,
        "passed": outcome.passed,
        "score": None if score is None else round(score, 4),
        "rates": {
            "full": _round_share(report.rate("full")),
            "selected": _round_share(report.rate("selected")),
            "with": _round_share(report.rate("with")),
            "without": _round_share(report.rate("without")),
        },
        "spent": report.spent,
        "left": report.left,
        "stopped": report.stopped,
        "results": [_case_to_dict(case) for case in report.cases],
    }


def _round_share(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _case_to_dict(result: CaseResult) -> dict[str, object]:
    return {
        "query": result.case.query,
        "skill": result.case.skill,
        "should_trigger": result.case.should_trigger,
        "source": result.case.source,
        "left_out": result.left_out,
        "arms": [
            {
                "arm": arm.arm,
                "planned": arm.planned,
                "runs": arm.runs,
                "right": arm.right,
                "loaded": arm.loaded,
                "loaded_other": arm.loaded_other,
                "others": [{"name": name, "runs": runs} for name, runs in arm.others.items()],
                "checks": [{"what": what, "passed": passed} for what, passed in arm.verdicts.items()],
                "failed": arm.failed,
                "sent": arm.sent,
                "received": arm.received,
                "kept": [
                    {
                        "number": run.plan.number,
                        "right": run.is_right,
                        "seconds": run.seconds,
                        "folder": run.folder,
                    }
                    for run in arm.finished
                    if run.folder
                ],
            }
            for arm in result.arms
        ],
    }


def _to_blocks(outcome: EvaluationOutcome) -> Iterator[Block]:
    report = outcome.report
    yield Title(
        "Which skill loads", f"runs that loaded the skill, of {outcome.runs}, from the full and the selected listing"
    )
    head = ("full", "selected", "others", "tokens", "should load", "query")
    yield Table([_trigger_row(case) for case in report.cases], head, indent=2, right=frozenset((3,)))
    tasks = [case for case in report.cases if len(case.arms) > 2]  # noqa: PLR2004 - the trigger arms are two
    if tasks:
        yield Title("Tasks", f"runs in which every check held, of {outcome.runs}")
        head = ("with", "without", "tokens with", "without", "skill", "task")
        yield Table([_task_row(case) for case in tasks], head, indent=2, right=frozenset((2, 3)))
        yield from _broken_checks_to_blocks(tasks)
    left_out = [case for case in report.cases if case.left_out]
    if left_out:
        yield Title("Tasks left out")
        yield from (line(f"{_shorten(case.case.query)}: {case.left_out}", indent=2) for case in left_out)
    yield Line()
    yield line(*_describe_verdict(outcome))
    yield line(
        (f"{outcome.model}, {format_count(outcome.skills, 'skill')}, {report.spent:,} tokens used now", "dim"), indent=2
    )


def _trigger_row(result: CaseResult) -> tuple[Cell, ...]:
    case = result.case
    arms = [arm for arm in result.arms if arm.arm in {"full", "selected"}]
    others = dict.fromkeys(name for arm in arms for name in arm.others)
    counts = ", ".join(f"{name} ({_count_other(arms, name)})" for name in others)
    tokens = sum(arm.sent + arm.received for arm in arms)
    cells = [_count_cell(arm, arm.loaded) for arm in arms] or ["", ""]
    expected: Cell = (case.skill, "name") if case.should_trigger else ("not ", (case.skill, "name"))
    return (*cells, (counts or "-", "warn" if counts else "dim"), f"{tokens:,}", expected, _shorten(case.query))


def _count_other(arms: Sequence[ArmResult], name: str) -> str:
    """Return how many runs loaded another skill, by the listing."""
    return ", ".join(f"{arm.others[name]} {arm.arm}" for arm in arms if name in arm.others)


def _task_row(result: CaseResult) -> tuple[Cell, ...]:
    arms = {arm.arm: arm for arm in result.arms}
    first, second = arms["with"], arms["without"]
    plain = (
        f"{second.right}/{second.runs}" if second.runs else "-"
    )  # no colour: it is no failure of the skill that models need it
    tokens = (f"{arm.sent + arm.received:,}" for arm in (first, second))
    return (_count_cell(first, first.right), plain, *tokens, (result.case.skill, "name"), _shorten(result.case.query))


def _count_cell(arm: ArmResult, count: int) -> Cell:
    style: Style = "dim" if not arm.runs else "good" if arm.right == arm.runs else "bad"
    failed = f" ({arm.failed} failed)" if arm.failed else ""
    return f"{count}/{arm.runs}{failed}" if arm.runs or failed else "-", style


def _broken_checks_to_blocks(tasks: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the checks that did not hold in each run with the skill, and where the first such run is kept."""
    rows = [
        (f"{held}/{arm.runs}", what, _shorten(task.case.query), _find_broken(arm, what))
        for task in tasks
        for arm in task.arms
        if arm.arm == "with"
        for what, held in arm.verdicts.items()
        if held < arm.runs
    ]
    if rows:
        yield Title("Checks that did not always hold with the skill")
        head = ("held", "check", "task", "kept in")
        columns = len(head) if any(row[-1] for row in rows) else -1
        yield Table([row[:columns] for row in rows], head[:columns], indent=2)


def _find_broken(arm: ArmResult, what: str) -> str:
    """Return the folder of the first run in which a check did not hold; ``""`` where none is kept."""
    broken = (run.folder for run in arm.finished if run.folder and (what, False) in run.verdicts)
    return next(map(shorten_path, broken), "")


def _describe_verdict(outcome: EvaluationOutcome) -> Iterator[Span]:
    report = outcome.report
    if report.score is None:
        yield ("No run has come to its end.", "warn")
        return
    if report.left:
        yield ("So far: ", "warn")
    else:
        yield ("Passed: ", "good") if outcome.passed else ("Failed: ", "bad")
    yield f"{report.score:.0%} of the runs right, wanted {outcome.least:.0%}"
    words = {"full": "full listing", "selected": "selected", "with": "tasks with the skill", "without": "without it"}
    rates = ((said, report.rate(arm)) for arm, said in words.items())  # type: ignore[arg-type]  # the names of the arms
    yield f" ({', '.join(f'{said} {rate:.0%}' for said, rate in rates if rate is not None)})"

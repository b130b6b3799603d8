"""The evaluation with a model on the command line: its options, how it is run, and what it prints."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.agent_options import (
    TRUST_CHOICES,
    base_url_option,
    model_option,
    require_agent,
    sandbox_option,
)
from prowess.cli.options import group_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Line, Span, Style, Table, Title, line
from prowess.cli.search_modes import prepare_catalog
from prowess.cli.terminal import open_terminal
from prowess.errors import SkillError
from prowess.files.paths import shorten_path
from prowess.format.frontmatter.fields import parse_allowed_tools
from prowess.limits import DEFAULT_LIMITS
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.agent.eval_results import ArmResult, CaseResult, EvalAgentReport, EvalForecast, EvalRun
    from prowess.agent.evaluation import EvalOptions
    from prowess.agent.models import ModelChoice
    from prowess.authoring.eval_files import EvalCase
    from prowess.settings import Settings


_DEFAULT_RUNS = 3
_DEFAULT_TOOLS = "Read Write"


class EvaluationFlags(NamedTuple):
    """How the command line bounds an evaluation with a model; ``None`` is what nobody wrote."""

    model: str | None
    base_url: str | None
    judge: str | None
    runs: int | None
    results: str | None
    tools: str | None
    trust: str | None
    sandbox: str | None
    max_turns: int | None
    max_tokens: int | None

    @property
    def settings(self) -> dict[str, str | None]:
        """The flags that override settings, by the names of those."""
        return {"model": self.model, "base_url": self.base_url, "sandbox": self.sandbox}

    @property
    def first_given(self) -> str:
        """The first of these flags that somebody wrote, or ``""``."""
        given = (name for name, value in self._asdict().items() if value is not None)
        name = next(given, "")
        return f"--{name.replace('_', '-')}" if name else ""


evaluation_options = group_options(
    "flags",
    EvaluationFlags,
    model=model_option,
    base_url=base_url_option,
    judge=click.option(
        "--judge",
        metavar="PROVIDER:NAME",
        help="A model that judges the expectations of tasks; without it, checks count.",
    ),
    runs=click.option(
        "--runs", type=click.IntRange(1), help=f"How often each query and task is run; {_DEFAULT_RUNS} by default."
    ),
    results=click.option(
        "--results",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Keep each run in this file, and do not repeat those that it has.",
    ),
    tools=click.option(
        "--tools",
        metavar="TOOLS",
        help=f"The tools of its own that the model has; '{_DEFAULT_TOOLS}' by default, and Bash if you name it.",
    ),
    trust=click.option(
        "--trust",
        type=click.Choice(TRUST_CHOICES),
        help="Scripts, commands of checks and Bash: ask (the default), run what is granted, or never.",
    ),
    sandbox=sandbox_option,
    max_turns=click.option("--max-turns", type=click.IntRange(1), help="How many requests one run may make."),
    max_tokens=click.option(
        "--max-tokens",
        type=click.IntRange(1),
        help=f"How many tokens all runs may use together; {DEFAULT_LIMITS.max_agent_tokens:,} by default.",
    ),
)
"""The options of ``prowess eval --with-model``; the command gets them as ``flags``."""


def evaluate_with_model(
    cases: Sequence[EvalCase], catalog: prowess.Catalog, settings: Settings, flags: EvaluationFlags, *, as_data: bool
) -> int:
    """Give the cases to a model, print what came out, and return the exit status.

    Raises the error of the last run that failed where runs are left. Ctrl-C prints what came out until then.
    """
    require_agent()
    import asyncio

    from prowess.agent.eval_results import EvalResults
    from prowess.agent.evaluation import Evaluation

    model, judge = _choose_models(settings, flags)
    prepare_catalog(catalog)  # as without a model: the selected listing must not depend on earlier searches
    with ExitStack() as stack:
        results = stack.enter_context(EvalResults.open(flags.results)) if flags.results else None
        options = _make_options(settings, flags, stack)
        if options.person is None and options.trust == "ask" and any(case.task for case in cases):
            printer.note("There is no terminal, so nobody is asked: what would need an answer is refused.")
        evaluation = Evaluation(cases, catalog, model, options, judge=judge, results=results)

        def finish(report: EvalAgentReport) -> EvaluationOutcome:
            least = float(settings["min"])  # type: ignore[arg-type]  # a share is a number
            names = (model.name, judge.name if judge else "")
            outcome = EvaluationOutcome(report, *names, options.runs, len(catalog), least, flags.results or "")
            print_outcome(outcome, as_data=as_data)
            return outcome

        async def run() -> EvalAgentReport:
            note_forecast(await evaluation.prepare())
            return await evaluation.run(print_run)

        try:
            report = asyncio.run(run())
        except (KeyboardInterrupt, SkillError):
            report = evaluation.report("interrupt")
            if report.has_runs:  # what was paid for is shown
                note_left(finish(report))
            raise
    outcome = finish(report)
    note_left(outcome)
    if report.error is not None and report.left:
        printer.flush()
        raise report.error
    return 0 if outcome.passed else 1


def _choose_models(settings: Settings, flags: EvaluationFlags) -> tuple[ModelChoice, ModelChoice | None]:
    """Return the model of the settings, and the second one that judges it, if the command line names one.

    Both are made once, so that ``ModelError`` is raised for a name without a key before anything else happens.
    """
    from prowess.agent.models import ModelChoice

    address = settings.text("base_url")
    model = ModelChoice(settings.text("model"), address)
    judge = ModelChoice(flags.judge, address) if flags.judge else None
    model.make()
    if judge is not None:
        judge.make()
    return model, judge


def _make_options(settings: Settings, flags: EvaluationFlags, stack: ExitStack) -> EvalOptions:
    from prowess.agent.evaluation import EvalOptions
    from prowess.cli.agent_screen import TerminalPerson

    trust = flags.trust or "ask"
    terminal = stack.enter_context(open_terminal()) if trust == "ask" else None
    return EvalOptions(
        runs=flags.runs or _DEFAULT_RUNS,
        tools=parse_allowed_tools(_DEFAULT_TOOLS if flags.tools is None else flags.tools),
        person=TerminalPerson(terminal) if terminal else None,
        trust=trust,  # type: ignore[arg-type]  # one of its choices
        sandbox=settings.text("sandbox"),  # type: ignore[arg-type]  # one of its choices
        max_turns=flags.max_turns or DEFAULT_LIMITS.max_agent_turns,
        max_tokens=flags.max_tokens or DEFAULT_LIMITS.max_agent_tokens,
        request_seconds=settings.number("timeout"),
        budget=settings.number("budget"),
        window=settings.number("window"),
        filter=settings.text("filter"),
    )


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
    made = {arm.arm for case in report.cases for arm in case.arms}
    listings = [arm for arm in ("full", "selected") if arm in made]
    which = "from the full and the selected listing" if "selected" in made else "from a listing of all skills"
    yield Title("Which skill loads", f"runs that loaded the skill, of {outcome.runs}, {which}")
    head = (*listings, "others", "tokens", "should load", "query")
    yield Table(
        [_trigger_row(case, listings) for case in report.cases], head, indent=2, right=frozenset((len(listings) + 1,))
    )
    tasks = [case for case in report.cases if any(arm.arm == "with" for arm in case.arms)]
    if tasks:
        yield Title("Tasks", f"runs whose checks all held, of {outcome.runs}")
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


def _trigger_row(result: CaseResult, listings: Sequence[str]) -> tuple[Cell, ...]:
    case = result.case
    arms = [arm for arm in result.arms if arm.arm in listings]
    others = dict.fromkeys(name for arm in arms for name in arm.others)
    counts = ", ".join(f"{name} ({_count_other(arms, name)})" for name in others)
    tokens = sum(arm.sent + arm.received for arm in arms)
    cells = [_count_cell(arm, arm.loaded) for arm in arms]
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
    )  # no colour: it is not a failure of the skill that models need it
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
    """Return the folder of the first run with a check that did not hold; ``""`` where none is kept."""
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

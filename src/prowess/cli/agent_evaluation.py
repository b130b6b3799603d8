"""The evaluation with a model on the command line: its options, and how it is run."""

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
from prowess.cli.search_modes import prepare_catalog
from prowess.cli.terminal import open_terminal
from prowess.errors import SkillError
from prowess.format.allowed_tools import parse_allowed_tools
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import prowess
    from prowess.agent.eval_runs import EvalAgentReport
    from prowess.agent.evaluation import EvalOptions
    from prowess.agent.models import ModelChoice
    from prowess.authoring.eval_files import EvalCase
    from prowess.cli.evaluation_screen import EvaluationOutcome
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
    from prowess.cli import evaluation_screen as screen

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
            outcome = screen.EvaluationOutcome(report, *names, options.runs, len(catalog), least, flags.results or "")
            screen.print_outcome(outcome, as_data=as_data)
            return outcome

        async def run() -> EvalAgentReport:
            screen.note_forecast(await evaluation.prepare())
            return await evaluation.run(screen.print_run)

        try:
            report = asyncio.run(run())
        except (KeyboardInterrupt, SkillError):
            report = evaluation.report("interrupt")
            if report.has_runs:  # what was paid for is shown
                screen.note_left(finish(report))
            raise
    outcome = finish(report)
    screen.note_left(outcome)
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
    from prowess.cli.agent_person import TerminalPerson

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
        budget=settings.number("budget"),
        window=settings.number("window"),
        filter=settings.text("filter"),
    )

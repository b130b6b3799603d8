"""An evaluation with a model: it makes the planned runs of all cases, within a number of tokens, and keeps each result.

Each run begins in a new folder that is deleted afterwards, so that ``Read`` and ``Write`` need nobody's leave there.
Beside a file of results, a copy of what it leaves is kept.
The model cannot read the ``evals/`` of a skill, where the tests are.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from prowess.agent.eval_judgement import CheckRunner, CommandConsent, ask_judge
from prowess.agent.eval_results import (
    TASK_ARMS,
    TRIGGER_ARMS,
    CaseResult,
    EvalAgentReport,
    EvalForecast,
    EvalRun,
    PlannedRun,
    add_up_runs,
)
from prowess.agent.task_run import INSTRUCTIONS, TaskOptions, run_task
from prowess.authoring.eval_files import read_eval_file
from prowess.conversation.acting.sandbox import choose_sandbox
from prowess.conversation.acting.snapshot import take_snapshot
from prowess.conversation.acting.trust import Trust
from prowess.conversation.session import Session
from prowess.conversation.tool_rules import parse_tool_pattern
from prowess.errors import ModelError, NotTrustedError, SandboxError, SourceError
from prowess.files.delete import temporary_folder
from prowess.files.write import make_folders, write_new_file
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.names import EVALS_FOLDER, split_resource_path
from prowess.select.auto import DEFAULT_BUDGET, AutoSelector
from prowess.select.budget import listing_costs
from prowess.skills.catalog import Catalog
from prowess.skills.inventory import inventory
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prowess.agent.approval import Person, ToolAnswer, ToolRequest
    from prowess.agent.eval_results import Arm, EvalResults, EvalVerdict, StopReason
    from prowess.agent.models import ModelChoice
    from prowess.agent.task_result import TaskResult
    from prowess.agent.task_run import TrustChoice
    from prowess.authoring.eval_files import EvalCase, EvalFile
    from prowess.conversation.acting.sandbox import Kind
    from prowess.conversation.acting.trust import AskAnswer
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.errors import SkillError
    from prowess.select.selectors import Selector

    OnEvalRun = Callable[[EvalRun, int, int], None]
    """Called after each run that was made, with how many are finished or failed, and how many there are."""

_TRIGGER_REQUESTS, _TASK_REQUESTS = 2, 6
"""How many requests a run usually makes: a skill is loaded and the answer given, or a task is carried out."""
_TOOLS_TOKENS = 1_000
"""About what the tools, the instructions and the loaded skill add to the listing in each request."""


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """How an evaluation is bounded, and who decides in it.

    ``runs``: how often each case is run in each arm. ``tools``: the ceiling of the model's own tools. ``person``:
    whoever is asked; without one, what would need an answer is refused. ``trust``: ``ask`` asks about scripts, commands
    of checks, and ``Bash``; ``granted`` runs what is granted, and ``Bash`` in the sandbox if ``tools`` has it;
    ``never`` runs nothing. ``max_tokens``: for all runs together.
    """

    runs: int = 3
    tools: tuple[str, ...] = ("Read", "Write")
    person: Person | None = None
    trust: TrustChoice = "ask"
    sandbox: Kind = "auto"
    max_turns: int = DEFAULT_LIMITS.max_agent_turns
    max_tokens: int = DEFAULT_LIMITS.max_agent_tokens
    request_seconds: int | None = None
    budget: int | None = None
    window: int | None = None
    """The tokens of the selected listing, and the context window that it takes a part of: as for ``AutoSelector``."""
    filter: str = ""
    limits: Limits = DEFAULT_LIMITS


class Evaluation:
    """The cases of an evaluation, its runs so far, and what is left of them."""

    def __init__(
        self,
        cases: Sequence[EvalCase],
        catalog: Catalog,
        model: ModelChoice,
        options: EvalOptions,
        *,
        judge: ModelChoice | None = None,
        results: EvalResults | None = None,
    ) -> None:
        """Raise ``UnknownSkillError`` for a case about a skill that the catalogue does not have."""
        # A case may write the name in another way than the skill itself.
        self._cases = tuple(dict.fromkeys(case._replace(skill=catalog[case.skill].name) for case in cases))
        self._catalog = catalog
        # A model that read the tests of a skill would know what is expected of it.
        self._shown = Catalog(skill.without_folder(EVALS_FOLDER) for skill in catalog)
        self._smaller: dict[str, Catalog] = {}
        """The catalogue without one skill, by its name: each has an index for its selector, which is made once."""
        self._model = model
        self._judge = judge
        self._results = results
        self._options = options
        self._person = _EvalPerson(options)
        self._consent = CommandConsent(options.trust, options.sandbox, self._person if options.person else None)
        self._sandbox = _name_sandbox(options.sandbox)
        self._checks = CheckRunner(self._consent, options.sandbox, options.limits)
        self._listing_tokens = sum(listing_costs(skill for skill in self._shown if skill.model_invocable).values())
        self._plan: list[PlannedRun] = []
        self._runs: dict[PlannedRun, EvalRun] = {}
        self._left_out: dict[EvalCase, str] = {}
        self._spent = 0

    async def prepare(self) -> EvalForecast:
        """Plan the runs, if nobody has, and return what they will cost; whoever decides about commands is asked now."""
        if not self._plan:
            await self._make_plan()
        left = [plan for plan in self._plan if plan not in self._runs]
        finished = [run.tokens for run in self._runs.values() if run.is_finished]
        tokens = sum(self._estimate_tokens(plan) for plan in left)
        if finished:
            tokens = len(left) * sum(finished) // len(finished)
        return EvalForecast(len(left), len(self._plan) - len(left), tokens, self._find_untrusted(left))

    def _estimate_tokens(self, plan: PlannedRun) -> int:
        """Return about how many tokens a run uses: the listing and the instructions, again with each request."""
        listing = self._listing_tokens
        if plan.arm != "full":
            listing = min(listing, self._options.budget or DEFAULT_BUDGET)
        requests = _TASK_REQUESTS if plan.arm in TASK_ARMS else _TRIGGER_REQUESTS
        return requests * (listing + _TOOLS_TOKENS)

    def _find_untrusted(self, plans: Sequence[PlannedRun]) -> tuple[str, ...]:
        """Return the skills that have scripts or commands, are not granted, and about which nobody is asked."""
        options = self._options
        if options.trust == "ask" and options.person is not None:
            return ()
        skills = [self._catalog[name] for name in sorted({plan.case.skill for plan in plans if plan.arm == "with"})]
        acting = [skill for skill in skills if skill.is_local and inventory(skill).acts]
        return tuple(skill.name for skill in acting if options.trust == "never" or not Trust().is_trusted(skill))

    async def run(self, on_run: OnEvalRun | None = None) -> EvalAgentReport:
        """Make the runs that are not stored yet, one after the other; return what all of them say.

        It stops early where the tokens are spent, where the model has no key, and where several runs in a row fail; the
        report says so. When the call is cancelled, ``report`` still has what was done. Raises ``SkillError`` where a
        file of a case or a sandbox is missing.
        """
        await self.prepare()
        failures, error = 0, None
        for plan in self._plan:
            if plan in self._runs:
                continue
            if self._spent >= self._options.max_tokens:
                return self.report("tokens", self._explain_limit())
            run = await self._make_run(plan)
            self._spent += run.tokens
            if run.error is not None and run.error.code == "token-limit":
                return self.report("tokens", self._explain_limit())
            self._keep(run)
            if on_run is not None:
                on_run(run, len(self._runs), len(self._plan))
            failures, error = (0, error) if run.is_finished else (failures + 1, run.error)
            if run.error is not None and (
                run.error.code == "no-model-key" or failures >= self._options.limits.max_failed_runs
            ):
                return self.report("failures", run.error)
        return self.report("", error)

    def report(self, stopped: StopReason = "", error: SkillError | None = None) -> EvalAgentReport:
        """Return what the runs say so far."""
        left = len(self._plan) - sum(run.is_finished for run in self._runs.values())
        planned: dict[tuple[EvalCase, Arm], list[PlannedRun]] = {}
        for plan in self._plan:
            planned.setdefault((plan.case, plan.arm), []).append(plan)
        cases = tuple(self._report_case(case, planned) for case in self._cases)
        return EvalAgentReport(cases, left, self._spent, stopped, error)

    def _explain_limit(self) -> ModelError:
        bounds = f"the evaluation has used {self._spent:,} tokens; it may use {self._options.max_tokens:,}"
        return ModelError(bounds, code="token-limit")

    def _report_case(self, case: EvalCase, planned: dict[tuple[EvalCase, Arm], list[PlannedRun]]) -> CaseResult:
        arms = []
        for arm in (*TRIGGER_ARMS, *TASK_ARMS):
            plans = planned.get((case, arm))
            if plans:
                arms.append(add_up_runs(arm, len(plans), [self._runs[plan] for plan in plans if plan in self._runs]))
        return CaseResult(case, tuple(arms), self._left_out.get(case, ""))

    def _keep(self, run: EvalRun) -> None:
        self._runs[run.plan] = run
        if self._results is not None:
            self._results.add(run)

    # -- the plan ----------------------------------------------------------------------------------------------------

    async def _make_plan(self) -> None:
        """Plan the runs of all cases, and take over those that are stored."""
        await self._leave_out_tasks()
        describe = cache(self._describe_skill)  # each skill is hashed once, however many cases it has
        # Where every skill is listed anyway, the same run would be paid for twice.
        trigger_arms = TRIGGER_ARMS[:1] if self._lists_all() else TRIGGER_ARMS
        for case in self._cases:
            has_task = _is_task(case) and case not in self._left_out
            files = self._hash_files(case)
            for arm in (*trigger_arms, *(TASK_ARMS if has_task else ())):
                key = self._make_key(case, arm, files, describe(case.skill, is_there=arm != "without"))
                self._plan += [PlannedRun(case, arm, number, key) for number in range(1, self._options.runs + 1)]
        # The first run of every case comes before the second of any: an evaluation that is stopped has seen them all.
        self._plan.sort(key=lambda plan: plan.number)
        for plan in self._plan:
            stored = self._results.find(plan) if self._results is not None else None
            if stored is not None:
                self._runs[plan] = stored

    def _lists_all(self) -> bool:
        """Return whether the listing that the selector makes is that of all skills."""

        def make_prompt(selector: Selector | Literal["auto"] | None, budget: int | None) -> str:
            session = Session(self._shown, selector=selector, filter=self._options.filter)
            return Toolset(session, budget=budget).prompt()

        return make_prompt(self._make_selector(), self._options.budget) == make_prompt(None, None)

    async def _leave_out_tasks(self) -> None:
        """Find out which tasks are not carried out, and why; whoever decides about commands is asked now."""
        commanded: dict[str, list[tuple[EvalCase, tuple[str, ...]]]] = {}
        for case in self._cases:
            if case.task is None or not _is_task(case):
                continue
            commands = tuple(check.command for check in case.task.checks if check.command)
            if not case.task.checks and self._judge is None:
                self._left_out[case] = "only a model can judge it: --judge names one"
            elif commands:
                commanded.setdefault(case.skill, []).append((case, commands))
        for name, rows in commanded.items():
            skill = self._catalog[name]
            try:
                with take_snapshot(skill) as snapshot:
                    for case, commands in rows:
                        reason = await self._consent.explain_refusal(commands, case.source, snapshot, skill)
                        if reason:
                            self._left_out[case] = reason
            except NotTrustedError as error:
                self._left_out |= dict.fromkeys((case for case, _ in rows), error.message)

    def _make_key(self, case: EvalCase, arm: Arm, files: list[tuple[str, str]], skill: tuple[object, ...]) -> str:
        options, task = self._options, case.task
        row: list[object] = [arm, self._model.identify(), case.query, *skill, options.filter]
        row += [options.tools, options.trust, options.person is not None, self._sandbox, INSTRUCTIONS]
        row += [self._count_turns(arm), *((options.budget, options.window) if arm != "full" else ()), files]
        if task is not None and arm in TASK_ARMS:
            row += [task.checks, task.rubric, self._judge.identify() if self._judge and task.rubric else ""]
        return sha256(json.dumps(row).encode()).hexdigest()

    def _hash_files(self, case: EvalCase) -> list[tuple[str, str]]:
        """Return the paths and hashes of the files with which the task of a case begins."""
        return [(file.path, sha256(content).hexdigest()) for file, content in self._read_files(case)]

    def _read_files(self, case: EvalCase) -> Iterator[tuple[EvalFile, bytes]]:
        """Yield the files with which the task of a case begins; raise ``SourceError`` where they are too large."""
        left = self._options.limits.max_eval_file_bytes
        for file in case.task.files if case.task else ():
            content = read_eval_file(file, self._options.limits)
            left -= len(content)
            if left < 0:
                message = f"the files of an eval have more than {self._options.limits.max_eval_file_bytes:,} bytes"
                raise SourceError(message, case.source, "bad-evals")
            yield file, content

    def _describe_skill(self, name: str, *, is_there: bool) -> tuple[object, ...]:
        """Return a hash of what a model sees of all skills, and what decides how one of them acts, if that exists."""
        catalog = self._shown if is_there else self._get_smaller_catalog(name)
        rows = sorted((skill.name, skill.description) for skill in catalog if skill.model_invocable)
        listing = sha256(json.dumps(rows).encode()).hexdigest()
        if not is_there:  # a run without the skill stays as it is when the skill changes
            return (listing,)
        skill = self._catalog[name]
        digest = skill.digest() if skill.is_local else skill.location
        return listing, digest, Trust().has(digest)

    def _get_catalog(self, case: EvalCase, arm: Arm) -> Catalog:
        return self._shown if arm != "without" else self._get_smaller_catalog(case.skill)

    def _get_smaller_catalog(self, name: str) -> Catalog:
        if name not in self._smaller:
            self._smaller[name] = Catalog(skill for skill in self._shown if skill.name != name)
        return self._smaller[name]

    def _count_turns(self, arm: Arm) -> int:
        options = self._options
        return options.max_turns if arm in TASK_ARMS else min(options.max_turns, options.limits.max_trigger_turns)

    # -- one run -----------------------------------------------------------------------------------------------------

    async def _make_run(self, plan: PlannedRun) -> EvalRun:
        with temporary_folder() as folder, ExitStack() as stack:
            self._write_files(plan.case, folder)
            kept = self._results.begin_folder(plan) if self._results is not None else None
            begin = time.monotonic()
            result = await run_task(
                plan.case.query,
                self._get_catalog(plan.case, plan.arm),
                self._model.make(),
                self._make_task_options(plan.arm, folder),
                transcript=stack.enter_context(kept.transcript) if kept else None,
            )
            seconds = round(time.monotonic() - begin, 3)
            if kept is not None:
                kept.keep(result.text, folder, self._options.limits)
            run = EvalRun(
                plan,
                result.status,
                tuple(dict.fromkeys((*result.skills_loaded, *result.forks))),
                (),
                result.tokens.sent,
                result.tokens.received,
                result.error if result.status == "failed" or _is_token_limit(result) else None,
                seconds,
                kept.path if kept else "",
            )
            return await self._judge_run(run, folder, result.text) if plan.arm in TASK_ARMS and not run.error else run

    def _write_files(self, case: EvalCase, folder: str) -> None:
        for file, content in self._read_files(case):
            place = os.path.join(folder, *split_resource_path(file.path))
            try:
                make_folders(os.path.dirname(place))
                write_new_file(place, content)
            except OSError as error:  # such as a name that is too long
                message = f"cannot write the file {file.path[:200]!r} of an eval: {error.strerror}"
                raise SourceError(message, case.source, "unwritable") from None

    def _make_task_options(self, arm: Arm, folder: str) -> TaskOptions:
        options = self._options
        tools = options.tools
        if options.trust == "never":
            tools = tuple(written for written in tools if parse_tool_pattern(written).tool != "Bash")
        return TaskOptions(
            folder,
            tools,
            self._person,
            options.trust,
            options.sandbox,
            max_turns=self._count_turns(arm),
            max_tokens=options.max_tokens - self._spent,
            request_seconds=options.request_seconds,
            selector=None if arm == "full" else self._make_selector(),
            budget=None if arm == "full" else options.budget,
            filter=options.filter,
            limits=options.limits,
        )

    def _make_selector(self) -> Selector | Literal["auto"]:
        options = self._options
        if options.budget is not None:
            return AutoSelector(options.budget)
        return "auto" if options.window is None else AutoSelector(window=options.window)

    async def _judge_run(self, run: EvalRun, folder: str, answer: str) -> EvalRun:
        case, options = run.plan.case, self._options
        verdicts: list[EvalVerdict] = await self._checks.run_checks(case, self._catalog[case.skill], folder, answer)
        if self._judge is None or case.task is None or not case.task.rubric:
            return replace(run, verdicts=tuple(verdicts))
        left = options.max_tokens - self._spent - run.tokens
        if left <= 0:
            return replace(
                run, status="failed", error=ModelError("no tokens are left for the judge", code="token-limit")
            )
        judged, result = await ask_judge(self._judge, case, folder, answer, max_tokens=left, limits=options.limits)
        run = replace(run, sent=run.sent + result.tokens.sent, received=run.received + result.tokens.received)
        if not judged:
            error = result.error or ModelError(f"the judge gave no verdict for each criterion: {result.text[:200]!r}")
            return replace(run, status="failed", error=error)
        return replace(run, verdicts=(*verdicts, *judged))


class _EvalPerson:
    """Answers what the runs of an evaluation ask the user.

    What a person has answered about one command, or about one request for trust, holds for all later runs.
    """

    def __init__(self, options: EvalOptions) -> None:
        self._options = options
        self._answers: dict[str, Any] = {}

    async def ask_tool(self, request: ToolRequest) -> ToolAnswer:
        """Allow files of the working folder, which is deleted afterwards, and decide about a command."""
        if request.tool != "Bash":
            return "once"
        # Who names Bash among the tools, and asks for no questions, has decided for commands in a sandbox alone.
        if self._options.trust == "granted" and self._options.sandbox != "none":
            return "once"
        if self._options.trust != "ask" or self._options.person is None:
            return "no"
        if request.subject not in self._answers:
            self._answers[request.subject] = await self._options.person.ask_tool(request)
        return "no" if self._answers[request.subject] == "no" else "once"

    async def ask_trust(self, request: TrustRequest) -> AskAnswer:
        """Pass a question about scripts and commands of a skill on; without anybody to ask, refuse."""
        if self._options.person is None:
            return False
        if request.id not in self._answers:
            self._answers[request.id] = await self._options.person.ask_trust(request)
        answer: AskAnswer = self._answers[request.id]
        return answer


def _name_sandbox(kind: Kind) -> str:
    """Return the sandbox that scripts run in here; ``""`` where none works."""
    try:
        return choose_sandbox(kind).name
    except SandboxError:
        return ""


def _is_task(case: EvalCase) -> bool:
    return case.task is not None and bool(case.task.checks or case.task.rubric)


def _is_token_limit(result: TaskResult) -> bool:
    return result.error is not None and result.error.code == "token-limit"

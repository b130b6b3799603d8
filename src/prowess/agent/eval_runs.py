"""The runs of an evaluation with a model: what is planned, how each came out, and what they say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.agent.task_result import TaskStatus
    from prowess.authoring.eval_files import EvalCase
    from prowess.errors import SkillError

Arm = Literal["full", "selected", "with", "without"]
"""What a run has: ``full`` and ``selected`` ask which skill loads, from the listing of all skills and from the one that
the selector makes. ``with`` and ``without`` carry out a task, with the skill and with the same catalogue without it."""
TRIGGER_ARMS: tuple[Arm, ...] = ("full", "selected")
TASK_ARMS: tuple[Arm, ...] = ("with", "without")
StopReason = Literal["", "tokens", "failures", "interrupt"]
FINISHED: frozenset[TaskStatus] = frozenset(("done", "limit"))


class EvalVerdict(NamedTuple):
    """One check, or one sentence of the rubric, in words, and whether it holds."""

    what: str
    passed: bool


class PlannedRun(NamedTuple):
    """A run that an evaluation makes: a case in one arm, with its number from 1.

    ``key`` is a hash of everything that decides the outcome: the model, the case, the skill, its grant, the listing,
    the instructions of the agent and the bounds. A stored run with the same key and number is not made again.
    """

    case: EvalCase
    arm: Arm
    number: int
    key: str


class EvalForecast(NamedTuple):
    """What an evaluation is about to do: the runs that it will make, those that are stored, and about how many tokens.

    ``untrusted``: the skills of tasks whose scripts and commands will be refused, because nobody is asked about them.
    """

    runs: int
    stored: int
    tokens: int
    untrusted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvalRun:
    """How one run came out."""

    plan: PlannedRun
    status: TaskStatus
    """``limit``: it ended at its number of turns, or its answer was cut; what it did until then counts."""
    loaded: tuple[str, ...] = ()
    verdicts: tuple[EvalVerdict, ...] = ()
    sent: int = 0
    received: int = 0
    error: SkillError | None = None
    """Why it failed, so that nothing can be said about the skill."""
    seconds: float = 0.0
    """How long it took, without what judges it."""
    folder: str = ""
    """The folder with its transcript, answer and files; ``""``: they are not kept."""

    @property
    def tokens(self) -> int:
        """How many tokens it used, those of the judge included."""
        return self.sent + self.received

    @property
    def is_finished(self) -> bool:
        """Whether it counts; a run that failed is made again."""
        return self.status in FINISHED

    @property
    def is_right(self) -> bool:
        """Whether the skill loaded as it should, or, of a task, whether every check holds."""
        if self.plan.arm in TASK_ARMS:
            return all(verdict.passed for verdict in self.verdicts)
        return (self.plan.case.skill in self.loaded) == self.plan.case.should_trigger

    @property
    def others(self) -> tuple[str, ...]:
        """The skills that it loaded besides the one of the case."""
        return tuple(name for name in self.loaded if name != self.plan.case.skill)


class ArmResult(NamedTuple):
    """The runs of one case in one arm, added up."""

    arm: Arm
    planned: int
    runs: int
    """How many are finished."""
    right: int
    loaded: int
    """How many loaded the skill of the case."""
    others: dict[str, int]
    """How many loaded which other skill."""
    loaded_other: int
    """How many loaded at least one other skill."""
    verdicts: dict[str, int]
    """How many passed which check."""
    failed: int
    sent: int
    received: int
    finished: tuple[EvalRun, ...] = ()

    @property
    def rate(self) -> float | None:
        """The share of the finished runs that came out right; ``None`` before the first."""
        return self.right / self.runs if self.runs else None


class CaseResult(NamedTuple):
    """A case and its arms; ``left_out`` says why its task is not carried out, or is ``""``."""

    case: EvalCase
    arms: tuple[ArmResult, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class EvalAgentReport:
    """What the runs say so far, and what is left."""

    cases: tuple[CaseResult, ...]
    left: int
    """How many planned runs are not finished."""
    spent: int
    """Tokens that this evaluation used itself; those of stored runs are not among them."""
    stopped: StopReason = ""
    error: SkillError | None = None
    """The error of the last run that failed, or at which it stopped."""

    @property
    def has_runs(self) -> bool:
        """Whether at least one run is finished or has failed."""
        return any(arm.runs or arm.failed for case in self.cases for arm in case.arms)

    @property
    def score(self) -> float | None:
        """The share of right ones among the finished runs, without those that do without the skill; ``None``: none."""
        arms = [arm for case in self.cases for arm in case.arms if arm.arm != "without"]
        runs = sum(arm.runs for arm in arms)
        return sum(arm.right for arm in arms) / runs if runs else None

    def rate(self, arm: Arm) -> float | None:
        """Return the share of right runs in one arm, over all cases; ``None`` where there is no finished one."""
        arms = [each for case in self.cases for each in case.arms if each.arm == arm]
        runs = sum(each.runs for each in arms)
        return sum(each.right for each in arms) / runs if runs else None


def add_up_runs(arm: Arm, planned: int, runs: Sequence[EvalRun]) -> ArmResult:
    """Return the sums over the runs of one case in one arm."""
    finished = [run for run in runs if run.is_finished]
    return ArmResult(
        arm,
        planned,
        len(finished),
        sum(run.is_right for run in finished),
        sum(run.plan.case.skill in run.loaded for run in finished),
        dict(Counter(name for run in finished for name in run.others)),
        sum(bool(run.others) for run in finished),
        _count_verdicts(finished),
        sum(run.status == "failed" for run in runs),
        sum(run.sent for run in runs),
        sum(run.received for run in runs),
        tuple(finished),
    )


def _count_verdicts(runs: Sequence[EvalRun]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for run in runs:
        for verdict in run.verdicts:
            counts[verdict.what] = counts.get(verdict.what, 0) + verdict.passed
    return counts

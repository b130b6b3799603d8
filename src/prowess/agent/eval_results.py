"""The runs of an evaluation with a model: what is planned, how each came out, and the files that keep the results.

An evaluation goes on from the file. The folders are for people: they have the transcript of a run, its last answer and
the files that it left in its working folder.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from prowess.agent.api_keys import hide_keys
from prowess.agent.transcript import FileKind, JsonLines, Transcript, read_json_lines
from prowess.errors import SkillError, SourceError
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.paths import is_link, is_owned_alone
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.files.write import make_folders, write_new_file
from prowess.names import find_git_repository

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.agent.task_result import TaskStatus
    from prowess.authoring.eval_files import EvalCase
    from prowess.limits import Limits


_KIND = FileKind("file of results", "bad-results")
_BEGIN, _EVENT = "evaluation", "eval-run"


class RunFolder(NamedTuple):
    """The folder of a run that begins, and the transcript in it."""

    path: str
    transcript: Transcript

    def keep(self, answer: str, folder: str, limits: Limits) -> None:
        """Write the last answer, and copy the files of the working folder, as many bytes as the limits allow.

        What git takes for a repository is left out: git that is started in it runs commands of its settings.
        """
        write_new_file(os.path.join(self.path, "answer.txt"), hide_keys(answer).encode(), mode=0o600)
        left, left_out = limits.max_eval_kept_bytes, list[str]()
        paths = list_tree(folder, (), limits).files
        while (repository := find_git_repository(paths)) is not None:
            start = "" if repository == "." else f"{repository}/"
            left_out += [path for path in paths if path.startswith(start)]
            paths = [path for path in paths if not path.startswith(start)]
        for path in paths:
            try:
                with OpenFile(folder, tuple(path.split("/"))) as file:
                    content = file.read_all(left)
            except SkillError:  # too large, or gone since
                left_out.append(path)
                continue
            left -= len(content)
            place = os.path.join(self.path, "files", *path.split("/"))
            make_folders(os.path.dirname(place), 0o700)
            write_new_file(place, content, mode=0o600)
        if left_out:
            names = "".join(f"{path}\n" for path in left_out)
            write_new_file(os.path.join(self.path, "left-out.txt"), names.encode(), mode=0o600)


class EvalResults:
    """The finished runs in a file, by key and number, and the file to which new ones are appended."""

    def __init__(self, file: JsonLines, stored: dict[tuple[str, int], dict[str, Any]]) -> None:
        self._file = file
        self._stored = stored
        self.folder = f"{file.path}.runs"
        """Where the folders of the runs are."""

    @classmethod
    def open(cls, path: str) -> Self:
        """Begin a file that only its owner may read, or go on in one.

        Raises ``SourceError``: ``bad-results`` for a file with anything else, or that somebody else could have written;
        ``unwritable``. Raises ``BusyError`` while another evaluation writes to it.
        """
        try:
            file = JsonLines.create(path, _KIND)
            file.write_line({"event": _BEGIN})
            return cls(file, {})
        except FileExistsError:
            file = JsonLines.reopen(path, _KIND)
        try:
            stored = _read_results(path)
            file.begin_line()
        except BaseException:
            file.close()
            raise
        return cls(file, stored)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def find(self, plan: PlannedRun) -> EvalRun | None:
        """Return the stored run that a planned one would repeat, or ``None``."""
        data = self._stored.get((plan.key, plan.number))
        return None if data is None else _to_run(plan, data, self.folder)

    def begin_folder(self, plan: PlannedRun) -> RunFolder:
        """Return a new folder for a run; that of an earlier one, which failed, is deleted.

        Raises ``SourceError`` where there can be none: ``bad-results`` for a folder that others may write to.
        """
        path = os.path.join(self.folder, f"{plan.arm}-{plan.number}-{plan.key[:16]}")
        try:
            with suppress(FileExistsError):
                syscalls.make_folder(self.folder, 0o700)
            if is_link(self.folder) or not is_owned_alone(os.lstat(self.folder)):
                message = "the folder of the runs belongs to somebody else, or others may write to it"
                raise SourceError(message, self.folder, _KIND.code)
            if os.path.lexists(path):
                delete_tree(path)
            syscalls.make_folder(path, 0o700)
        except OSError as error:
            message = f"cannot make the folder of a run: {error.strerror}"
            raise SourceError(message, path, "unwritable") from None
        return RunFolder(path, Transcript.create(os.path.join(path, "transcript.jsonl")))

    def add(self, run: EvalRun) -> None:
        """Append a run."""
        self._file.write_line(_to_dict(run))


def _read_results(path: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the finished runs of a file; raise ``SourceError`` where no evaluation has begun it."""
    rows = list(read_json_lines(path, _KIND))
    if not any(row.get("event") == _BEGIN for row in rows):
        raise SourceError("this is not a file of results", path, _KIND.code)
    runs = [row for row in rows if row.get("event") == _EVENT and _is_run(row)]
    return {(row["key"], row["number"]): row for row in runs if row["status"] in _FINISHED}


def _is_run(row: dict[str, Any]) -> bool:
    numbers = (row.get("number"), row.get("sent"), row.get("received"))
    lists = (row.get("loaded"), row.get("checks"))
    return (
        isinstance(row.get("key"), str)
        and isinstance(row.get("status"), str)
        and all(isinstance(number, int) for number in numbers)
        and all(isinstance(each, list) for each in lists)
    )


def _to_dict(run: EvalRun) -> dict[str, Any]:
    plan = run.plan
    return {
        "event": _EVENT,
        "key": plan.key,
        "number": plan.number,
        "arm": plan.arm,
        "skill": plan.case.skill,
        "query": plan.case.query,
        "status": run.status,
        "loaded": list(run.loaded),
        "checks": [{"what": verdict.what, "passed": verdict.passed} for verdict in run.verdicts],
        "sent": run.sent,
        "received": run.received,
        "seconds": run.seconds,
        "folder": os.path.basename(run.folder),
        "error": {"code": run.error.code, "message": run.error.message} if run.error else None,
    }


def _to_run(plan: PlannedRun, data: dict[str, Any], folder: str) -> EvalRun:
    verdicts = tuple(
        EvalVerdict(str(check.get("what", "")), check.get("passed") is True)
        for check in data["checks"]
        if isinstance(check, dict)
    )
    loaded = tuple(str(name) for name in data["loaded"])
    name, seconds = data.get("folder"), data.get("seconds")
    path = os.path.join(folder, os.path.basename(name)) if isinstance(name, str) and name else ""
    return EvalRun(
        plan,
        data["status"],
        loaded,
        verdicts,
        data["sent"],
        data["received"],
        seconds=seconds if isinstance(seconds, int | float) else 0.0,
        folder=path if os.path.isdir(path) else "",
    )


Arm = Literal["full", "selected", "with", "without"]
"""What a run has: ``full`` and ``selected`` ask which skill loads, from the listing of all skills and from the one that
the selector makes. Where that lists all skills too, only ``full`` is run. ``with`` and ``without`` carry out a task,
with the skill and with the same catalogue without it."""
TRIGGER_ARMS: tuple[Arm, ...] = ("full", "selected")
TASK_ARMS: tuple[Arm, ...] = ("with", "without")
StopReason = Literal["", "tokens", "failures", "interrupt"]
_FINISHED: frozenset[TaskStatus] = frozenset(("done", "limit"))


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
        return self.status in _FINISHED

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

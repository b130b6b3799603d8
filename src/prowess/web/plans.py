"""The plans of the console: each is prepared, shown, confirmed and carried out once; a file keeps the results.

One change is made after the other, in a thread of its own. A plan holds for the files as they were when it was made:
when one of them has changed by the time that somebody confirms it, it is refused.
"""

from __future__ import annotations

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from threading import Condition, Lock
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from prowess.changes.change import idle_change
from prowess.errors import BusyError, Issue, NotTrustedError, SkillError
from prowess.files.identity import identity_at
from prowess.files.owned_json import OwnedJson
from prowess.policy.files import bind_policy
from prowess.progress_steps import progress
from prowess.web.forms import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from prowess.changes.change import Change
    from prowess.files.read import Identity
    from prowess.limits import Limits
    from prowess.web.library import Library


PlanState = Literal["preparing", "choosing", "ready", "running", "done", "failed", "refused", "discarded"]
WORKING_STATES = frozenset(("preparing", "running"))
"""The states that end by themselves."""
FINAL_STATES = frozenset(("done", "failed", "refused", "discarded"))
"""The states that no plan leaves."""
KEPT_STATES = FINAL_STATES - {"discarded"}
"""The states with a result that is kept when the console ends."""


class PlanKind(NamedTuple):
    """A kind of change: the action that a console must allow, and its title."""

    action: str
    title: str


PLAN_KINDS = {
    "install": PlanKind("install", "Install skills"),
    "adopt": PlanKind("install", "Take over a skill"),
    "update": PlanKind("update", "Update installs"),
    "sync": PlanKind("sync", "Sync with the lock file"),
    "verify": PlanKind("verify", "Verify installs"),
    "link": PlanKind("link", "Link for an agent"),
    "unlink": PlanKind("link", "Remove a link"),
    "trust": PlanKind("trust", "Trust a skill"),
    "revoke": PlanKind("trust", "Revoke trust"),
    "lock": PlanKind("lock", "Merge a lock file in conflict"),
}


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """A plan at one moment. A page shows it, and never sees it change."""

    id: str
    kind: str
    fields: Fields
    """The form that asked for it."""
    made: float
    """When somebody asked for it, in seconds since 1970."""
    state: PlanState = "preparing"
    change: Change[Any] | None = None
    step: tuple[str, int, int] = ("", 0, 0)
    """What is being done, how many steps are done, and how many there are; the last is 0 where nobody knows."""
    result: Sequence[str] = ()
    """What was done, a sentence each."""
    issues: Sequence[Issue] = ()
    error: SkillError | None = None
    changed: Sequence[str] = ()
    """The files that changed since the plan was made, for which it was refused."""
    is_earlier: bool = False
    """Whether it was read from the file of results: what its page showed beside the steps is gone."""

    @property
    def title(self) -> str:
        """What kind of change it is, for people."""
        return PLAN_KINDS[self.kind].title

    @property
    def is_working(self) -> bool:
        """Whether it goes on by itself."""
        return self.state in WORKING_STATES


class UnknownPlanError(KeyError):
    """No plan has this id: there never was one, the console forgot it, or ended before it was confirmed."""


class PlanBook:
    """The plans of one console, and the thread that carries them out.

    ``results`` keeps the plans that are at their end; without it they are forgotten when the console ends.
    """

    def __init__(self, library: Library, results: ResultFile | None = None) -> None:
        self._library = library
        self._results = results
        self.problem = ""
        """Why the last result cannot be kept, or earlier ones cannot be read; ``""`` where all is well."""
        self._lock = Condition()
        self._plans: dict[str, ChangePlan] = {}
        # One thread: an installer is for one command at a time, and so is the attention of a person.
        self._worker = ThreadPoolExecutor(1, "prowess-plan")
        self.revision = 0
        """A number that grows with every change of a plan."""

    def list_plans(self) -> list[ChangePlan]:
        """Return the plans that are remembered, the newest first."""
        earlier = self._read_earlier()
        with self._lock:
            plans = {**earlier, **self._plans}
        newest = sorted(plans.values(), key=lambda plan: -plan.made)
        return newest[: self._library.limits.max_console_plans]

    def get(self, plan_id: str) -> ChangePlan:
        """Return a plan as it is now; raise ``UnknownPlanError`` where there is none, or none any more."""
        with self._lock:
            plan = self._plans.get(plan_id)
        plan = plan or self._read_earlier().get(plan_id)
        if plan is None:
            raise UnknownPlanError(plan_id)
        return plan

    def _read_earlier(self) -> dict[str, ChangePlan]:
        """Return the plans in the file of results, by id: those of this console, and of others before and beside it."""
        try:
            return {plan.id: plan for plan in self._results.read()} if self._results is not None else {}
        except SkillError as error:
            self.problem = str(error)
            return {}

    def wait(self, plan_id: str, seconds: float) -> ChangePlan:
        """Return a plan once it waits for a person or is at its end, or as it is when the time is over."""
        with self._lock:
            self._lock.wait_for(lambda: not self.get(plan_id).is_working, seconds)
            return self.get(plan_id)

    # -- what people do ----------------------------------------------------------------------------------------------

    def make_plan(self, kind: str, fields: Fields) -> ChangePlan:
        """Begin to prepare a change of one of ``PLAN_KINDS``, and return its plan.

        Beyond ``max_open_console_plans`` the oldest that waits for a person is discarded. Raises ``BusyError`` where
        none does.
        """
        plan = ChangePlan(secrets.token_urlsafe(9), kind, fields, time.time())
        with self._lock:
            self._make_room()
            self._plans[plan.id] = plan
            self._forget_oldest()
            self.revision += 1
        self._submit(self._prepare, plan.id, lambda: self._prepare_kind(kind, fields))
        return plan

    def choose(self, plan_id: str, fields: Fields) -> None:
        """Prepare the rest of a plan for the choice of a person. A plan that waits for no choice stays as it is."""
        plan = self._move(plan_id, "choosing", "preparing")
        if plan is not None and plan.change is not None and plan.change.choose is not None:
            choose = plan.change.choose
            self._submit(self._prepare, plan_id, lambda: choose(fields), plan)

    def confirm(self, plan_id: str) -> None:
        """Carry a plan out. A plan that does not wait for this, because another tab was first, stays as it is."""
        if self._move(plan_id, "ready", "running") is not None:
            self._submit(self._carry_out, plan_id)

    def discard(self, plan_id: str) -> None:
        """Give a plan up that waits for a person."""
        for state in ("ready", "choosing"):
            self._move(plan_id, state, "discarded")

    def _make_room(self) -> None:
        """Discard plans that nobody confirmed, which hold their files, until one more may wait."""
        most = self._library.limits.max_open_console_plans
        waiting = [plan for plan in self._plans.values() if plan.state not in FINAL_STATES]
        idle = [plan for plan in waiting if not plan.is_working]
        surplus = len(waiting) + 1 - most
        if surplus > len(idle):
            message = f"{len(waiting) - len(idle)} changes are being prepared or made: nothing was done"
            raise BusyError(message)
        for plan in idle[: max(0, surplus)]:
            self._store(replace(plan, state="discarded"))

    def _forget_oldest(self) -> None:
        surplus = len(self._plans) - self._library.limits.max_console_plans
        for plan_id in [plan.id for plan in self._plans.values() if not plan.is_working][: max(0, surplus)]:
            del self._plans[plan_id]

    def _submit(self, work: Callable[..., None], *arguments: object) -> None:
        self._worker.submit(bind_policy(work), *arguments)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _move(self, plan_id: str, state: PlanState, to: PlanState) -> ChangePlan | None:
        """Move a plan from one state to another, and return it; ``None`` where it was in another state."""
        with self._lock:
            plan = self.get(plan_id)
            if plan.state != state:
                return None
            return self._store(replace(plan, state=to, step=("", 0, 0)))

    def _store(self, plan: ChangePlan) -> ChangePlan:
        if plan.state in FINAL_STATES:
            plan = replace(plan, change=plan.change.without_work() if plan.change is not None else None)
        if plan.state in KEPT_STATES:
            # Before anybody hears that it is done, so that whoever ends the console then finds the result later.
            self._keep(plan)
        with self._lock:
            self._plans[plan.id] = plan
            self.revision += 1
            self._lock.notify_all()
        return plan

    def _keep(self, plan: ChangePlan) -> None:
        """Write a plan that is at its end into the file of results. That nothing can be written ends no change."""
        if self._results is None:
            return
        try:
            self._results.add(plan)
            self.problem = ""
        except SkillError as error:
            self.problem = str(error)

    def _report_step(self, plan_id: str, what: str, done: int, total: int) -> None:
        self._store(replace(self.get(plan_id), step=(what, done, total)))

    def _prepare_kind(self, kind: str, fields: Fields) -> Change[Any]:
        # Installing takes longer to load than the first page of the console, and many people only look.
        from prowess.web.forms import PREPARATIONS

        return PREPARATIONS[kind](self._library, fields)

    def _prepare(self, plan_id: str, prepare: Callable[[], Change[Any]], chosen: ChangePlan | None = None) -> None:
        """Find out what a change would do; ``chosen`` is the plan before a choice, which a bad choice goes back to."""
        try:
            with progress(lambda what, done, total: self._report_step(plan_id, what, done, total)):
                change = prepare()
        except Exception as error:  # noqa: BLE001 - the edge of the thread: a person has to hear of it
            plan = self.get(plan_id)
            known = _as_skill_error(error)
            if chosen is not None and known.code == "bad-argument":
                self._store(replace(chosen, state="choosing", error=known))
            else:
                self._store(replace(plan, state="failed", error=known))
            return
        plan = replace(self.get(plan_id), change=change, issues=_list_issues(change), error=None)
        if change.choose is not None:
            self._store(replace(plan, state="choosing"))
        elif change.steps:
            self._store(replace(plan, state="ready"))
        else:
            self._store(replace(plan, state="done", result=(change.idle_text,)))

    def _carry_out(self, plan_id: str) -> None:
        change = self.get(plan_id).change
        assert change is not None
        try:
            with (
                progress(lambda what, done, total: self._report_step(plan_id, what, done, total)),
                change.open_block(),
            ):
                changed = _find_changed_states(change)
                result = () if changed else tuple(change.describe(change.apply()))
        except Exception as error:  # noqa: BLE001 - the edge of the thread: a person has to hear of it
            plan = replace(self.get(plan_id), state="failed", error=_as_skill_error(error))
        else:
            state: PlanState = "refused" if changed else "done"
            plan = replace(self.get(plan_id), state=state, result=result, changed=tuple(changed))
        self._store(replace(plan, issues=_list_issues(change)))


def _find_changed_states(change: Change[Any]) -> list[str]:
    """Return what the plan names and is no longer as it was when the plan was made."""
    now = change.read_states()
    return [name for name in {**change.states, **now} if change.states.get(name) != now.get(name)]


def _list_issues(change: Change[Any]) -> tuple[Issue, ...]:
    return tuple(dict.fromkeys(change.issues()))


def _as_skill_error(error: Exception) -> SkillError:
    if isinstance(error, SkillError):
        return error
    import logging

    logging.getLogger("prowess").error("a plan of the console failed", exc_info=error)
    return SkillError(f"{type(error).__name__}: {error}")


_CODE = "console-results"
_SEVERITIES = frozenset(("error", "warning", "info"))


class ResultFile:
    """The plans of one project that are at their end. Consoles of other projects use the same file.

    Only its owner can read the file. It has at most ``max_console_plans`` plans and ``max_console_result_bytes`` bytes:
    beyond that the oldest are forgotten, whatever project they belong to.
    """

    def __init__(self, path: str, project: str, limits: Limits) -> None:
        """``project`` is the folder of the project that the console is about."""
        self._path = path
        self._project = project
        self._limits = limits
        self._file = OwnedJson(path, "results of the console", _CODE)
        self._lock = Lock()
        self._seen: tuple[Identity | None, tuple[ChangePlan, ...]] = (None, ())

    def read(self) -> tuple[ChangePlan, ...]:
        """Return the plans of this project, the oldest first. Raises ``NotTrustedError`` for a file that is damaged.

        The file is read again only after a change, so that a page that is loaded often costs one look at the file.
        """
        with self._lock:
            identity = identity_at(self._path)
            if identity != self._seen[0]:
                self._seen = (None, ())
                own = (record for record in self._read_records() if record.get("project") == self._project)
                self._seen = (identity, tuple(_parse_plans(own)))
            return self._seen[1]

    def add(self, plan: ChangePlan) -> None:
        """Write a plan that is at its end. Raises ``NotTrustedError`` where that cannot be done."""
        record = {"project": self._project, **_make_record(plan)}
        if len(json.dumps(record)) > self._limits.max_console_result_bytes:
            raise NotTrustedError("the result is too long to be kept after the console ends", self._path, _CODE)
        self._file.update(lambda: {"plans": self._fit([*self._read_records(), record])})

    def _read_records(self) -> list[dict[str, Any]]:
        return self._file.read(_parse_records) or []

    def _fit(self, records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the newest records that keep the limits, the oldest first."""
        kept: list[dict[str, Any]] = []
        left = self._limits.max_console_result_bytes
        for record in reversed(records[-self._limits.max_console_plans :]):
            left -= len(json.dumps(record))
            if left < 0:
                break
            kept.append(record)
        return kept[::-1]


def _make_record(plan: ChangePlan) -> dict[str, Any]:
    error = plan.error
    return {
        "id": plan.id,
        "kind": plan.kind,
        "fields": plan.fields.items(),
        "made": plan.made,
        "state": plan.state,
        "steps": [*plan.change.steps] if plan.change is not None else [],
        "result": [*plan.result],
        "issues": [asdict(issue) for issue in plan.issues],
        "error": None if error is None else {"code": error.code, "message": error.message, "path": error.path},
        "changed": [*plan.changed],
    }


def _parse_records(value: object) -> list[dict[str, Any]]:
    """Return the records of a file; raise ``TypeError`` or ``KeyError`` where it has none."""
    return [record for record in value["plans"] if isinstance(record, dict)]  # type: ignore[index]  # see above


def _parse_plans(records: Iterable[dict[str, Any]]) -> Iterator[ChangePlan]:
    """Yield the plan of each record. A malformed one, such as a kind of a later version, hides no other."""
    for record in records:
        with suppress(ValueError, TypeError, KeyError, AttributeError, OverflowError, OSError):
            yield _parse_plan(record)


def _parse_plan(record: Mapping[str, Any]) -> ChangePlan:
    if record["kind"] not in PLAN_KINDS or record["state"] not in KEPT_STATES:
        raise ValueError(record["kind"])
    fields: dict[str, list[str]] = {}
    for name, text in record["fields"]:
        fields.setdefault(_check_kind(name), []).append(_check_kind(text))
    error = record["error"]
    made = _check_kind(record["made"], (int, float))
    time.localtime(made)  # raises an error for a time that no page could show
    return ChangePlan(
        _check_kind(record["id"]),
        record["kind"],
        Fields(fields),
        made,
        record["state"],
        idle_change(steps=_check_strings(record["steps"])),
        result=_check_strings(record["result"]),
        issues=tuple(map(_parse_issue, record["issues"])),
        error=None if error is None else SkillError(*(_check_kind(error[key]) for key in ("message", "path", "code"))),
        changed=_check_strings(record["changed"]),
        is_earlier=True,
    )


def _parse_issue(record: Mapping[str, Any]) -> Issue:
    issue = Issue(**record)
    _check_strings((issue.code, issue.field, issue.message, issue.path))
    _check_kind(issue.line, int)
    if issue.severity not in _SEVERITIES:
        raise ValueError(issue.severity)
    return issue


def _check_strings(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(map(_check_kind, values))


def _check_kind(value: object, kind: type | tuple[type, ...] = str) -> Any:
    """Return a value as it is; raise ``TypeError`` where it is not of this kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(value)
    return value

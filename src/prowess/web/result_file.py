"""The results of plans in a file of the user's, so that they can be read when the console was started again."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import asdict
from threading import Lock
from typing import TYPE_CHECKING, Any

from prowess.changes.change import idle_change
from prowess.errors import Issue, NotTrustedError, SkillError
from prowess.files.identity import identity_at
from prowess.files.owned_json import OwnedJson
from prowess.web.planning.fields import Fields
from prowess.web.plans import KEPT_STATES, PLAN_KINDS, ChangePlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prowess.files.read import Identity
    from prowess.limits import Limits

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
    """Yield the plan of each record. One that makes no sense, such as a kind of a later version, hides no other."""
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
        idle_change(steps=_check_texts(record["steps"])),
        result=_check_texts(record["result"]),
        issues=tuple(map(_parse_issue, record["issues"])),
        error=None if error is None else SkillError(*(_check_kind(error[key]) for key in ("message", "path", "code"))),
        changed=_check_texts(record["changed"]),
        is_earlier=True,
    )


def _parse_issue(record: Mapping[str, Any]) -> Issue:
    issue = Issue(**record)
    _check_texts((issue.code, issue.field, issue.message, issue.path))
    _check_kind(issue.line, int)
    if issue.severity not in _SEVERITIES:
        raise ValueError(issue.severity)
    return issue


def _check_texts(texts: Sequence[object]) -> tuple[str, ...]:
    return tuple(map(_check_kind, texts))


def _check_kind(value: object, kind: type | tuple[type, ...] = str) -> Any:
    """Return a value as it is; raise ``TypeError`` where it is not of this kind."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(value)
    return value

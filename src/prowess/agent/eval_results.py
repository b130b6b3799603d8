"""The results of an evaluation in a file: a line for each run as soon as it ends, from which an evaluation goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from prowess.agent.eval_runs import FINISHED, EvalRun, EvalVerdict
from prowess.agent.json_lines import FileKind, JsonLines, read_json_lines
from prowess.errors import SourceError

if TYPE_CHECKING:
    from prowess.agent.eval_runs import PlannedRun

_KIND = FileKind("file of results", "bad-results")
_BEGIN, _EVENT = "evaluation", "eval-run"


class EvalResults:
    """The finished runs in a file, by key and number, and the file to which new ones are appended."""

    def __init__(self, file: JsonLines, stored: dict[tuple[str, int], dict[str, Any]]) -> None:
        self._file = file
        self._stored = stored

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
        return None if data is None else _to_run(plan, data)

    def add(self, run: EvalRun) -> None:
        """Append a run."""
        self._file.write_line(_to_dict(run))


def _read_results(path: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the finished runs of a file; raise ``SourceError`` where no evaluation has begun it."""
    rows = list(read_json_lines(path, _KIND))
    if not any(row.get("event") == _BEGIN for row in rows):
        raise SourceError("this is no file of results", path, _KIND.code)
    runs = [row for row in rows if row.get("event") == _EVENT and _is_run(row)]
    return {(row["key"], row["number"]): row for row in runs if row["status"] in FINISHED}


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
        "error": {"code": run.error.code, "message": run.error.message} if run.error else None,
    }


def _to_run(plan: PlannedRun, data: dict[str, Any]) -> EvalRun:
    verdicts = tuple(
        EvalVerdict(str(check.get("what", "")), check.get("passed") is True)
        for check in data["checks"]
        if isinstance(check, dict)
    )
    loaded = tuple(str(name) for name in data["loaded"])
    return EvalRun(plan, data["status"], loaded, verdicts, data["sent"], data["received"])

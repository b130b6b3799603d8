"""The results of an evaluation: a file with a line for each run as soon as it ends, and beside it a folder for each.

An evaluation goes on from the file. The folders are for people: they have the transcript of a run, its last answer and
the files that it left in its working folder.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from prowess.agent.api_keys import hide_keys
from prowess.agent.eval_runs import FINISHED, EvalRun, EvalVerdict
from prowess.agent.json_lines import FileKind, JsonLines, read_json_lines
from prowess.agent.transcript import Transcript
from prowess.errors import SkillError, SourceError
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.paths import is_link, is_owned_alone
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree
from prowess.files.write import make_folders, write_new_file

if TYPE_CHECKING:
    from prowess.agent.eval_runs import PlannedRun
    from prowess.limits import Limits

_KIND = FileKind("file of results", "bad-results")
_BEGIN, _EVENT = "evaluation", "eval-run"


class RunFolder(NamedTuple):
    """The folder of a run that begins, and the transcript in it."""

    path: str
    transcript: Transcript

    def keep(self, answer: str, folder: str, limits: Limits) -> None:
        """Write the last answer, and copy the files of the working folder, as many bytes as the limits allow."""
        write_new_file(os.path.join(self.path, "answer.txt"), hide_keys(answer).encode(), mode=0o600)
        left, left_out = limits.max_eval_kept_bytes, list[str]()
        for path in list_tree(folder, (), limits).files:
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

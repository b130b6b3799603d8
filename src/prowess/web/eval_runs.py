"""The runs of evaluations with a model, in a file of results and the folders beside it.

``prowess eval --with-model --results FILE`` writes them. They are read as lines of JSON: the console does without the
frameworks that the agent needs, and a line that it does not know is left out.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.errors import ResourceError, ResourceNotFoundError
from prowess.files.read import OpenFile
from prowess.files.tree import list_tree

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits

_WAYS = {
    "full": "all skills listed",
    "selected": "the skills listed that fit",
    "with": "the task, with the skill",
    "without": "the task, without the skill",
}


class StoredRun(NamedTuple):
    """One run: the name of its folder, what was asked in which way, and what came of it."""

    id: str
    way: str
    number: int
    skill: str
    query: str
    status: str
    loaded: tuple[str, ...]
    checks: tuple[tuple[str, bool], ...]
    tokens: int
    seconds: float

    @property
    def outcome(self) -> str:
        """What came of it, in a few words."""
        if self.status not in {"done", "limit"}:  # a run to a limit has an outcome as well
            return self.status
        if self.checks:
            return f"{sum(held for _, held in self.checks)} of {len(self.checks)} checks held"
        return f"loaded {', '.join(self.loaded)}" if self.loaded else "loaded nothing"


class Step(NamedTuple):
    """A step of a transcript: what happened, and the text that belongs to it."""

    title: str
    text: str
    is_error: bool = False


class KeptFile(NamedTuple):
    """A file that a run left; ``text`` is ``None`` where it is not text, or too long for the page."""

    path: str
    text: str | None


class KeptRun(NamedTuple):
    """Everything that was kept of a run; ``left_out`` names the files that were too large."""

    run: StoredRun
    answer: str
    steps: tuple[Step, ...]
    files: tuple[KeptFile, ...]
    left_out: str


class EvalRuns:
    """The runs in a file of results. Without a path there are none."""

    def __init__(self, path: str, limits: Limits) -> None:
        self._path = os.path.abspath(path) if path else ""
        self._limits = limits

    def list(self, skill: str = "") -> tuple[StoredRun, ...]:
        """Return the runs of a skill, or all: what the last line about each says. Raises ``ResourceError``."""
        if not self._path:
            return ()
        folder, name = os.path.split(self._path)
        text = _read_text(folder, (name,), self._limits.max_eval_kept_bytes)
        runs = {run.id: run for row in _read_rows(text) if (run := _to_run(row)) is not None}
        return tuple(run for run in runs.values() if run.skill == skill or not skill)

    def read(self, run_id: str) -> KeptRun:
        """Return what was kept in the folder of this name.

        Raises ``ResourceNotFoundError`` for a run that the file of results does not have.
        """
        run = next((run for run in self.list() if run.id == run_id), None)
        if run is None:
            raise ResourceNotFoundError("the file of results has no such run", run_id, "not-found")
        limits, folder = self._limits, os.path.join(f"{self._path}.runs", run.id)
        transcript = _read_text_or_none(folder, "transcript.jsonl", limits) or ""
        return KeptRun(
            run,
            (_read_text_or_none(folder, "answer.txt", limits) or "")[: limits.max_page_chars],
            tuple(_list_steps(transcript, limits.max_page_chars)),
            tuple(_list_files(folder, limits)),
            (_read_text_or_none(folder, "left-out.txt", limits) or "")[: limits.max_page_chars],
        )


def _list_steps(transcript: str, most_chars: int) -> Iterator[Step]:
    """Yield what happened, until the texts are too long for a page."""
    chars = 0
    for row in _read_rows(transcript):
        step = _to_step(row)
        if step is None:
            continue
        if chars > most_chars:
            yield Step("more", "The transcript is longer than what a page shows.")
            return
        chars += len(step.text)
        yield Step(step.title, step.text[:most_chars], step.is_error)


def _to_step(row: dict[str, Any]) -> Step | None:
    kind = row.get("event")
    if kind == "call":
        return Step(f"call {row.get('tool')}", json.dumps(row.get("arguments"), ensure_ascii=False))
    if kind == "result":
        return Step(f"result of {row.get('tool')}", str(row.get("content", "")), row.get("is_error") is True)
    if kind == "decision":
        verdict = "allowed" if row.get("is_allowed") is True else "refused"
        return Step(f"{verdict} {row.get('tool')}", str(row.get("subject", "")), verdict == "refused")
    if kind == "skill":
        return Step(f"skill {row.get('what')}", str(row.get("skill", "")))
    if kind == "end":
        return Step(f"end: {row.get('status')}", str(row.get("text") or ""))
    return None


def _list_files(folder: str, limits: Limits) -> Iterator[KeptFile]:
    chars = 0
    try:
        paths = list_tree(os.path.join(folder, "files"), (), limits).files
    except (OSError, ResourceError):  # a run that left none
        return
    for path in paths:
        text = _read_text_or_none(os.path.join(folder, "files"), path, limits)
        if text is not None and chars + len(text) > limits.max_page_chars:
            text = None
        chars += len(text or "")
        yield KeptFile(path, text)


def _to_run(row: dict[str, Any]) -> StoredRun | None:
    texts = [row.get(key) for key in ("folder", "arm", "skill", "query", "status")]
    if row.get("event") != "eval-run" or not all(isinstance(text, str) for text in texts) or not row["folder"]:
        return None
    checks = [check for check in row.get("checks", ()) if isinstance(check, dict)]
    numbers = [row.get(key, 0) for key in ("sent", "received", "number", "seconds")]
    if not all(isinstance(number, int | float) for number in numbers):
        return None
    sent, received, number, seconds = numbers
    return StoredRun(
        os.path.basename(row["folder"]),
        _WAYS.get(row["arm"], row["arm"]),
        int(number),
        row["skill"],
        row["query"],
        row["status"],
        tuple(map(str, row.get("loaded", ()))),
        tuple((str(check.get("what", "")), check.get("passed") is True) for check in checks),
        int(sent + received),
        float(seconds),
    )


def _read_rows(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _read_text(base: str, parts: tuple[str, ...], most_bytes: int) -> str:
    with OpenFile(base, parts) as file:
        return file.read_all(most_bytes).decode("utf-8", "replace")


def _read_text_or_none(base: str, path: str, limits: Limits) -> str | None:
    try:
        text = _read_text(base, tuple(path.split("/")), limits.max_eval_kept_bytes)
    except ResourceError:
        return None
    return None if "\0" in text or "�" in text else text

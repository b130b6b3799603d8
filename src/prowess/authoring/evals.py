"""Trigger tests: whether queries find the skill that they should, with a selector and without a model.

Two shapes of file are read: a list of ``{"query", "should_trigger"}``, and ``{"skill_name", "evals": [{"prompt"}]}``,
whose prompts should all find the skill. The skill is the one that an entry names (``"skill"``), otherwise the one that
the file names (``{"skill", "queries": [...]}``), otherwise the one in whose folder the file lies.
"""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.discovery.scan import scan
from prowess.errors import ResourceError, SourceError
from prowess.files.directory import Folder, stat_folder
from prowess.files.read import OpenFile
from prowess.limits import DEFAULT_LIMITS
from prowess.names import SKILL_FILE
from prowess.progress_steps import report_steps
from prowess.select.selectors import LexicalSelector
from prowess.select.steps import run_awaitable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill

Outcome = Literal["hit", "miss", "quiet", "false-fire"]

_LIST_KEYS = ("evals", "triggers", "queries", "cases")
_EVALS_FOLDER = "evals"
_WHICH_SKILL_MESSAGE = (
    'which skill is meant? Write "skill": "NAME" in every entry, or {"skill": "NAME", "queries": [...]} around them; '
    "or put the file into evals/ of the skill"
)


class EvalCase(NamedTuple):
    """A query, the skill that it is about, whether it should find that skill, and the file that says so."""

    query: str
    skill: str
    should_trigger: bool = True
    source: str = ""


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A case, what the selector picked (best first), and the outcome."""

    case: EvalCase
    picked: tuple[str, ...]
    outcome: Outcome

    @property
    def right(self) -> bool:
        """Whether the outcome is the expected one."""
        return self.outcome in {"hit", "quiet"}


@dataclass(frozen=True, slots=True)
class EvalReport:
    """The results of all cases; a skill counts as found among the first ``top`` that the selector picks."""

    results: tuple[EvalResult, ...]
    top: int

    def count(self, outcome: Outcome) -> int:
        """Return how many cases have that outcome."""
        return sum(result.outcome == outcome for result in self.results)

    @property
    def hit_rate(self) -> float | None:
        """The share of queries that should find their skill and do; ``None`` without any."""
        return _share(self.count("hit"), self.count("miss"))

    @property
    def false_fire_rate(self) -> float | None:
        """The share of queries that should not find the skill and do; ``None`` without any."""
        return _share(self.count("false-fire"), self.count("quiet"))

    @property
    def score(self) -> float:
        """The share of all cases with the expected outcome; 1 without any."""
        return sum(result.right for result in self.results) / len(self.results) if self.results else 1.0


def _share(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None


def evaluate(
    cases: Sequence[EvalCase], catalog: Catalog, *, selector: Selector | None = None, top: int = 1
) -> EvalReport:
    """Judge each case: a skill is found when it is among the first ``top`` that the selector (lexical) picks.

    Raises ``UnknownSkillError`` for a case about a skill that the catalogue does not have.
    """
    chosen = selector or LexicalSelector()
    # Models never see the others, so no selector is asked about them.
    candidates = tuple(skill for skill in catalog if skill.model_invocable)
    steps = report_steps(cases, lambda case: case.query)
    return EvalReport(tuple(_judge_case(case, catalog, chosen, candidates, top=top) for case in steps), top)


def _judge_case(
    case: EvalCase, catalog: Catalog, selector: Selector, candidates: tuple[Skill, ...], *, top: int
) -> EvalResult:
    name = catalog[case.skill].name
    answer = selector.select(case.query, candidates)
    picked = tuple(run_awaitable(answer) if inspect.isawaitable(answer) else answer)[:top]
    outcomes: dict[tuple[bool, bool], Outcome] = {
        (True, True): "hit",
        (True, False): "miss",
        (False, True): "false-fire",
        (False, False): "quiet",
    }
    return EvalResult(case, picked, outcomes[case.should_trigger, name in picked])


def load_evals(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[EvalCase, ...]:
    """Return the cases in a file, in a skill's ``evals/``, or in the ``evals/`` of every skill below a folder.

    Raises ``SourceError`` when there are none, when the named file holds something else, and when a file lies in no
    skill's folder and does not say which skill is meant.
    """
    target = os.path.abspath(os.fspath(path))
    if stat_folder(target) is None:
        cases = _read_cases(target, limits)
        if cases is None:
            raise SourceError(
                "no queries: expected a list of {query, should_trigger}, or {evals: [{prompt}]}", target, "bad-evals"
            )
        return cases
    # Other JSON files may lie beside the queries, such as a model's graded answers: in a folder they are passed over.
    cases = tuple(case for file in _find_eval_files(target, limits) for case in _read_cases(file, limits) or ())
    if not cases:
        raise SourceError("there are no evals: a skill has them in evals/, as JSON", target, "no-evals")
    return cases


def _find_eval_files(target: str, limits: Limits) -> Iterator[str]:
    folders = [target]
    if stat_folder(os.path.join(target, _EVALS_FOLDER)) is None:
        folders = [skill.folder for skill in scan(target, limits=limits)]
    for folder in folders:
        evals = os.path.join(folder, _EVALS_FOLDER)
        if stat_folder(evals) is not None:
            with Folder(evals) as opened:
                names = opened.list_entries(limits.max_entries_per_skill).files
            yield from (os.path.join(evals, name) for name in names if name.endswith(".json"))


def _read_cases(file: str, limits: Limits) -> tuple[EvalCase, ...] | None:
    """Return the cases of a file, or ``None`` when it holds something else."""
    data = _read_json(file, limits)
    named = data.get("skill_name", data.get("skill")) if isinstance(data, dict) else None
    entries = next((data[key] for key in _LIST_KEYS if key in data), None) if isinstance(data, dict) else data
    if not isinstance(entries, list) or not entries:
        return None
    skill = named if isinstance(named, str) else _find_enclosing_skill(file)
    cases = tuple(case for entry in entries if (case := _parse_case(entry, skill, file)) is not None)
    if len(cases) < len(entries):
        return None
    if not all(case.skill for case in cases):
        raise SourceError(_WHICH_SKILL_MESSAGE, file, "bad-evals")
    return cases


def _parse_case(entry: object, default_skill: str, file: str) -> EvalCase | None:
    if not isinstance(entry, dict):
        return None
    query = entry.get("query", entry.get("prompt"))
    should_trigger = entry.get("should_trigger", True)
    skill = entry.get("skill", default_skill)
    if not isinstance(query, str) or not isinstance(should_trigger, bool) or not isinstance(skill, str):
        return None
    return EvalCase(query, skill, should_trigger, file)


def _find_enclosing_skill(file: str) -> str:
    """Return the folder name of the skill that holds the file, directly or in ``evals/``; ``""`` when none does."""
    folder = os.path.dirname(file)
    if not os.path.lexists(os.path.join(folder, SKILL_FILE)) and os.path.basename(folder) == _EVALS_FOLDER:
        folder = os.path.dirname(folder)
    return os.path.basename(folder) if os.path.lexists(os.path.join(folder, SKILL_FILE)) else ""


def _read_json(file: str, limits: Limits) -> object:
    folder, name = os.path.split(file)
    try:
        with OpenFile(folder, (name,)) as opened:
            return json.loads(opened.read_all(limits.max_file_bytes))
    except ResourceError as error:
        raise SourceError(f"cannot read the evals: {error.message}", file, error.code) from None
    except (ValueError, RecursionError) as error:
        raise SourceError(f"not JSON: {error}", file, "bad-evals") from None

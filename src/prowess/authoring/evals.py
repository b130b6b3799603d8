"""Whether queries find the skill that they should: trigger tests, against a selector, without a model.

Two shapes of file are read: a list of ``{"query", "should_trigger"}``, and ``{"skill_name", "evals": [{"prompt"}]}``,
whose prompts should all find the skill. The skill is the one that an entry names (``"skill"``), else the one that the
file names (``{"skill", "queries": [...]}``), else the one in whose folder it lies.
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
from prowess.select.ask_selector import run_awaitable
from prowess.select.selectors import LexicalSelector

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
    """A query, the skill that it is about, and whether it should find it."""

    query: str
    skill: str
    should_trigger: bool = True
    source: str = ""


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A case, what the selector picked (best first), and how that is to be judged."""

    case: EvalCase
    picked: tuple[str, ...]
    outcome: Outcome

    @property
    def right(self) -> bool:
        """Whether it came out as it should."""
        return self.outcome in {"hit", "quiet"}


@dataclass(frozen=True, slots=True)
class EvalReport:
    """How all cases came out."""

    results: tuple[EvalResult, ...]
    top: int

    def count(self, outcome: Outcome) -> int:
        """How many came out that way."""
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
        """The share of all cases that came out right."""
        return sum(result.right for result in self.results) / len(self.results) if self.results else 1.0


def _share(part: int, rest: int) -> float | None:
    return part / (part + rest) if part + rest else None


def evaluate(
    cases: Sequence[EvalCase], catalog: Catalog, *, selector: Selector | None = None, top: int = 1
) -> EvalReport:
    """Judge each case: found means among the first ``top`` that the selector (lexical) picks of the catalogue.

    Raises ``UnknownSkillError`` for a case about a skill that the catalogue does not have.
    """
    chosen = selector or LexicalSelector()
    candidates = tuple(skill for skill in catalog if skill.model_invocable)
    asked = report_steps(cases, lambda case: case.query)
    return EvalReport(tuple(_judge_case(case, catalog, chosen, candidates, top=top) for case in asked), top)


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
    """The cases in a file, in a skill's ``evals/``, or in those of every skill below a folder.

    Raises ``SourceError`` where there are none, where the file that was named holds something else, and where it lies
    in no skill's folder and does not say which skill is meant.
    """
    where = os.path.abspath(os.fspath(path))
    if stat_folder(where) is None:
        cases = _read_cases(where, limits)
        if cases is None:
            raise SourceError(
                "no queries: expected a list of {query, should_trigger}, or {evals: [{prompt}]}", where, "bad-evals"
            )
        return cases
    found = tuple(case for file in _find_eval_files(where, limits) for case in _read_cases(file, limits) or ())
    if not found:
        raise SourceError("there are no evals: a skill has them in evals/, as JSON", where, "no-evals")
    return found


def _find_eval_files(where: str, limits: Limits) -> Iterator[str]:
    folders = [where]
    if stat_folder(os.path.join(where, _EVALS_FOLDER)) is None:
        folders = [skill.folder for skill in scan(where, limits=limits)]
    for folder in folders:
        inner = os.path.join(folder, _EVALS_FOLDER)
        if stat_folder(inner) is not None:
            with Folder(inner) as held:
                names = held.list_entries(limits.max_entries_per_skill).files
            yield from (os.path.join(inner, name) for name in names if name.endswith(".json"))


def _read_cases(file: str, limits: Limits) -> tuple[EvalCase, ...] | None:
    """The cases of a file; ``None`` when it holds something else."""
    data = _read_json(file, limits)
    named = data.get("skill_name", data.get("skill")) if isinstance(data, dict) else None
    rows = next((data[key] for key in _LIST_KEYS if key in data), None) if isinstance(data, dict) else data
    if not isinstance(rows, list) or not rows:
        return None
    skill = named if isinstance(named, str) else _find_enclosing_skill(file)
    cases = [_parse_case(row, skill, file) for row in rows]
    found = tuple(case for case in cases if case is not None)
    if len(found) < len(cases):
        return None
    if not all(case.skill for case in found):
        raise SourceError(_WHICH_SKILL_MESSAGE, file, "bad-evals")
    return found


def _parse_case(row: object, skill: str, file: str) -> EvalCase | None:
    if not isinstance(row, dict):
        return None
    query = row.get("query", row.get("prompt"))
    wanted = row.get("should_trigger", True)
    own = row.get("skill", skill)
    if not isinstance(query, str) or not isinstance(wanted, bool) or not isinstance(own, str):
        return None
    return EvalCase(query, own, wanted, file)


def _find_enclosing_skill(file: str) -> str:
    """The folder of the skill that holds the file, on top or in ``evals/``; nothing where no skill does."""
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

"""Trigger tests: whether queries find the skill that they should, with a selector and without a model.

Two shapes of file are read: a list of ``{"query", "should_trigger"}``, and ``{"skill_name", "evals": [{"prompt"}]}``,
whose prompts should all find the skill. The skill is the one that an entry names (``"skill"``), otherwise the one that
the file names (``{"skill", "queries": [...]}``), otherwise the one in whose folder the file is.

An entry may have a task part besides, which only ``prowess eval --with-model`` carries out: see ``eval_tasks``.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.authoring.eval_files import list_eval_files, read_eval_set
from prowess.discovery.scan import scan
from prowess.errors import SourceError
from prowess.files.directory import stat_folder
from prowess.limits import DEFAULT_LIMITS
from prowess.names import EVALS_FOLDER
from prowess.progress_steps import report_steps
from prowess.search.ranking import find_missing_words
from prowess.select.auto import AutoSelector
from prowess.select.selectors import Candidates, LexicalSelector, SkillQuery
from prowess.skills.search_library import make_head_text
from prowess.text.quantities import format_count
from prowess.thread_work import run_awaitable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.authoring.eval_files import EvalCase
    from prowess.limits import Limits
    from prowess.literals import Semantic
    from prowess.select.selectors import Selector
    from prowess.skills.catalog import Catalog

Outcome = Literal["hit", "miss", "quiet", "false-fire"]

_OUTCOMES: dict[tuple[bool, bool], Outcome] = {
    (True, True): "hit",
    (True, False): "miss",
    (False, True): "false-fire",
    (False, False): "quiet",
}
"""The outcome of a case, by whether the query should find the skill and whether it does."""
_MAX_RIVALS = 5


class EvalRival(NamedTuple):
    """A skill that a selector put before the one that a query should find, and why it fits the query.

    ``why`` is that of a search: ``words: form, pdf`` with the words of the query that the skill has, ``meaning``, or
    both. It is ``""`` for a skill that a search does not find by that query.
    """

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class EvalResult:
    """A case, what the selector picked (best first), and the outcome."""

    case: EvalCase
    picked: tuple[str, ...]
    outcome: Outcome
    place: int | None = None
    """The place of the skill among all that the selector picked, from 1; ``None`` when it was not picked."""
    why: str = ""
    """Of a wrong outcome: why the skill fits the query, as ``EvalRival.why`` says it."""
    ahead: tuple[EvalRival, ...] = ()
    """Of a miss: the skills that came before it, the first few."""
    missing_words: tuple[str, ...] = ()
    """Of a miss: the words of the query that the name, the description, the tags and triggers of the skill lack."""

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
    """Judge each case: a skill is found when it is among the first ``top`` that the selector picks.

    Without a selector, skills are ranked as a session ranks them by default: by words, and by meaning where
    ``Catalog.prepare_search`` has prepared it. An ``AutoSelector`` is judged by its ranking, whatever fits its budget.
    Raises ``UnknownSkillError`` for a case about a skill that the catalogue does not have.
    """
    judge = _Judge(catalog, selector, top)
    steps = report_steps(cases, lambda case: case.query)
    return EvalReport(tuple(judge.judge_case(case) for case in steps), top)


class _Judge:
    """Judges cases over one catalogue with one selector."""

    def __init__(self, catalog: Catalog, selector: Selector | None, top: int) -> None:
        self._catalog = catalog
        self._selector = selector.base if isinstance(selector, AutoSelector) else selector
        # A reason names only what can have been the reason.
        self._semantic: Semantic = False if isinstance(selector, LexicalSelector) else "auto"
        self._top = top
        # Models never see the others, so no selector is asked about them.
        self._candidates = Candidates((skill for skill in catalog if skill.model_invocable), catalog)

    def judge_case(self, case: EvalCase) -> EvalResult:
        """Return the result of one case; the reasons are found out for a wrong outcome only."""
        skill = self._catalog[case.skill]
        ranking = self._rank_names(case.query)
        place = ranking.index(skill.name) + 1 if skill.name in ranking else None
        is_found = place is not None and place <= self._top
        result = EvalResult(case, ranking[: self._top], _OUTCOMES[case.should_trigger, is_found], place)
        if result.right:
            return result
        before = ranking[: place - 1 if place else None][:_MAX_RIVALS] if result.outcome == "miss" else ()
        reasons = self._find_reasons(case.query, (*before, skill.name))
        return replace(
            result,
            why=reasons.get(skill.name, ""),
            ahead=tuple(EvalRival(name, reasons.get(name, "")) for name in before),
            missing_words=find_missing_words(make_head_text(skill), case.query) if result.outcome == "miss" else (),
        )

    def _rank_names(self, query: str) -> tuple[str, ...]:
        """Return the names that fit a query, the best first."""
        if self._selector is None:
            return tuple(hit.name for hit in self._candidates.rank(query, len(self._candidates)))
        answer = self._selector.select(SkillQuery(query), self._candidates)
        return tuple(dict.fromkeys(run_awaitable(answer) if inspect.isawaitable(answer) else answer))

    def _find_reasons(self, query: str, names: tuple[str, ...]) -> dict[str, str]:
        """Return why some skills fit a query, by name; a skill that a search does not find has none."""
        hits = self._catalog.rank_skills(query, frozenset(names), len(names), semantic=self._semantic)
        return {hit.name: hit.why for hit in hits}


def load_evals(path: str | os.PathLike[str], *, limits: Limits = DEFAULT_LIMITS) -> tuple[EvalCase, ...]:
    """Return the cases in a file, in a skill's ``evals/``, or in the ``evals/`` of every skill below a folder.

    Entries that ``create_skill`` wrote and nobody has replaced are left out. Raises ``SourceError`` when there are no
    others, when an entry is malformed, when the named file holds something else, and when a file outside of a skill's
    folder does not say which skill is meant.
    """
    target = os.path.abspath(os.fspath(path))
    is_file = stat_folder(target) is None
    # Other JSON files may be beside the queries, such as a model's graded answers: in a folder they are passed over.
    found = [read_eval_set(file, limits) for file in ([target] if is_file else _find_eval_files(target, limits))]
    if is_file and found == [None]:
        raise SourceError(
            "no queries: expected a list of {query, should_trigger}, or {evals: [{prompt}]}", target, "bad-evals"
        )
    sets = [one for one in found if one is not None]
    errors = [error for one in sets for error in one.errors]
    if errors:
        more = f"; {format_count(len(errors) - 1, 'more error')} in evals" if errors[1:] else ""
        first = errors[0]
        raise SourceError(f"line {first.line}: {first.message}{more}", first.path, "bad-evals")
    cases = tuple(case for one in sets for case in one.cases)
    if not cases and any(one.template_lines for one in sets):
        raise SourceError("the evals are still the template's: write what users say", target, "no-evals")
    if not cases:
        raise SourceError("there are no evals: put them into evals/ of the skill, as JSON", target, "no-evals")
    return cases


def _find_eval_files(target: str, limits: Limits) -> Iterator[str]:
    folders = [target]
    if stat_folder(os.path.join(target, EVALS_FOLDER)) is None:
        folders = [skill.folder for skill in scan(target, limits=limits)]
    for folder in folders:
        yield from list_eval_files(folder, limits)

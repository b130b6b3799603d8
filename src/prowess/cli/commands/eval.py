"""``prowess eval``: tests whether the queries of a skill's evals find it, by a selector or with a model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.authoring.evals import EvalReport, EvalResult, evaluate, load_evals
from prowess.cli.agent_evaluation import EvaluationFlags, evaluate_with_model, evaluation_options
from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, complete_skill_or_path, json_option, make_catalog_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Span, Table, Title, line
from prowess.cli.search_modes import MODE_WORDS, prepare_catalog
from prowess.cli.skill_lookup import find_own_paths, find_path, load_catalog, load_cli_settings
from prowess.discovery.scan import scan
from prowess.errors import SourceError
from prowess.files.paths import shorten_path
from prowess.names import SKILL_FILE
from prowess.select.auto import DEFAULT_BUDGET, SELECTOR_NAMES, measure_lines
from prowess.select.selectors import LexicalSelector, ModelDrivenSelector
from prowess.skills.catalog import Catalog
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.authoring.eval_files import EvalCase
    from prowess.literals import SearchMode
    from prowess.select.selectors import Selector

_SELECTOR_NOTES = {
    "auto": "measured with the selector that sessions have by default, which ranks by {}; no model is asked",
    "lexical": "measured with the lexical selector: words in common with the query, ranked; no model is asked",
    "all": "measured with the selector that picks every skill, and leaves the choice to a model; no model is asked",
}
"""What each selector measures, in a sentence; the gap is what a search goes by."""
_PLACES = {1: "first", 2: "second", 3: "third"}


@new_command(
    "eval",
    ("prowess eval", "the skill in this folder, or the project's skills"),
    ("prowess eval skills/csv-report", "one skill among those that there are"),
    ("prowess eval skills/ --min 0.9", "a whole collection, for CI"),
    ("prowess eval skills/ --top 3 --json", "found means among the first three"),
    ("prowess eval skills/csv-report --with-model --model openai:gpt-5.2", "with a model, three runs each"),
    (
        "prowess eval skills/ --with-model --results evals.jsonl --max-tokens 500000",
        "so much now, the rest another time",
    ),
)
@click.argument("path", required=False, metavar="[PATH|NAME]", shell_complete=complete_skill_or_path)
@click.option(
    "--min", "least", type=click.FloatRange(0, 1), help="The share of queries that must come out right; 1 by default."
)
@click.option("--top", type=click.IntRange(1), help="A skill counts as found if it is among the first so many.")
@click.option("--selector", type=click.Choice(SELECTOR_NAMES), help="What picks skills for a query.")
@click.option("--with-model", "--agent", "with_model", is_flag=True, help="Give the queries and tasks to a model.")
@evaluation_options
@make_catalog_options("--for-agent")
@json_option
def command(
    path: str | None,
    *,
    least: float | None,
    top: int | None,
    selector: str | None,
    with_model: bool,
    flags: EvaluationFlags,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Test whether the queries of evals find their skill, and no other, among all skills that are here.

    PATH is the folder of a skill (its evals/*.json are read), its SKILL.md, a folder of skills, or a JSON file: a list
    of {"query", "should_trigger"}, or {"skill_name", "evals": [{"prompt"}]}. A file outside of a skill names the skill
    with "skill" in each entry, or as {"skill": NAME, "queries": [...]}. If there is no such path, NAME is the name of a
    skill. Without PATH the skill in this folder is tested, or the skills of the project.

    For each query that misses its skill you see which skills came before it and by which words, and which words of the
    query its description lacks. Skills are ranked as 'prowess search' ranks them. If the extra 'semantic' is installed,
    their meaning is prepared first, so that the result does not depend on earlier searches.

    With --with-model a model gets each query several times, with all skills listed and, if they are fewer, with those
    that the selector lists, and you see how often it loads the skill, and others. An entry that has "checks" is a task
    as well: the model carries it out in a new folder, with the skill and without it, and you see how often the checks
    hold. See docs/how-to/authoring.md. Each finished run is kept in the file of --results; the same command goes on
    from there.

    Exit status 1: a query came out wrong; with --min, a smaller share of them came out right (--min 0 only reports).
    With --with-model, 3: runs are left, because the tokens are spent or the model fails.
    """
    _check_flags(flags, top, selector, with_model=with_model)
    settings = load_cli_settings(min=least, top=top, selector=selector, **where, **flags.settings)
    paths = (_to_skill_folder(find_path(settings, path)),) if path else find_own_paths(settings)
    cases = _load_cases(paths)
    catalog = load_catalog(settings)
    # The skills of the first path win over later ones, and all of these over the standard places.
    for place in reversed(paths):
        catalog = _load_competitors(place, named=bool(settings.names("folders"))) | catalog
    if with_model:
        return evaluate_with_model(cases, catalog, settings, flags, as_data=as_data)
    named = settings.text("selector")
    # Prepared at once: a test must not come out otherwise because somebody has searched before.
    mode = prepare_catalog(catalog) if named == "auto" else None
    selectors: dict[str, Selector] = {"lexical": LexicalSelector(max(len(catalog), 1)), "all": ModelDrivenSelector()}
    with printer.show_progress("asking"):
        report = evaluate(cases, catalog, selector=selectors.get(named), top=settings.number("top") or 1)
    fits = measure_lines(catalog.skills) <= (settings.number("budget") or DEFAULT_BUDGET)
    outcome = _EvalOutcome(report, len(catalog), named, mode, float(settings["min"]), fits)  # type: ignore[arg-type]  # a share is a number
    printer.print_answer(lambda: _to_dict(outcome), lambda: _to_blocks(outcome), as_data=as_data)
    return 0 if outcome.passed else 1


def _check_flags(flags: EvaluationFlags, top: int | None, selector: str | None, *, with_model: bool) -> None:
    """Raise ``click.UsageError`` for options that have no meaning with a model, or without one."""
    if with_model and (top is not None or selector is not None):
        raise click.UsageError(
            "--with-model runs each query with all skills and with selected ones: leave --top, --selector out"
        )
    if not with_model and flags.first_given:
        raise click.UsageError(f"{flags.first_given} is for an evaluation with a model: add --with-model")


def _to_skill_folder(path: str) -> str:
    """Return the folder of a SKILL.md, and any other path unchanged."""
    return os.path.dirname(path) or os.curdir if os.path.basename(path) == SKILL_FILE else path


def _load_cases(paths: tuple[str, ...]) -> tuple[EvalCase, ...]:
    """Return the cases below all paths. Raise ``SourceError`` if there are none, or if the only path has none."""
    cases: list[EvalCase] = []
    for path in paths:
        try:
            cases += load_evals(path)
        except SourceError as error:
            # Some of several skills may have no evals, but a single one that was named must have them.
            if error.code != "no-evals" or len(paths) == 1:
                raise
    if not cases:
        raise SourceError(
            "none of the skills here has evals: put them into evals/ of a skill, as JSON", code="no-evals"
        )
    return tuple(cases)


class _EvalOutcome(NamedTuple):
    """How the queries came out, among how many skills, with which selector, and which share has to be right."""

    report: EvalReport
    skills: int
    selector: str
    mode: SearchMode | None
    """What the default selector went by; ``None`` for another selector."""
    least: float
    fits: bool
    """Whether all skills fit into one listing."""

    @property
    def passed(self) -> bool:
        return self.report.score >= self.least


def _load_competitors(path: str, *, named: bool) -> prowess.Catalog:
    """Return the skills near the evals: those of a collection, or the skill itself and its neighbours."""
    # A description is tested against those that a model would see beside it.
    where = os.path.abspath(path)
    folder = where if os.path.isdir(where) else os.path.dirname(where)
    folder = os.path.dirname(folder) if os.path.basename(folder) == "evals" else folder
    if os.path.lexists(os.path.join(folder, SKILL_FILE)):
        return scan(folder if named else os.path.dirname(folder))
    return scan(folder) if folder == where else Catalog()


def _to_dict(outcome: _EvalOutcome) -> dict[str, object]:
    report = outcome.report
    return {
        "cases": len(report.results),
        "skills": outcome.skills,
        "selector": outcome.selector,
        "mode": outcome.mode,
        "top": report.top,
        "min": outcome.least,
        "passed": outcome.passed,
        "score": round(report.score, 4),
        "hit_rate": _round_share(report.hit_rate),
        "false_fire_rate": _round_share(report.false_fire_rate),
        "results": [
            {
                "query": r.case.query,
                "skill": r.case.skill,
                "should_trigger": r.case.should_trigger,
                "outcome": r.outcome,
                "picked": list(r.picked),
                "place": r.place,
                "why": r.why,
                "ahead": [{"name": rival.name, "why": rival.why} for rival in r.ahead],
                "missing_words": list(r.missing_words),
                "source": r.case.source,
            }
            for r in report.results
        ],
    }


def _round_share(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


def _to_blocks(outcome: _EvalOutcome) -> Iterator[Block]:
    report = outcome.report
    wrong = [result for result in report.results if not result.right]
    if wrong:
        yield Title("Came out wrong")
        for result in wrong:
            yield from _wrong_to_blocks(result)
        winners = _count_winners(wrong)
        if winners:
            yield Title("Who won instead")
            yield Table([((name, "name"), str(count)) for name, count in winners], indent=2)
        yield Line()
    yield line(*_describe_verdict(outcome), f" (among {format_count(outcome.skills, 'skill')}, first {report.top})")
    for what, share in (("hit rate", report.hit_rate), ("false fires", report.false_fire_rate)):
        yield line(f"{what}: {'no such queries' if share is None else f'{share:.0%}'}", indent=2)
    went_by = MODE_WORDS[outcome.mode] if outcome.mode else ""
    yield line(_SELECTOR_NOTES[outcome.selector].format(went_by), indent=2)
    if outcome.fits and outcome.skills > 1:
        seen = f"all {outcome.skills} fit into one listing, so a model sees every one: --with-model asks one"
        yield line(seen, indent=2)
    sources = sorted({result.case.source for result in report.results})
    yield line((f"from {', '.join(map(shorten_path, sources))}", "dim"), indent=2)


def _describe_verdict(outcome: _EvalOutcome) -> Iterator[Span]:
    """Return the first line of the report: whether the test passed, and what went wrong."""
    report = outcome.report
    yield ("Passed: ", "good") if outcome.passed else ("Failed: ", "bad")
    yield f"{sum(r.right for r in report.results)} of {len(report.results)} right ({report.score:.0%})"
    misses, fires = report.count("miss"), report.count("false-fire")
    counts = [format_count(misses, "miss", "misses")] if misses else []
    counts += [format_count(fires, "false fire")] if fires else []
    if counts:
        yield (f"; {', '.join(counts)}", "bad")
        yield f"; wanted {outcome.least:.0%}"


def _wrong_to_blocks(result: EvalResult) -> Iterator[Block]:
    """Return a query that came out wrong: what was expected, what came instead, and why."""
    yield line((f"{result.outcome}: ", "bad"), result.case.query, indent=2)
    if result.outcome == "false-fire":
        yield line("finds ", (result.case.skill, "name"), _in_brackets(result.why), indent=4)
        return
    yield line("should find ", (result.case.skill, "name"), f", which {_describe_place(result)}", indent=4)
    for rival in result.ahead:
        yield line("before it: ", (rival.name, "name"), _in_brackets(rival.why), indent=4)
    left_out = (result.place - 1 if result.place else len(result.ahead)) - len(result.ahead)
    if left_out > 0:
        yield line(f"and {left_out:,} more", indent=4)
    if result.missing_words:
        yield line(f"its name, description and tags lack: {', '.join(result.missing_words)}", indent=4)


def _in_brackets(why: str) -> str:
    return f" ({why})" if why else ""


def _describe_place(result: EvalResult) -> str:
    """Return where the skill of a query came, and why."""
    if result.place is None:
        return "does not come at all"
    return f"comes {_PLACES.get(result.place, f'in place {result.place:,}')}{_in_brackets(result.why)}"


def _count_winners(wrong: list[EvalResult]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for result in wrong:
        for name in result.picked[:1]:
            if result.outcome == "miss":
                counts[name] = counts.get(name, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))

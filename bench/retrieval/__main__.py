"""``python -m bench.retrieval``: whether search finds the right skill, what it costs, and what a selection shows.

It reads the optional data folder ``../shared/retrieval`` beside the checkout. The exit status is 0 whatever the figures
are: timings depend on the machine, and the tables say whether a bound was kept.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import prowess
from bench import measure, report, table
from bench.retrieval import costs, quality, selection
from bench.retrieval.data import FOLDER, read_requests, read_skills, write_library
from bench.retrieval.meaning import MeaningSource
from bench.retrieval.plot import draw_selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.retrieval.data import PoolSkill, Request

PARTS = ("quality", "costs", "selection")
ROUNDS = 7
PAGE_NAME, PICTURE_NAME = "docs/selection.md", "docs/selection.svg"
_ERRORS = "± is the standard error, over groups of requests that share a right skill."


def main(arguments: list[str]) -> int:
    options = _parse_options(arguments)
    # A run that is ended from outside must not leave its libraries behind: they are hundreds of megabytes.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    if not FOLDER.is_dir():
        print("Skipped: there is no ../shared/retrieval beside the checkout, so there are no labelled requests.")
        return 0
    skills = read_skills()
    requests = read_requests(skills)
    meaning = MeaningSource(requests, options.folds)
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as temporary:
        folder = Path(temporary)
        os.environ["PROWESS_CACHE_DIR"] = str(folder / "cache")  # never the index of the person who measures
        if "quality" in options.parts:
            _report_quality(folder, skills, requests, meaning, write=options.write)
        if "selection" in options.parts:
            _report_selection(folder, skills, requests, meaning, write=options.write)
        if "costs" in options.parts:
            _report_costs(folder, skills, requests, options, meaning)
    return 0


def _parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.retrieval", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--folds", type=Path, help="a folder with the vectors of five models, vectors-RUN-0.npz to -4.npz"
    )
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS, help="what to measure (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=costs.SIZES, help="numbers of skills (%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="fresh processes for each cost (%(default)s)")
    written = f"{table.DOCUMENT_NAME}, {PAGE_NAME} and {PICTURE_NAME}"
    parser.add_argument("--write", action="store_true", help=f"put the tables and the plot into {written}")
    return parser.parse_args(arguments)


def _report_quality(
    folder: Path, skills: Sequence[PoolSkill], requests: Sequence[Request], meaning: MeaningSource, *, write: bool
) -> None:
    _say(f"Searching for {len(requests):,} requests in {len(skills):,} skills.")
    rankers = quality.rank_barely(skills)
    catalog = _write_and_scan(folder / "pool", skills)
    rankers[quality.WORDS] = quality.rank_by_words(catalog)
    semantic = meaning.prepare(catalog)
    if semantic is not None:
        rankers[quality.MEANING] = quality.rank_by_meaning(catalog, semantic)
    rows: list[table.Row] = []
    for what, rank in rankers.items():
        _say(f"Ranking by {what}.")
        rows += quality.table_rows(what, requests, quality.judge_all(requests, rank))
    text = table.render(quality.HEAD, rows, numbers=frozenset(range(2, 7)))
    _publish("retrieval", f"{text}\n{len(skills):,} skills; {table.day()}. {_ERRORS} {meaning.note}\n", write=write)


def _report_selection(
    folder: Path, skills: Sequence[PoolSkill], requests: Sequence[Request], meaning: MeaningSource, *, write: bool
) -> None:
    shown: list[selection.Shown] = []
    for size in selection.DRAWS:
        _say(f"Selecting from libraries of {size:,} skills.")
        asked: list[Request] = []
        measured: dict[str, list[selection.Listed]] = {}
        for number, drawn in enumerate(selection.draw_libraries(skills, requests, size)):
            catalog = _write_and_scan(folder / f"drawn-{size}-{number}", [skills[place] for place in drawn.places])
            ways = selection.list_ways(catalog, meaning.prepare(catalog, drawn.places))
            for way, values in selection.measure_ways(ways, drawn).items():
                measured.setdefault(way, []).extend(values)
            asked += drawn.requests
        shown += selection.summarize_ways(size, asked, measured)
    text = table.render(selection.HEAD, [row.cells() for row in shown], numbers=frozenset((0, 1, 3, 4, 5)))
    picture = f"![What a listing costs, and how often it shows the right skill]({Path(PICTURE_NAME).name})\n\n"
    note = f"Means over the requests; {table.day()}. {_ERRORS} {meaning.note}\n"
    _publish("selection", f"{picture}{text}\n{note}", write=write, page=PAGE_NAME)
    if write:
        (table.ROOT / PICTURE_NAME).write_text(draw_selection(selection.make_curves(shown)), encoding="utf-8")


def _report_costs(
    folder: Path,
    skills: Sequence[PoolSkill],
    requests: Sequence[Request],
    options: argparse.Namespace,
    meaning: MeaningSource,
) -> None:
    rows: list[report.Row] = []
    for size in options.sizes:
        _say(f"Measuring search in a library of {size:,} skills.")
        library = costs.make_library(folder, skills, size)
        measured = costs.measure_library(library, requests, options.rounds, with_meaning=meaning.is_installed)
        for row in measured:  # the next size takes long, and whoever waits or gives up has these
            _say("  ".join(filter(None, row.cells())))
        rows += measured
        library.remove()
    if meaning.is_installed:
        rows += costs.measure_encoding(folder, skills)
    text = table.render(report.HEAD, [row.cells() for row in rows], numbers=frozenset((1, 2, 3)))
    note = f"{table.machine()}; best of up to {options.rounds} fresh processes each.\n"
    _publish("search-costs", f"{text}\n{note}", write=options.write)


def _write_and_scan(root: Path, skills: Sequence[PoolSkill]) -> prowess.Catalog:
    """Return the catalogue of a library that holds all of the skills. Its files are read once before."""
    write_library(root, skills)
    measure.warm([root])
    catalog = prowess.scan(root)
    assert len(catalog) == len(skills), catalog.failures
    return catalog


def _publish(name: str, text: str, *, write: bool, page: str = table.DOCUMENT_NAME) -> None:
    print(text, flush=True)
    if write:
        table.write_between(name, text, table.ROOT / page)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

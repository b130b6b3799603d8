"""What search costs in libraries of growing size, beside plain full-text search in the same run."""

from __future__ import annotations

import json
import shutil
import sys
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from bench import measure
from bench.report import TIMES, Row
from bench.retrieval import bare
from bench.retrieval.data import recombine_skills, write_library
from bench.retrieval.tasks import own_terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from bench.retrieval.data import PoolSkill, Request

SIZES = (1_000, 10_000, 100_000)
LARGE = 100_000
"""From this size on, what takes minutes is done once."""
ASKED = 200
FIRST_ASKED = 5
QUERY_BOUND = 2.0
QUERY_MS_BOUND, QUERY_MS_SIZE = 10.0, 10_000
FIRST_BOUND = 2.0
MEANING_MS_BOUND = 30.0
ENCODED = 100
"""Skills of the library that is encoded."""
_FIRST = (sys.executable, "-m", "bench.retrieval.first")


class Library(NamedTuple):
    """A library of one size, with the places where its indexes go."""

    size: int
    root: Path
    cache: Path
    bare: Path

    def command(self, task: str, requests: Sequence[str] = ()) -> measure.Command:
        """Return the command of a fresh process that measures one task."""
        places = {
            "library": str(self.root),
            "cache": str(self.cache),
            "bare": str(self.bare),
            "requests": list(requests),
        }
        return (sys.executable, "-m", "bench.retrieval.tasks", task, json.dumps(places))

    def remove(self) -> None:
        """Delete the library and its indexes."""
        shutil.rmtree(self.root)
        shutil.rmtree(self.cache)
        self.bare.unlink()


def make_library(temporary: Path, skills: Sequence[PoolSkill], size: int) -> Library:
    """Write a library of recombined skills below a temporary folder."""
    library = Library(
        size, temporary / f"library-{size}", temporary / f"cache-{size}", temporary / f"bare-{size}.sqlite"
    )
    write_library(library.root, recombine_skills(skills, size))
    measure.warm([library.root])
    return library


def measure_library(library: Library, requests: Sequence[Request], rounds: int, *, with_meaning: bool) -> list[Row]:
    """Return the rows of one library. The index that the first step builds is the one that the others search."""
    # Every so many, so that each kind and script is asked for as often as it occurs among all.
    asked = [request.text for request in requests[:: max(1, len(requests) // ASKED)]][:ASKED]
    return [
        *_measure_build(library, 1 if library.size >= LARGE else min(rounds, 3)),
        *_measure_first_search(library, asked, rounds),
        *_measure_queries(library, asked, min(rounds, 5)),
        *_measure_memory(library, asked),
        *(_measure_meaning(library, asked, rounds) if with_meaning else ()),
        *_measure_update(library, min(rounds, 3)),
    ]


def _measure_build(library: Library, rounds: int) -> list[Row]:
    best = measure.take_turns({task: library.command(task) for task in ("bare_build", "build")}, rounds=rounds)
    floor, ours = best["bare_build"], best["build"]
    size, bare_size = _folder_bytes(library.cache), library.bare.stat().st_size
    skills = f"{library.size:,}"
    return [
        Row("plain FTS5: read the bodies, write the index", skills, _micro(floor.each)),
        Row("prepare_search, words", skills, _micro(ours.each), ours.value / floor.value, f"{TIMES} plain"),
        Row("size of the plain index", skills, "", bare_size / library.size, "bytes each"),
        Row("size of the index on disk", skills, "", size / library.size, "bytes each"),
        _memory_row("memory to build the plain index, at the peak", skills, floor.memory),
        _memory_row("memory to build the index, at the peak", skills, ours.memory),
    ]


def _measure_first_search(library: Library, asked: Sequence[str], rounds: int) -> list[Row]:
    """The ratio is the median over several requests, since what a request costs depends on its words."""
    ratios, ours, bares = [], [], []
    for text in asked[:: max(1, len(asked) // FIRST_ASKED)][:FIRST_ASKED]:
        match = bare.match_any(own_terms(text))
        commands = {
            "bare": (*_FIRST, "bare", str(library.bare), match),
            "words": (*_FIRST, "words", str(library.root), str(library.cache), text),
        }
        best = measure.take_turns(commands, rounds=min(rounds, 3) if library.size >= LARGE else rounds)
        ratios.append(best["words"].value / best["bare"].value)
        ours.append(best["words"].value)
        bares.append(best["bare"].value)
    skills = f"{library.size:,}"
    what = "first search of a process, by words"
    return [
        Row("plain FTS5: first query of a process", skills, _milli(median(bares))),
        Row(what, skills, _milli(median(ours)), median(ratios), f"{TIMES} plain", FIRST_BOUND),
    ]


def _measure_queries(library: Library, asked: Sequence[str], rounds: int) -> list[Row]:
    best = measure.take_turns({task: library.command(task, asked) for task in ("queries", "all_words")}, rounds=rounds)
    same, every = best["queries"], best["all_words"]
    skills = f"{library.size:,}"
    rows = [
        Row("plain FTS5: a query, with every word", skills, _milli(min(every.floors))),
        Row("plain FTS5: a query, with the same terms", skills, _milli(min(same.floors))),
        Row("search by words", skills, _milli(same.value), same.ratio, f"{TIMES} same terms", QUERY_BOUND),
    ]
    if library.size == QUERY_MS_SIZE:
        rows.append(Row("search by words", skills, _milli(same.value), same.value * 1e3, "ms", QUERY_MS_BOUND))
    return rows


def _measure_memory(library: Library, asked: Sequence[str]) -> list[Row]:
    best = measure.take_turns(
        {task: library.command(task, asked) for task in ("bare_search_memory", "search_memory")}, rounds=1
    )
    skills = f"{library.size:,}"
    return [
        _memory_row("memory of searches in the plain index", skills, best["bare_search_memory"].value),
        _memory_row("memory of searches by words", skills, best["search_memory"].value),
    ]


def _measure_meaning(library: Library, asked: Sequence[str], rounds: int) -> list[Row]:
    """Return the rows of searches with meaning. The encoder is real, and the vectors of the skills are not."""
    kept = measure.take_turns({"keep": library.command("keep_vectors")}, rounds=1)["keep"]
    size = _folder_bytes(library.cache)
    first = (*_FIRST, "meaning", str(library.root), str(library.cache), asked[0])
    best = measure.take_turns(
        {"query": library.command("meaning_queries", asked), "first": first}, rounds=min(rounds, 3)
    )
    memory = measure.take_turns({"memory": library.command("meaning_memory", asked)}, rounds=1)["memory"]
    skills, query = f"{library.size:,}", best["query"]
    added = query.value - query.value / query.ratio
    # In a larger library a search by words alone may take longer: its bound is a multiple of the plain query.
    whole_bound = MEANING_MS_BOUND if library.size <= QUERY_MS_SIZE else None
    return [
        Row("vectors written, encoding not counted", skills, _micro(kept.each)),
        Row("size of the index on disk, with vectors", skills, "", size / library.size, "bytes each"),
        Row("first search of a process, by words and meaning", skills, _milli(best["first"].value)),
        Row("search by words and meaning", skills, _milli(query.value), query.value * 1e3, "ms", whole_bound),
        Row("what meaning adds to a search", skills, _milli(added), added * 1e3, "ms", MEANING_MS_BOUND),
        _memory_row("memory of searches by words and meaning", skills, memory.value),
    ]


def _measure_update(library: Library, rounds: int) -> list[Row]:
    best = measure.take_turns({"update": library.command("update")}, rounds=rounds)["update"]
    return [Row("update after one skill changed", f"{library.size:,}", _milli(best.value))]


def measure_encoding(temporary: Path, skills: Sequence[PoolSkill]) -> list[Row]:
    """Return the row of encoding a skill with the installed encoder."""
    library = make_library(temporary, skills, ENCODED)
    best = measure.take_turns({"encode": library.command("encode")}, rounds=1)["encode"]
    return [Row("prepare_search: encoding a skill", f"{ENCODED}", f"{best.each * 1e3:,.1f} ms each")]


def _memory_row(what: str, skills: str, size: float) -> Row:
    return Row(what, skills, "", size / 2**20, "MiB")


def _folder_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:,.2f} µs each"


def _milli(seconds: float) -> str:
    return f"{seconds * 1e3:,.2f} ms"

"""What one fresh process measures of search: ``python -m bench.retrieval.tasks TASK PLACES`` prints one JSON object.

``PLACES`` is a JSON object with the library's folder, the cache folder for Prowess, the file of the plain index, and
the requests to ask. Imports are done before the clock starts.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypedDict

import prowess
from bench.floor import clocked
from bench.memory import peak_bytes, resident_bytes
from bench.retrieval import bare
from bench.retrieval.sketch import SketchEncoder
from prowess.search.terms import split_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LIMIT = 10
_MARK = "zyxwvut"
"""A word that no skill has, for the skill that is changed."""


class Places(TypedDict):
    """Where a task finds what it measures."""

    library: str
    cache: str
    bare: str
    requests: list[str]


Measured = dict[str, float]


# -- building and updating ---------------------------------------------------------------------------------------------


def build(places: Places) -> Measured:
    """The index of words, made for a library that has none."""
    shutil.rmtree(places["cache"], ignore_errors=True)
    catalog = _scan(places)
    _load_search()
    gc.collect()
    before = resident_bytes()
    seconds, _ = clocked(lambda: catalog.prepare_search(semantic=False))
    return {"value": seconds, "count": len(catalog), "memory": peak_bytes() - before}


def bare_build(places: Places) -> Measured:
    """The bodies read and a plain full-text index of the same texts written."""
    Path(places["bare"]).unlink(missing_ok=True)
    catalog = _scan(places)
    gc.collect()
    before = resident_bytes()

    def write() -> None:
        db = sqlite3.connect(places["bare"])
        rows = (
            (skill.name, skill.description, skill.read_body(errors="replace")[: bare.BODY_CHARACTERS])
            for skill in catalog
        )
        bare.make_table(db, rows, with_body=True)
        db.close()

    seconds, _ = clocked(write)
    return {"value": seconds, "count": len(catalog), "memory": peak_bytes() - before}


def update(places: Places) -> Measured:
    """The index brought up to date after one skill changed."""
    path = min(Path(places["library"]).glob("*/SKILL.md"))
    word = f"{_MARK}{time.time_ns()}"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("\n---\n", f"\n---\n{word}\n", 1), encoding="utf-8")
    _load_search()
    catalog = _scan(places)
    seconds, _ = clocked(lambda: catalog.prepare_search(semantic=False))
    hits = catalog.search(word, semantic=False)
    assert [hit.skill.location for hit in hits] == [str(path)], hits
    return {"value": seconds, "count": 1}


# -- searching ---------------------------------------------------------------------------------------------------------


def queries(places: Places) -> Measured:
    """A search by words; as its floor, the same terms asked of the plain index."""
    catalog, db = _scan(places), sqlite3.connect(places["bare"])
    matches = {text: bare.match_any(own_terms(text)) for text in places["requests"]}
    return _take_turns(
        places["requests"],
        lambda text: bare.rank_rows(db, matches[text], LIMIT),
        lambda text: catalog.search(text, limit=LIMIT, semantic=False),
    )


def all_words(places: Places) -> Measured:
    """A search by words; as its floor, every word of the request asked of the plain index."""
    catalog, db = _scan(places), sqlite3.connect(places["bare"])
    return _take_turns(
        places["requests"],
        lambda text: bare.rank_request(db, text, LIMIT),
        lambda text: catalog.search(text, limit=LIMIT, semantic=False),
    )


def search_memory(places: Places) -> Measured:
    """Bytes by which a process grows with its searches."""
    catalog = _scan(places)
    _load_search()
    gc.collect()
    before = resident_bytes()
    for text in places["requests"]:
        catalog.search(text, limit=LIMIT, semantic=False)
    gc.collect()
    return {"value": resident_bytes() - before, "count": 1}


def bare_search_memory(places: Places) -> Measured:
    """Bytes by which a process grows with the same searches of the plain index."""
    matches = [bare.match_any(own_terms(text)) for text in places["requests"]]
    _load_search()
    gc.collect()
    before = resident_bytes()
    db = sqlite3.connect(places["bare"])
    for match in matches:
        bare.rank_rows(db, match, LIMIT)
    gc.collect()
    return {"value": resident_bytes() - before, "count": 1}


# -- meaning -----------------------------------------------------------------------------------------------------------


def encode(places: Places) -> Measured:
    """The vectors of all skills computed by the installed encoder and written, after the words were indexed."""
    catalog = _scan(places)
    catalog.prepare_search(semantic=False)
    SketchEncoder()  # loads the encoder, which a process does once
    seconds, _ = clocked(lambda: catalog.prepare_search(semantic=True))
    return {"value": seconds, "count": len(catalog)}


def keep_vectors(places: Places) -> Measured:
    """Vectors for all skills written into the index; to compute them costs nothing here."""
    catalog = _scan(places)
    encoder = SketchEncoder()
    before = resident_bytes()
    seconds, _ = clocked(lambda: catalog.prepare_search(semantic=encoder))
    return {"value": seconds, "count": len(catalog), "memory": peak_bytes() - before}


def meaning_queries(places: Places) -> Measured:
    """A search by words and meaning; as its floor, the search by words."""
    catalog, encoder = _scan(places), SketchEncoder()
    assert catalog.search("a", semantic=encoder).mode == "words+meaning"
    return _take_turns(
        places["requests"],
        lambda text: catalog.search(text, limit=LIMIT, semantic=False),
        lambda text: catalog.search(text, limit=LIMIT, semantic=encoder),
    )


def meaning_memory(places: Places) -> Measured:
    """Bytes by which a process grows with its searches by meaning, beyond the encoder."""
    catalog, encoder = _scan(places), SketchEncoder()
    _load_search()
    gc.collect()
    before = resident_bytes()
    for text in places["requests"]:
        catalog.search(text, limit=LIMIT, semantic=encoder)
    gc.collect()
    return {"value": resident_bytes() - before, "count": 1}


# -- what the tasks share ----------------------------------------------------------------------------------------------


def own_terms(text: str) -> list[str]:
    """Return the terms that Prowess makes of a request."""
    return split_request(text)[: prowess.Limits().max_request_terms]


def _scan(places: Places) -> prowess.Catalog:
    os.environ["PROWESS_CACHE_DIR"] = places["cache"]
    return prowess.scan(places["library"])


def _load_search() -> None:
    """Load every module that a search needs, so that loading is not measured."""
    prowess.Catalog([prowess.parse_skill("---\nname: a\ndescription: b\n---\nc\n").skill]).search("b", semantic=False)


def _take_turns(texts: Sequence[str], floor: Callable[[str], Any], subject: Callable[[str], Any]) -> Measured:
    """The medians of a call and of its floor, which take turns one by one; each was called once before."""
    clock = time.thread_time_ns
    floor_times: list[int] = []
    times: list[int] = []
    floor(texts[0])
    subject(texts[0])
    for text in texts:
        begin = clock()
        floor(text)
        between = clock()
        subject(text)
        times.append(clock() - between)
        floor_times.append(between - begin)
    return {"value": median(times) / 1e9, "floor": median(floor_times) / 1e9, "count": 1}


TASKS: dict[str, Callable[[Places], Measured]] = {
    task.__name__: task
    for task in (
        build,
        bare_build,
        update,
        queries,
        all_words,
        search_memory,
        bare_search_memory,
        encode,
        keep_vectors,
        meaning_queries,
        meaning_memory,
    )
}


if __name__ == "__main__":
    print(json.dumps(TASKS[sys.argv[1]](json.loads(sys.argv[2]))))

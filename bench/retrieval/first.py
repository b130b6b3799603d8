"""The first search of a fresh process: ``python -m bench.retrieval.first KIND ...`` prints one JSON object.

``words LIBRARY CACHE REQUEST`` scans the library and asks by words, ``meaning`` with the same arguments by words and
meaning; the scan is not counted. ``bare FILE MATCH`` opens a plain full-text index and asks. Everything that a search
loads is counted, so this module loads nothing that it can do without.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False

if TYPE_CHECKING:
    import prowess

LIMIT = 10


def search_library(library: str, cache: str, request: str, *, with_meaning: bool) -> float:
    """Return the CPU seconds of the first search, with an index that is up to date."""
    import os

    os.environ["PROWESS_CACHE_DIR"] = cache
    import prowess

    catalog = prowess.scan(library)
    assert "sqlite3" not in sys.modules
    begin = time.process_time()
    hits = catalog.search(request, limit=LIMIT, semantic=_load_encoder() if with_meaning else False)
    seconds = time.process_time() - begin
    assert hits
    return seconds


def _load_encoder() -> prowess.Encoder:
    from bench.retrieval.sketch import SketchEncoder

    return SketchEncoder()


def search_bare(file: str, match: str) -> float:
    """Return the CPU seconds of opening the plain index and asking it for the same terms."""
    order = "bm25(skills, 4.0, 4.0, 1.0)"
    assert "sqlite3" not in sys.modules
    begin = time.process_time()
    import sqlite3

    db = sqlite3.connect(file)
    sql = f"SELECT rowid, name, {order} FROM skills WHERE skills MATCH ? ORDER BY {order} LIMIT ?"  # noqa: S608 - constants
    rows = db.execute(sql, (match, LIMIT)).fetchall()
    seconds = time.process_time() - begin
    assert rows
    return seconds


if __name__ == "__main__":
    kind, *arguments = sys.argv[1:]
    seconds = search_bare(*arguments) if kind == "bare" else search_library(*arguments, with_meaning=kind == "meaning")
    print(f'{{"value": {seconds}, "count": 1}}')

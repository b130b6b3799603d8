"""The floors of search: SQLite's full-text search as anybody would write it in a few lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

BODY_CHARACTERS = 6_000
MAX_WORDS = 64
HEAD_WEIGHTS = (6.0, 1.0)
"""Name, description."""
WEIGHTS = (4.0, 4.0, 1.0)
"""Name, description, body."""
_WORD = re.compile(r"\w+")


def split_words(text: str) -> list[str]:
    """Return the words of a request, each once."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))[:MAX_WORDS]


def match_any(words: Iterable[str]) -> str:
    """Return the query of the full-text index that finds each of the words."""
    return " OR ".join(f'"{word}"' for word in words)


def make_table(db: sqlite3.Connection, rows: Iterable[Sequence[str]], *, with_body: bool) -> None:
    """Fill an index with rows of a name, a description and, where it has bodies, the body."""
    columns = "name, description, body" if with_body else "name, description"
    marks = ", ".join("?" * len(columns.split(", ")))
    db.execute(f"CREATE VIRTUAL TABLE skills USING fts5({columns}, tokenize='porter unicode61')")
    db.executemany(f"INSERT INTO skills({columns}) VALUES ({marks})", rows)  # noqa: S608 - constants
    db.commit()


def rank_rows(db: sqlite3.Connection, match: str, limit: int, weights: Sequence[float] = WEIGHTS) -> list[int]:
    """Return the numbers of the best rows, from 0 on."""
    if not match:
        return []
    order = f"bm25(skills, {', '.join(map(str, weights))})"
    sql = f"SELECT rowid FROM skills WHERE skills MATCH ? ORDER BY {order} LIMIT ?"  # noqa: S608 - constants
    return [row - 1 for (row,) in db.execute(sql, (match, limit))]


def rank_request(db: sqlite3.Connection, text: str, limit: int, weights: Sequence[float] = WEIGHTS) -> list[int]:
    """Return the numbers of the best rows for the words of a request."""
    return rank_rows(db, match_any(split_words(text)), limit, weights)

"""The database of an index: a row for each skill, its words in full-text tables of SQLite, and vectors of texts.

One class serves the file of a library and an index in memory. Nothing here knows what a skill is: a row has a key,
which names the file or entry that its texts are from, and a state, which differs when that may have changed.
"""

from __future__ import annotations

import os
import sqlite3
from threading import RLock
from typing import TYPE_CHECKING, Any, Literal

from prowess.search.terms import (
    INDEX_TEXT_VERSION,
    USUAL_HEAD_REACH,
    USUAL_HEAD_WORDS,
    USUAL_TEXT_REACH,
    USUAL_TEXT_WORDS,
    find_words,
    make_index_text,
    measure_reach,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.search.terms import SkillText

    WordTable = Literal["heads", "texts"]
    WordQuery = tuple[WordTable, str, str, float]
    """A table of words, a query in the language of FTS5, the weights of the columns with commas between, and the share
    by which the scores are multiplied before they are added to those of other queries."""


EVERY_ROW = "\ue000"
"""A term that every row has, in a column without weight. It is not a letter, so no request contains it."""
_PAD = " \ue001"
_HEAD_PADDING = EVERY_ROW + _PAD * 79
"""About twice as many words as a description has. BM25 counts a word of a long text for less than one of a short text,
and FTS5 has no setting for that. With so many words in each row, the length of a description counts for a third. All
but one are a term that nothing asks for: a query for ``EVERY_ROW`` then reads one place of a row, and not 80."""
_PADS_PER_WORD = 40
"""Padding for each word beyond the usual number. With 20 a list of words still did better than a skill."""
_PADS_PER_REACH = 4
WORD_TABLES: tuple[WordTable, ...] = ("heads", "texts")
"""The full-text tables: names and descriptions, and the same with the beginnings of instructions. With a table of its
own, a word in a description counts by the length of descriptions, and not by that of the whole skill."""
FORMAT_VERSION = 100 * INDEX_TEXT_VERSION + 2
_APPLICATION_ID = 0x50525753  # "PRWS": marks a SQLite file as an index of Prowess
_MAX_VARIABLES = 500  # older versions of SQLite take no more than 999 in one statement
_PAGES_PER_MERGE = 250  # about 1 MB: the next step takes the place that a step leaves, so the file grows little
_MAX_CHECKS = 16  # catalogues that have one library: scans with different options, and those of a few states of it

_HEADER = f"""
PRAGMA application_id = {_APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
"""
_SCHEMA = """
CREATE TABLE generations(number INTEGER NOT NULL);
INSERT INTO generations VALUES (0);
CREATE TABLE skills(
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    settled INTEGER NOT NULL,
    text_hash BLOB NOT NULL
);
CREATE VIRTUAL TABLE heads USING fts5(name, description, padding, tokenize='porter unicode61');
CREATE VIRTUAL TABLE texts USING fts5(name, description, body, padding, tokenize='porter unicode61');
CREATE TABLE checks(
    id INTEGER PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    encoder TEXT NOT NULL,
    generation INTEGER NOT NULL,
    UNIQUE (fingerprint, encoder)
);
CREATE TABLE vectors(
    text_hash BLOB NOT NULL,
    encoder TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (text_hash, encoder)
) WITHOUT ROWID;
"""

_inherited_connections: list[sqlite3.Connection] = []
"""Connections of the process that this one was forked from. Closing one here could disturb that process."""
_ROW_TYPES = [int, bytes, str, str, int, bytes]


class IndexRow:
    """A skill in an index, without its texts."""

    __slots__ = ("id", "key", "name", "settled", "state", "text_hash")

    def __init__(self, values: tuple[Any, ...]) -> None:
        # SQLite takes any value for a column, so the values of a damaged file may be of any type.
        if [*map(type, values)] != _ROW_TYPES:
            raise DamageError("a row has values of other types than it should")
        self.id: int
        self.key: bytes
        self.name: str
        self.state: str
        self.settled: int
        self.text_hash: bytes
        self.id, self.key, self.name, self.state, self.settled, self.text_hash = values


class IndexDatabase:
    """A connection to an index. Every method may raise ``DATABASE_ERRORS``; its owner keeps threads apart."""

    def __init__(self, path: str = "", busy_seconds: float = 0.0) -> None:
        """Connect to the file ``path``, which must exist; without a path, make an empty index in memory."""
        self._pid = os.getpid()
        self._db: Any = None
        self._db = connect(path, busy_seconds)
        # SQLite would put temporary files into a folder that nobody gave to Prowess.
        self._db.execute("PRAGMA temp_store = MEMORY")
        if not path:
            self.create_schema()

    def __del__(self) -> None:
        # At the end of a process the modules go before the objects. Then SQLite closes the file by itself.
        if os is not None:
            self.close()

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        db, self._db = self._db, None
        if db is not None and self.is_inherited:
            _inherited_connections.append(db)
        elif db is not None:
            db.close()

    @property
    def is_inherited(self) -> bool:
        """True in a process that was forked from the one that connected: there the connection must not be used."""
        return self._pid != os.getpid()

    # -- the whole file ----------------------------------------------------------------------------------------------

    def create_schema(self) -> None:
        """Make an index of an empty database."""
        self._db.executescript(f"BEGIN IMMEDIATE;{_HEADER}{_SCHEMA}COMMIT;")

    def has_our_format(self) -> bool:
        """Return whether the file says that it is an index of this version."""
        ours = self._get_value("PRAGMA application_id"), self._get_value("PRAGMA user_version")
        return ours == (_APPLICATION_ID, FORMAT_VERSION)

    def read(self) -> Transaction:
        """Return a ``with`` block that sees one state of the index, whatever other processes write meanwhile."""
        return Transaction(self._db)

    def write(self) -> _WriteTransaction:
        """A ``with`` block in which no other process writes. All that it writes is kept, or nothing after an error."""
        return _WriteTransaction(self._db)

    def _get_value(self, sql: str, *values: object) -> Any:
        row = self._db.execute(sql, values).fetchone()
        return None if row is None else row[0]

    def _get_number(self, sql: str, *values: object) -> int:
        number = self._get_value(sql, *values)
        if not isinstance(number, int):
            raise DamageError("a number is missing or of another type")
        return number

    # -- which catalogues agree with the rows ------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        """A number that grows with every change of the rows."""
        return self._get_number("SELECT number FROM generations")

    def has_fingerprint(self, fingerprint: bytes, encoder: str = "") -> bool:
        """True when the rows are those of the catalogue with this fingerprint, each with a vector of ``encoder``."""
        sql = "SELECT 1 FROM checks, generations WHERE fingerprint = ? AND encoder = ? AND generation = number"
        return self._get_value(sql, fingerprint, encoder) is not None

    def note_fingerprint(self, fingerprint: bytes, encoder: str = "") -> None:
        """Note that the rows are those of a catalogue, until they change; with ``encoder``, that all have vectors."""
        self._db.execute(
            "INSERT OR REPLACE INTO checks(fingerprint, encoder, generation) SELECT ?, ?, number FROM generations",
            (fingerprint, encoder),
        )
        self._db.execute(
            "DELETE FROM checks WHERE id <= (SELECT id FROM checks ORDER BY id DESC LIMIT 1 OFFSET ?)", (_MAX_CHECKS,)
        )

    def list_encoders(self) -> list[str]:
        """Return the encoders of which some catalogue had all of its vectors, the latest first."""
        rows = self._db.execute("SELECT encoder FROM checks WHERE encoder <> '' ORDER BY id DESC")
        return list(dict.fromkeys(str(row[0]) for row in rows))

    # -- rows --------------------------------------------------------------------------------------------------------

    def read_rows(self) -> dict[bytes, IndexRow]:
        """Return every row by its key."""
        rows = self._db.execute("SELECT id, key, name, state, settled, text_hash FROM skills")
        return {row[1]: IndexRow(row) for row in rows}

    def find_row(self, key: bytes) -> IndexRow | None:
        """Return the row with this key; ``None`` when there is none."""
        sql = "SELECT id, key, name, state, settled, text_hash FROM skills WHERE key = ?"
        row = self._db.execute(sql, (key,)).fetchone()
        return None if row is None else IndexRow(row)

    def get_rows(self, ids: Sequence[int]) -> dict[int, IndexRow]:
        """Return the rows with these ids, by id."""
        rows: dict[int, IndexRow] = {}
        for part in _split_parts(ids):
            sql = f"SELECT id, key, name, state, settled, text_hash FROM skills WHERE id IN ({_marks(part)})"
            rows.update((row[0], IndexRow(row)) for row in self._db.execute(sql, part))
        return rows

    def count_rows(self) -> int:
        """Return how many rows there are."""
        return self._get_number("SELECT count(*) FROM skills")

    def get_last_id(self) -> int:
        """Return the largest id of a row: there are no more rows than this, and counting them would take longer."""
        return self._get_number("SELECT coalesce(max(id), 0) FROM skills")

    def put_row(self, key: bytes, text: SkillText) -> int:
        """Add a row, or replace the one with this key, and return its id."""
        values = (text.name, text.state, text.settled, text.hash(), key)
        if self._db.execute("UPDATE skills SET name=?, state=?, settled=?, text_hash=? WHERE key=?", values).rowcount:
            row_id = self._get_value("SELECT id FROM skills WHERE key = ?", key)
            self._drop_words(row_id)
        else:
            sql = "INSERT INTO skills(name, state, settled, text_hash, key) VALUES (?, ?, ?, ?, ?)"
            row_id = self._db.execute(sql, values).lastrowid
        name = make_index_text(text.searched_name)
        described, body = text.make_index_head(), make_index_text(text.body)
        words = find_words(f"{name} {described}")
        pads = _count_pads(words, USUAL_HEAD_WORDS, USUAL_HEAD_REACH)
        head = (row_id, name, described, _HEAD_PADDING + _PAD * pads)
        self._db.execute("INSERT INTO heads(rowid, name, description, padding) VALUES (?, ?, ?, ?)", head)
        pads += _count_pads(words | find_words(body), USUAL_TEXT_WORDS, USUAL_TEXT_REACH)
        whole = (row_id, name, described, body, EVERY_ROW + _PAD * pads)
        self._db.execute("INSERT INTO texts(rowid, name, description, body, padding) VALUES (?, ?, ?, ?, ?)", whole)
        self._add_generation()
        return int(row_id or 0)

    def drop_row(self, key: bytes) -> None:
        """Remove the row with this key, if there is one."""
        row_id = self._get_value("SELECT id FROM skills WHERE key = ?", key)
        if row_id is not None:
            self._drop_words(row_id)
            self._db.execute("DELETE FROM skills WHERE id = ?", (row_id,))
            self._add_generation()

    def _drop_words(self, row_id: int) -> None:
        for table in WORD_TABLES:
            self._db.execute(f"DELETE FROM {table} WHERE rowid = ?", (row_id,))

    def _add_generation(self) -> None:
        self._db.execute("UPDATE generations SET number = number + 1")

    # -- words -------------------------------------------------------------------------------------------------------

    def merge_words(self) -> None:
        """Merge the parts of each table of words into one; raises ``DATABASE_ERRORS`` when the file cannot be written.

        FTS5 adds a part with every transaction, and a query looks up each of its terms in every part.
        """
        for table in WORD_TABLES:
            pages = -_PAGES_PER_MERGE  # less than 0: FTS5 begins to merge all parts, and goes on with the next call
            while self._merge_pages(table, pages):
                pages = _PAGES_PER_MERGE

    def _merge_pages(self, table: WordTable, pages: int) -> bool:
        """Merge about so many pages of a table, and return whether there was anything to merge."""
        with self.write():
            before = self._db.total_changes
            self._db.execute(f"INSERT INTO {table}({table}, rank) VALUES ('merge', ?)", (pages,))
            # By its documentation, FTS5 has merged something when this counts more than the statement itself.
            return bool(self._db.total_changes - before > 1)

    def count_texts(self, table: WordTable) -> int:
        """Return how many rows have a text in a table of words."""
        return self._get_number(f"SELECT count(*) FROM {table}_docsize")

    def count_matches(self, table: WordTable, term: str, most: int) -> int:
        """Return how many rows of a table of words have a term; no more than ``most`` are counted."""
        sql = f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"
        return self._get_number(sql, _quote(term), most)

    def rank_matches(self, queries: Sequence[WordQuery], limit: int) -> list[tuple[int, float]]:
        """At most ``limit`` rows that queries match, the best first, as ids with the sums of their scores above 0."""
        parts = [
            f"SELECT rowid AS id, -{share} * bm25({table}, {weights}) AS score FROM {table} WHERE {table} MATCH ?"
            for table, _, weights, share in queries
        ]
        # SQLite would move a single query into the outer one, where bm25 cannot be called beside a sum.
        both = f"SELECT id, sum(score) AS score FROM ({' UNION ALL '.join(parts)}) GROUP BY id"
        scores = parts[0] if len(parts) == 1 else both
        sql = f"{scores} ORDER BY score DESC, id LIMIT ?"
        return list(self._db.execute(sql, (*(match for _, match, _, _ in queries), limit)))

    def find_term_rows(self, term: str, ids: Sequence[int]) -> set[int]:
        """Those of the rows with these ids that have a term."""
        matched: set[int] = set()
        for part in _split_parts(ids):
            for table in WORD_TABLES:
                sql = f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid IN ({_marks(part)})"
                matched.update(row[0] for row in self._db.execute(sql, (_quote(term), *part)))
        return matched

    # -- vectors -----------------------------------------------------------------------------------------------------

    def find_vectorless_rows(self, encoder: str) -> list[IndexRow]:
        """Return the rows whose text has no vector of ``encoder``."""
        sql = """
            SELECT id, key, name, state, settled, text_hash FROM skills AS s WHERE NOT EXISTS (
                SELECT 1 FROM vectors AS v WHERE v.text_hash = s.text_hash AND v.encoder = ?
            )
        """
        return [IndexRow(row) for row in self._db.execute(sql, (encoder,))]

    def read_vectors(self, encoder: str) -> list[tuple[int, bytes]]:
        """Return the vector of each row that has one of ``encoder``, with the id of the row; all are of one length."""
        # Each table is read from its beginning to its end. A join would look up each vector by itself.
        sql = "SELECT text_hash, vector FROM vectors WHERE encoder = ?"
        vectors: dict[bytes, Any] = dict(self._db.execute(sql, (encoder,)))
        hashes = self._db.execute("SELECT id, text_hash FROM skills")
        rows = [(row_id, vectors[text_hash]) for row_id, text_hash in hashes if text_hash in vectors]
        lengths = {len(vector) if isinstance(vector, bytes) else None for _, vector in rows}
        if len(lengths) > 1 or None in lengths:
            raise DamageError("the vectors of one encoder differ in length")
        return rows

    def find_vector(self, text_hash: bytes, encoder: str) -> bytes | None:
        """Return the vector of a text; ``None`` when there is none of ``encoder``."""
        vector: bytes | None = self._get_value(
            "SELECT vector FROM vectors WHERE text_hash = ? AND encoder = ?", text_hash, encoder
        )
        return vector

    def put_vectors(self, vectors: Iterable[tuple[bytes, bytes]], encoder: str) -> None:
        """Keep vectors of texts, each with the hash of its text."""
        self._db.executemany(
            "INSERT OR REPLACE INTO vectors(text_hash, encoder, vector) VALUES (?, ?, ?)",
            [(text_hash, encoder, vector) for text_hash, vector in vectors],
        )

    def drop_unused_vectors(self) -> None:
        """Remove the vectors of texts that no row has, once there are more of these than of others."""
        if self._get_number("SELECT count(*) FROM vectors") > 2 * self.count_rows() + 1_000:
            self._db.execute("DELETE FROM vectors WHERE text_hash NOT IN (SELECT text_hash FROM skills)")


def _count_pads(words: set[str], usual: int, usual_reach: int) -> int:
    """Return how much padding makes the words of a text count for less, beyond the usual number and reach of words."""
    beyond, reach_beyond = len(words) - usual, measure_reach(words) - usual_reach
    return _PADS_PER_WORD * max(0, beyond) + _PADS_PER_REACH * max(0, reach_beyond)


def quote_terms(terms: Iterable[str]) -> str:
    """A query of FTS5 for rows that have any of the terms. In quotes, no term is an operator, such as NOT or NEAR."""
    return " OR ".join(map(_quote, terms))


def _quote(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _split_parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(values), _MAX_VARIABLES):
        yield values[start : start + _MAX_VARIABLES]


DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What any use of a connection may raise. The second is Python's, for a message of SQLite that cites a damaged file."""
DamageError = sqlite3.DatabaseError
"""What is raised for a file that is damaged, or is not an index of this version."""
_BUSY_CODES = frozenset((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL))
_DAMAGE_CODES = frozenset((sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR))

# When a process forks in the middle of a write of another thread, the child has a connection that would take back the
# write at its end. So a fork waits for the writes of its process, which are short.
_write_lock = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_write_lock.acquire, after_in_parent=_write_lock.release, after_in_child=_write_lock.release
    )


def connect(path: str, busy_seconds: float) -> sqlite3.Connection:
    """Connect to the file ``path``, which must exist, or, without a path, to an empty database in memory.

    A statement waits at most ``busy_seconds`` while other processes have the file locked. Raises ``DATABASE_ERRORS``.
    """
    # mode=rw: a file that is missing stays missing, since SQLite would create it for everybody to read.
    escaped = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return sqlite3.connect(
        f"file:{escaped}?mode=rw" if path else ":memory:",
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
        uri=bool(path),
    )


def _is_busy_error(error: Exception) -> bool:
    """Return whether other processes have kept the file locked for longer than this one waits."""
    return _primary_code(error) in _BUSY_CODES


def is_damage_error(error: Exception) -> bool:
    """Return whether the file is damaged, or is not an index of this version."""
    return _primary_code(error) in _DAMAGE_CODES


def _primary_code(error: Exception) -> int:
    # An error of Python itself has no code: a text in the file is not UTF-8, for one.
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF


class Transaction:
    """A ``with`` block that reads one state of a database."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:  # some errors of SQLite have ended it already
                self._db.execute("ROLLBACK")


class _WriteTransaction(Transaction):
    """A ``with`` block that writes a database; it begins when other processes do not write."""

    def __enter__(self) -> None:
        # Readers wait from the first page that is written until the end. With this, no page is written before that.
        self._db.execute("PRAGMA cache_spill = OFF")
        self._wait_for_turn()
        try:
            _write_lock.acquire()
        except BaseException:  # an interrupt
            self._db.execute("ROLLBACK")
            raise

    def _wait_for_turn(self) -> None:
        version = self._get_version()
        while True:
            try:
                self._db.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError as error:
                # Another process may build a large index in many steps: the wait ends when it makes no progress.
                before, version = version, self._get_version()
                if not _is_busy_error(error) or version == before:
                    raise
            else:
                return

    def _get_version(self) -> int:
        (version,) = self._db.execute("PRAGMA data_version").fetchone()
        return int(version)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            super().__exit__(kind, *rest)
        finally:
            _write_lock.release()

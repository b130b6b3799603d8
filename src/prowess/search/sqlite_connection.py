"""Connections to a SQLite file that several processes write: how they open, take turns, and fail.

The file has a rollback journal, SQLite's default. A reader sees the state before a write or the state after it, a write
that was interrupted is taken back by whoever opens the file next, and a lock ends with its process.
"""

from __future__ import annotations

import os
import sqlite3
from threading import RLock

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What any use of a connection may raise. The second is Python's, for a message of SQLite that cites a damaged file."""
DamageError = sqlite3.DatabaseError
"""What is raised for a file that is damaged, or is no index of this version."""
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


def is_busy_error(error: Exception) -> bool:
    """True when other processes have kept the file locked for longer than this one waits."""
    return _primary_code(error) in _BUSY_CODES


def is_damage_error(error: Exception) -> bool:
    """True when the file is damaged, or is no index of this version."""
    return _primary_code(error) in _DAMAGE_CODES


def _primary_code(error: Exception) -> int:
    # An error of Python itself has no code: a text in the file is no UTF-8, for one.
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


class WriteTransaction(Transaction):
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
                if not is_busy_error(error) or version == before:
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

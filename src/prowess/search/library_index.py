"""The index of one library: opened, brought up to date, and replaced or left when its file cannot be used.

Most skills are in the file of the library. An index in memory beside it has those that no file may or can hold: texts
of a program, and, where the file cannot be written, whatever the file lacks. Without a file it has every skill.
"""

from __future__ import annotations

import os
import stat
import time
from hashlib import blake2b
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from prowess.errors import BusyError, SourceError
from prowess.files import lock, syscalls, write
from prowess.files.contained_open import READ_FLAGS
from prowess.files.paths import is_link, is_owned_alone
from prowess.files.projects import default_cache_dir, is_private_folder
from prowess.progress_steps import report_steps
from prowess.search import library
from prowess.search.index_database import DATABASE_ERRORS, FORMAT_VERSION, DamageError, IndexDatabase, is_damage_error
from prowess.search.library import is_known_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from prowess.limits import Limits
    from prowess.search.index_database import IndexRow, Transaction
    from prowess.search.library import LibrarySkill, SearchLibrary
    from prowess.search.ranking import RowPlace, TermCounts
    from prowess.search.terms import SkillText
    from prowess.search.vectors import VectorTable

    T = TypeVar("T")


class LibraryIndex:
    """The index of one library, for all threads of one process. Everything but ``run`` is for what ``run`` runs."""

    def __init__(self, skills: SearchLibrary) -> None:
        self.library = skills
        self._pid = os.getpid()
        self._lock = RLock()  # reentrant, because a callback that is told of progress may search
        places = skills.places
        self._source = IndexFile(places, skills.limits) if places else None
        self._is_open = False
        self._is_replaced = False
        self._may_write = True
        """False once the file could not be written: what it lacks is in memory from then on."""
        self._file: IndexDatabase | None = None
        self._memory: IndexDatabase | None = None
        self._memory_keys: set[bytes] = set()
        self._version = -1
        self._forget()

    def _forget(self) -> None:
        """Forget what is known of the databases; each of it is known for certain generations of them."""
        self._checked = self._compared = (-1, -1)
        """The version of the library and the generation of the file of which the file says, or a comparison of all rows
        has shown, that they agree."""
        self._counts: tuple[object, TermCounts] = (None, {})
        self._table: tuple[object, VectorTable | None] = (None, None)
        self._unprepared: object = None

    @property
    def is_inherited(self) -> bool:
        """True in a process that was forked from the one that made the index: it must make another."""
        return self._pid != os.getpid()

    def run(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns, which uses this index. No other thread uses it meanwhile.

        When the file turns out to be damaged or cannot be read any more, ``work`` is called again, with a new file or
        with an index in memory.
        """
        with self._lock:
            while True:
                try:
                    self._open()
                    return work()
                except DATABASE_ERRORS as error:
                    self._leave_file(error)

    def _open(self) -> None:
        if self._is_open:
            return
        self._file = self._source.open() if self._source is not None else None
        if self._file is None:
            self._put_in_memory(self.library.list_kept())
        self._is_open = True

    def _leave_file(self, error: Exception) -> None:
        """Go on with a new file in place of a damaged one, else in memory; raises ``SourceError`` without a file."""
        if self._file is None or self._source is None:
            raise SourceError(f"SQLite cannot search here: {error}", code="search-failed") from error
        self._file.close()
        self._forget()
        can_replace = is_damage_error(error) and not self._is_replaced  # a second time, the disk is to blame
        self._file = self._source.replace() if can_replace else None
        self._is_replaced = True
        if self._file is None:
            self._put_in_memory(self.library.list_kept())

    # -- keeping up to date ------------------------------------------------------------------------------------------

    def bring_up_to_date(self, *, has_moved: bool = False) -> None:
        """Index whatever has no row yet, or changed before it was scanned; nothing is read where nothing has.

        ``has_moved``: a file has been found at another place than the index says, so the rows are compared in any case.
        """
        if self._version != self.library.version:
            self._version = self.library.version
            self._put_in_memory(self.library.list_unkept())
        if self._file is None or not self._may_write:
            return
        state = (self._version, self._file.generation)
        if state == self._compared or (state == self._checked and not has_moved):
            return
        fingerprint = self.library.make_fingerprint()
        if self._file.has_fingerprint(fingerprint) and not has_moved:
            self._checked = state
            return
        try:
            self._compared = (self._version, update_index(self._file, self.library, fingerprint))
        except DATABASE_ERRORS as error:
            if is_damage_error(error):
                raise
            self._may_write = False
            self._put_in_memory(_find_changes(self._file, self.library).outdated)

    def refresh(self, names: Iterable[str]) -> None:
        """Index skills again whose files have changed since."""
        skills = [library.LibrarySkill(self.library.get_key(name) or b"", "", name) for name in names]
        if self._file is not None and self._may_write:
            try:
                _write_rows(self._file, self.library, [s for s in skills if s.key not in self._memory_keys])
                skills = [skill for skill in skills if skill.key in self._memory_keys]
            except DATABASE_ERRORS as error:
                if is_damage_error(error):
                    raise
                self._may_write = False
        self._put_in_memory(skills)

    def _put_in_memory(self, skills: Iterable[LibrarySkill]) -> None:
        rows = list(skills)
        if not rows:
            return
        if self._memory is None:
            self._memory = IndexDatabase()
        _write_rows(self._memory, self.library, rows)
        self._memory_keys.update(row.key for row in rows)

    # -- what is in it -----------------------------------------------------------------------------------------------

    @property
    def databases(self) -> tuple[IndexDatabase, ...]:
        """The databases that have the rows, the largest first."""
        return tuple(database for database in (self._file, self._memory) if database is not None)

    @property
    def lacks_file(self) -> bool:
        """True when a file should keep the index, and none can be written."""
        is_wanted = self._source is not None and self.library.limits.max_search_indexes > 0
        return is_wanted and (self._file is None or not self._may_write)

    def read(self) -> Transaction:
        """Return a ``with`` block that sees one state of the file."""
        return self.databases[0].read()

    def get_rows(self, places: Iterable[RowPlace]) -> dict[RowPlace, IndexRow]:
        """Return the rows at these places, without those that newer ones in memory replace."""
        ids: dict[int, list[int]] = {}
        for number, row_id in places:
            ids.setdefault(number, []).append(row_id)
        databases = self.databases
        return {
            (number, row_id): row
            for number, some in ids.items()
            for row_id, row in databases[number].get_rows(some).items()
            if databases[number] is not self._file or row.key not in self._memory_keys
        }

    def is_own_row(self, row: IndexRow) -> bool:
        """Return whether the row is that of the skill with its name in this library."""
        return self.library.get_key(row.name) == row.key

    def get_counts(self) -> TermCounts:
        """Return how many rows have a word, as far as it was asked for since the rows have changed."""
        state = self.get_generations()
        if self._counts[0] != state:
            self._counts = (state, {})
        return self._counts[1]

    def get_vectors(self, encoder: str) -> VectorTable:
        """Return the vectors of all rows that have one of this encoder; they stay in memory until the rows change."""
        from prowess.search import vectors

        state = (encoder, *self.get_generations())
        if self._table[0] != state or self._table[1] is None:
            packed = [
                ((number, row_id), vector)
                for number, database in enumerate(self.databases)
                for row_id, vector in database.read_vectors(encoder)
            ]
            self._table = (state, vectors.VectorTable(packed))
        return self._table[1]  # type: ignore[return-value]

    def get_generations(self) -> tuple[int, ...]:
        """Return the generations of the databases. They stay equal until a row changes."""
        return tuple(database.generation for database in self.databases)

    def list_encoders(self) -> list[str]:
        """Return the encoders for which some catalogue of this library was prepared."""
        return self.databases[0].list_encoders() if self.databases else []

    def has_all_vectors(self, encoder: str) -> bool:
        """Return whether every skill has a vector of this encoder."""
        if not self.databases:
            return False
        first, fingerprint = self.databases[0], self.library.make_fingerprint()
        is_noted = first.has_fingerprint(fingerprint, encoder)
        if is_noted and len(self.databases) == 1:
            return True
        state = (encoder, *self.get_generations())
        if (state == self._unprepared and not is_noted) or self.find_vectorless_rows(encoder):
            self._unprepared = state
            return False
        if not is_noted:
            self._note_all_vectors(fingerprint, encoder)
        return True

    def _note_all_vectors(self, fingerprint: bytes, encoder: str) -> None:
        try:
            with self.databases[0].write():
                self.databases[0].note_fingerprint(fingerprint, encoder)
        except DATABASE_ERRORS as error:  # then it is found out each time
            if is_damage_error(error):
                raise

    def find_vectorless_rows(self, encoder: str) -> list[IndexRow]:
        """Return the rows of skills of this library that lack a vector of this encoder."""
        first = self.databases[0]
        for database in self.databases[1:]:  # vectors go by texts, so those in the file serve rows in memory too
            rows = database.find_vectorless_rows(encoder)
            known = [(row.text_hash, first.find_vector(row.text_hash, encoder)) for row in rows]
            database.put_vectors([(text_hash, vector) for text_hash, vector in known if vector is not None], encoder)
        return [
            row
            for database in self.databases
            for row in database.find_vectorless_rows(encoder)
            if self.is_own_row(row) and (database is not self._file or row.key not in self._memory_keys)
        ]

    def put_vectors(self, packed: Sequence[tuple[bytes, bytes]], encoder: str) -> None:
        """Keep vectors, each with the hash of its text, in the file where there is one."""
        self._unprepared = None
        with self.databases[0].write():
            self.databases[0].put_vectors(packed, encoder)

    def drop_unused_vectors(self) -> None:
        """Remove vectors of texts that no skill has any more, once there are many."""
        with self.databases[0].write():
            self.databases[0].drop_unused_vectors()


_ROWS_PER_WRITE = 500
"""Rows that are written in one transaction: other processes that write wait for its end, and a crash loses no more."""
_MERGED_SHARE = 4
"""From a quarter of all rows on, what was written is worth the time that it takes to merge the whole index."""
_MAX_ROUNDS = 8  # processes that scanned at different times may work on one index for a while, each for its catalogue


class _IndexChanges(NamedTuple):
    """What an index lacks for a library."""

    outdated: list[LibrarySkill]
    """Skills without a row, or whose row may not be what their file is now."""
    gone: list[bytes]
    """Keys of rows whose files do not exist any more."""
    generation: int
    """The generation of the index that was compared."""


def _find_changes(database: IndexDatabase, library: SearchLibrary) -> _IndexChanges:
    """Compare every row with the library; no file is opened."""
    with database.read():
        generation = database.generation
        rows = database.read_rows()
    outdated: list[LibrarySkill] = []
    for skill in library.list_kept():
        row = rows.pop(skill.key, None)
        if row is None or not row.settled or row.name != skill.name or not is_known_state(row.state, skill.state):
            outdated.append(skill)
    return _IndexChanges(outdated, [key for key in rows if library.is_gone(key)], generation)


class _WriteResult(NamedTuple):
    """What came of writing rows."""

    written: int
    """How many rows were added, replaced or removed; the generation of the index has grown by as many."""
    settled: bool
    """False when one of the files is so new that its next change might not be noticed."""
    complete: bool
    """False when one of the skills is gone: as it was, it could come back, and has no row then."""


def update_index(database: IndexDatabase, library: SearchLibrary, fingerprint: bytes) -> int:
    """Bring the rows of a file up to date, and note that they are those of the catalogue with this fingerprint.

    Return the generation up to which this process need not compare the rows again, -1 when it must do so each time.
    Raises ``DATABASE_ERRORS`` when the file cannot be written. What was written before that stays, and is right.
    """
    looked_at: set[bytes] = set()
    settled = complete = True
    for _ in range(_MAX_ROUNDS):
        changes = _find_changes(database, library)
        outdated = [skill for skill in changes.outdated if skill.key not in looked_at]
        result = _write_rows(database, library, outdated)
        looked_at.update(skill.key for skill in outdated)
        settled, complete = settled and result.settled, complete and result.complete
        with database.write():
            for key in changes.gone:
                database.drop_row(key)
            if database.generation != changes.generation + result.written + len(changes.gone):
                continue  # another process has written meanwhile, so the rows are compared again
            if settled and complete:
                database.note_fingerprint(fingerprint)
            return database.generation if settled else -1
    return -1


def _write_rows(database: IndexDatabase, library: SearchLibrary, skills: Sequence[LibrarySkill]) -> _WriteResult:
    """Read the skills again, and write the rows of those whose row is not what was read."""
    written, settled, complete = 0, True, True
    parts = [skills[start : start + _ROWS_PER_WRITE] for start in range(0, len(skills), _ROWS_PER_WRITE)]
    for part in report_steps(parts, lambda part: f"indexing {part[0].name}"):
        with database.write():
            for skill in part:
                text = library.read_text(skill.name)
                written += _write_row(database, skill.key, text)
                settled = settled and (text is None or text.settled)
                complete = complete and text is not None
    if written * _MERGED_SHARE >= database.count_rows() > 1:
        database.merge_words()
    return _WriteResult(written, settled, complete)


def _write_row(database: IndexDatabase, key: bytes, text: SkillText | None) -> bool:
    """Make the row what was read, and return whether it had to be changed; ``None``: it is no skill any more."""
    row = database.find_row(key)
    if text is None:
        if row is not None:
            database.drop_row(key)
        return row is not None
    if row is not None and row.settled and row.name == text.name and is_known_state(row.state, text.state):
        return False
    database.put_row(key, text)
    return True


_FOLDER = "search"
_DATABASE_SUFFIX = ".db"
_MAX_POINTER_BYTES = 64
_DAY_SECONDS = 86_400

_warned_paths: set[str] = set()


class IndexFile:
    """The file of one library's index. Nothing that goes wrong with it raises an error."""

    def __init__(self, library: str, limits: Limits) -> None:
        """``library`` names the places of its skills, and whatever else the texts in the index depend on."""
        text = f"{FORMAT_VERSION}\0{library}".encode("utf-8", "surrogatepass")
        self._name = blake2b(text, digest_size=16).hexdigest()
        self._limits = limits
        self._database_name = ""
        """The database that was opened last, or was found to be missing or damaged."""

    def open(self) -> IndexDatabase | None:
        """Connect to the index, which is created where there is none; ``None`` where no file can be used."""
        folder = _find_folder() if self._limits.max_search_indexes else ""
        if not folder:
            return None
        try:
            database = self._open_database(folder)
        except DATABASE_ERRORS as error:
            if not is_damage_error(error):  # locked for too long, or unreadable: whoever has it may need it as it is
                return None
            _warn_of_damage(os.path.join(folder, self._database_name))
            database = None
        return database or self._create(folder)

    def replace(self) -> IndexDatabase | None:
        """Connect to a new index, because the one that was opened is damaged; ``None`` where none can be created."""
        folder = _find_folder()
        _warn_of_damage(os.path.join(folder, self._database_name))
        return self._create(folder) if folder else None

    def _open_database(self, folder: str) -> IndexDatabase | None:
        """Connect to the database in use, if there is one. Raises ``DATABASE_ERRORS`` if it is not an index."""
        self._database_name = _read_pointer(os.path.join(folder, self._name))
        path = os.path.join(folder, self._database_name)
        try:
            info = os.lstat(path)
        except OSError:
            return None
        if not self._database_name:
            return None
        if not stat.S_ISREG(info.st_mode) or not is_owned_alone(info):
            raise DamageError("not a file of this user alone")
        database = IndexDatabase(path, self._limits.max_lock_seconds)
        if not database.has_our_format():
            raise DamageError("not an index of this version")
        return database

    # -- creating ----------------------------------------------------------------------------------------------------

    def _create(self, folder: str) -> IndexDatabase | None:
        try:
            with lock.lock_folder(folder, seconds=self._limits.max_lock_seconds):
                if _read_pointer(os.path.join(folder, self._name)) != self._database_name:  # another process was faster
                    database = self._open_database(folder)
                    if database is not None:
                        return database
                database = self._create_database(folder)
                _prune(folder, self._limits.max_search_indexes)
                return database
        except (OSError, BusyError, *DATABASE_ERRORS):
            return None

    def _create_database(self, folder: str) -> IndexDatabase:
        import secrets

        self._database_name = f"{self._name}-{secrets.token_hex(8)}{_DATABASE_SUFFIX}"
        path = os.path.join(folder, self._database_name)
        try:
            os.close(syscalls.create_file(path, 0o600))
            database = IndexDatabase(path, self._limits.max_lock_seconds)
            database.create_schema()
            write.write_atomic(os.path.join(folder, self._name), self._database_name.encode())
        except BaseException:
            _delete_if_there(path)
            raise
        return database


def _find_folder() -> str:
    """Return the folder of all indexes; ``""`` when there is none that only this user may change."""
    try:
        cache = default_cache_dir()
        folder = os.path.join(cache, _FOLDER)
        if not os.path.isdir(folder):
            if os.path.lexists(cache) and not is_private_folder(cache):
                return ""
            write.make_folders(folder, 0o700)
    except (OSError, ValueError, RuntimeError):  # RuntimeError: nobody knows where the home folder is
        return ""
    is_private = is_private_folder(cache) and is_private_folder(folder) and not is_link(folder)
    return folder if is_private else ""


def _read_pointer(path: str) -> str:
    """Return the name of the database that a library has in use; ``""`` when there is none."""
    try:
        fd = os.open(path, READ_FLAGS)
        try:
            name = os.read(fd, _MAX_POINTER_BYTES)
            age = time.time() - os.fstat(fd).st_mtime
        finally:
            os.close(fd)
        if age > _DAY_SECONDS:
            syscalls.touch_file(path)  # so that ``_prune`` knows which are in use
    except OSError:
        name = b""
    text = name.decode("ascii", "replace")
    own = os.path.basename(path)
    # Nothing but a name that this module made: a path in a pointer would lead elsewhere.
    return text if text.startswith(f"{own}-") and text.endswith(_DATABASE_SUFFIX) and os.sep not in text else ""


def _prune(folder: str, keep: int) -> None:
    """Delete the indexes that were not used for longest, and what an interrupted process has left behind."""
    import re

    our_name = re.compile(
        r"(?P<pointer>[0-9a-f]{32})(?:-[0-9a-f]{16}\.db(?:-journal)?)?|\.[0-9a-f]{32}\.[0-9a-f]+\.tmp"
    )
    with os.scandir(folder) as entries:
        times = {entry.name: entry.stat(follow_symlinks=False).st_mtime for entry in entries}
    ours = {name: match["pointer"] == name for name in times if (match := our_name.fullmatch(name))}
    pointers = sorted((name for name in ours if ours[name]), key=times.__getitem__, reverse=True)[:keep]
    databases = [_read_pointer(os.path.join(folder, name)) for name in pointers]
    for name in ours.keys() - {*pointers, *databases, *(f"{name}-journal" for name in databases)}:
        _delete_if_there(os.path.join(folder, name))


def _delete_if_there(path: str) -> None:
    try:
        syscalls.delete_file(path)
    except OSError:
        return


def _warn_of_damage(path: str) -> None:
    """Tell the log, once, that an index is built again."""
    if path in _warned_paths:
        return
    _warned_paths.add(path)
    import logging

    message = "the search index %s is damaged or of another version, and is built again"
    logging.getLogger("prowess").warning(message, path)

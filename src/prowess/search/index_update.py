"""Bringing an index up to date with a library: only what changed is read, and the file on the disk decides.

A catalogue may be older than the index: another process has scanned since. So a row is never replaced because the
catalogue says so. The file is read again, and its state now is compared with that of the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.progress_steps import report_steps
from prowess.search.library import is_known_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.search.index_database import IndexDatabase
    from prowess.search.library import LibrarySkill, SearchLibrary
    from prowess.search.terms import SkillText

_ROWS_PER_WRITE = 500
"""Rows that are written in one transaction: other processes that write wait for its end, and a crash loses no more."""
_MERGED_SHARE = 4
"""From a quarter of all rows on, what was written is worth the time that it takes to merge the whole index."""
_MAX_ROUNDS = 8  # processes that scanned at different times may work on one index for a while, each for its catalogue


class IndexChanges(NamedTuple):
    """What an index lacks for a library."""

    outdated: list[LibrarySkill]
    """Skills without a row, or whose row may not be what their file is now."""
    gone: list[bytes]
    """Keys of rows whose files do not exist any more."""
    generation: int
    """The generation of the index that was compared."""


def find_changes(database: IndexDatabase, library: SearchLibrary) -> IndexChanges:
    """Compare every row with the library; no file is opened."""
    with database.read():
        generation = database.generation
        rows = database.read_rows()
    outdated: list[LibrarySkill] = []
    for skill in library.list_kept():
        row = rows.pop(skill.key, None)
        if row is None or not row.settled or row.name != skill.name or not is_known_state(row.state, skill.state):
            outdated.append(skill)
    return IndexChanges(outdated, [key for key in rows if library.is_gone(key)], generation)


class WriteResult(NamedTuple):
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
        changes = find_changes(database, library)
        outdated = [skill for skill in changes.outdated if skill.key not in looked_at]
        result = write_rows(database, library, outdated)
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


def write_rows(database: IndexDatabase, library: SearchLibrary, skills: Sequence[LibrarySkill]) -> WriteResult:
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
    return WriteResult(written, settled, complete)


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

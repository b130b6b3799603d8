"""The journal of a change under way, ``.prowess.journal`` beside ``prowess.lock``: its format, and how it is read.

The journal holds no lock text. It names the file in which the new lock text waits, also beside ``prowess.lock``, and
the SHA-256 of the text before and after. So a program that can write below ``.prowess`` only, such as one that restores
a poisoned cache, cannot change the lock file. Older versions kept their journal there, and it is never read.

A journal counts only in the folders that it was written for: it names their inode numbers. Nobody who commits a journal
to a repository can know these numbers, and a copy of the project has others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from prowess.errors import InstallError, Issue
from prowess.files.directory import exists
from prowess.files.paths import read_inode
from prowess.installed.scopes import STORE_FOLDER
from prowess.lockfile.read import LOCK_FILE, read_text

if TYPE_CHECKING:
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits

JOURNAL_FILE = ".prowess.journal"
OLD_JOURNAL_FILE = "journal.json"
"""The name of the journal of older versions, in the store."""
VERSION = 2
_TOKEN = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Move:
    """One install or link that is replaced, added, or removed."""

    name: str
    """``org/name`` of an install, with ``/`` and a folder in it where only that is moved; or the path of a link as the
    lock file has it."""
    token: str
    """The temporary name of the staged entry, and of the one that it replaces."""
    new: int = 0
    """The inode number of the staged entry; 0 when the entry is only removed."""
    old: int = 0
    """The inode number of what was there; 0 when nothing was there."""
    link: bool = False
    """True for a link of an agent, False for an install."""
    keep: str = ""
    """The reason, in one word, for keeping what was there as a backup; empty when it is not kept."""
    digest: str = ""
    """The digest with which the folder that was there may be deleted; empty when its content does not count."""


@dataclass(frozen=True, slots=True)
class LockChange:
    """How the lock file changes: the staged file that replaces it, and the hashes of both versions."""

    token: str
    """The random part of the name of the staged file."""
    before: str
    """The SHA-256 of the lock file before; empty without a lock file."""
    after: str
    """The SHA-256 of the text after; empty when the lock file is removed."""

    @property
    def staged(self) -> str:
        """The name of the staged file, in the folder of the lock file."""
        return f".{LOCK_FILE}.{self.token}.tmp"


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything that one change does."""

    moves: tuple[Move, ...]
    lock: LockChange | None = None
    """``None`` for a change that leaves the lock file as it is."""


def digest_text(text: str | None) -> str:
    """Return the SHA-256 of a lock file's text, empty without a lock file."""
    return hashlib.sha256(text.encode()).hexdigest() if text is not None else ""


def journal_path(scope: InstallScope) -> str:
    """Return the path of a scope's journal, whether or not there is one."""
    return os.path.join(scope.lock_folder, JOURNAL_FILE)


def old_journal_path(scope: InstallScope) -> str:
    """Return the path of the journal of older versions. A cache may fill that folder, so that journal is never read."""
    return os.path.join(scope.base, STORE_FOLDER, OLD_JOURNAL_FILE)


def has_journal(scope: InstallScope) -> bool:
    """Return whether a scope has a journal, valid or not."""
    return exists(journal_path(scope)) or exists(old_journal_path(scope))


def format_journal(journal: Journal, scope: InstallScope) -> str:
    """Return the text of a journal for the folders of a scope."""
    lock = asdict(journal.lock) if journal.lock is not None else None
    moves = [asdict(move) for move in journal.moves]
    return json.dumps({"version": VERSION, "here": _inode_numbers(scope), "moves": moves, "lock": lock}, indent=1)


def read_journal(scope: InstallScope, limits: Limits) -> Journal | None:
    """Return the journal of a scope; ``None`` when there is none. Raises ``InstallError`` for an invalid one."""
    if exists(old_journal_path(scope)):
        raise _bad_journal_error(
            "it is where older versions kept theirs, and is not read there", old_journal_path(scope)
        )
    try:
        text = read_text(scope.lock_folder, JOURNAL_FILE, limits)
    except InstallError as error:
        raise _bad_journal_error(error.message, journal_path(scope)) from None
    if text is None:
        return None
    try:
        return _parse_journal(json.loads(text), scope)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise _bad_journal_error("it cannot be read", journal_path(scope)) from None


def _parse_journal(data: dict[str, Any], scope: InstallScope) -> Journal:
    if data["version"] != VERSION:
        raise _bad_journal_error(f"it has version {data['version']!r}", journal_path(scope))
    # A journal that came with a repository or a copy of the project would move whatever it names: see the module.
    if data["here"] != _inode_numbers(scope):
        raise _bad_journal_error("it was written for other folders than these", journal_path(scope))
    moves = tuple(map(_parse_move, data["moves"]))
    lock = LockChange(**data["lock"]) if data["lock"] is not None else None
    strings = [text for move in moves for text in (move.name, move.token, move.keep, move.digest)]
    numbers = [number for move in moves for number in (move.new, move.old)]
    if lock is not None:
        strings += (lock.token, lock.before, lock.after)
    if not all(isinstance(text, str) for text in strings) or not all(isinstance(number, int) for number in numbers):
        raise _bad_journal_error("it cannot be read", journal_path(scope))
    # The token becomes a part of a file name: anything but hexadecimal digits could lead out of the folder.
    if lock is not None and not _TOKEN.fullmatch(lock.token):
        raise _bad_journal_error(f"it names {lock.token[:80]!a}", journal_path(scope))
    return Journal(moves, lock)


def _parse_move(data: dict[str, Any]) -> Move:
    keep = data.get("keep") or ""
    # An older version wrote only whether something is kept, as true or false.
    return Move(**{**data, "keep": "edited" if keep is True else keep})


def _inode_numbers(scope: InstallScope) -> list[int]:
    return [read_inode(scope.lock_folder), read_inode(scope.base)]


def read_staged_lock(scope: InstallScope, limits: Limits) -> str | None:
    """Return the text that the lock file will have after the change under way; ``None`` when no change is under way."""
    journal = read_journal(scope, limits)
    return read_text(scope.lock_folder, journal.lock.staged, limits) if journal is not None and journal.lock else None


def recovery_command(scope: InstallScope) -> str:
    """Return the command that completes an interrupted change of a scope."""
    return "prowess sync --user" if scope.location == "user" else "prowess sync"


def find_interrupted_change(scope: InstallScope, limits: Limits) -> tuple[Issue, ...]:
    """Return a warning for a change that was interrupted, or for an invalid journal; nothing is changed."""
    try:
        journal = read_journal(scope, limits)
    except InstallError as error:
        message = f"{error.message}; '{recovery_command(scope)}' sets it aside"
        return (Issue(error.code, "", message, error.path, 0, "warning"),)
    if journal is None:
        return ()
    message = f"a change was interrupted, or is under way: '{recovery_command(scope)}' ends it"
    return (Issue("interrupted-change", "", message, journal_path(scope), 0, "warning"),)


def interrupted_error(scope: InstallScope) -> InstallError:
    """Return the error for a command that must not change the lock file while an interrupted change of it waits."""
    message = f"an interrupted change of the lock file waits here: '{recovery_command(scope)}' ends it"
    return InstallError(message, journal_path(scope), "interrupted-change")


def _bad_journal_error(why: str, path: str) -> InstallError:
    return InstallError(f"the journal of an interrupted change is not believed: {why}", path, "bad-journal")

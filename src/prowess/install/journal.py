"""The intent journal: what a change is going to do, written down before it does it.

A change stages everything new beside its place and then writes the journal. From then on it can be finished, or taken
back, by anybody, from any moment: each step looks at what is there first, and does nothing where it was done already.
Entries keep their number (inode) when they are renamed, which tells what is where.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError
from prowess.files import calls
from prowess.files.folders import Folder, exists, folder_info
from prowess.files.paths import inode
from prowess.files.removing import remove_tree
from prowess.files.writing import make_folders, write_atomic
from prowess.library.installs import JOURNAL, STORE
from prowess.library.lock import LOCK_FILE, read_text
from prowess.spec.refs import is_safe_part

if TYPE_CHECKING:
    from prowess.install.links import Landings
    from prowess.library.installs import Scope
    from prowess.limits import Limits

BACKUP = ".backup"
VERSION = 1


@dataclass(frozen=True, slots=True)
class Move:
    """One entry that is replaced, put there, or taken away."""

    name: str
    """``org/name`` of an install, or the path of a link as the lock file has it."""
    token: str
    """What the staged entry and the one that was there are called meanwhile."""
    new: int = 0
    """The number of the staged entry, 0 when nothing takes the place."""
    old: int = 0
    """The number of what was there, 0 for nothing."""
    link: bool = False
    keep: bool = False
    """Whether what was there is kept as a backup."""


class Spot(NamedTuple):
    """The paths of a move: the place, where the new entry waits, where the old one goes."""

    path: str
    staged: str
    aside: str


@dataclass(frozen=True, slots=True)
class Journal:
    """Everything that one change does."""

    moves: tuple[Move, ...]
    before: str | None
    """The text of the lock file, ``None`` when there is none."""
    after: str | None


class Journals:
    """The journal of one scope: written, finished, taken back. Only for whoever holds the scope's lock."""

    def __init__(self, scope: Scope, landings: Landings, limits: Limits) -> None:
        self._scope, self._landings, self._limits = scope, landings, limits
        self._store = os.path.join(scope.base, STORE)
        self._path = os.path.join(self._store, JOURNAL)

    def spot(self, move: Move) -> Spot:
        """Where a move happens; a journal cannot name any other place than a scope has."""
        if not is_safe_part(move.token):
            raise self._bad(f"it names {move.token[:80]!a}")
        if move.link:
            path = self._landings.path(move.name)
            beside = self._landings.beside(path, move.token)
            return Spot(path, f"{beside}.new", f"{beside}.old")
        org, _, name = move.name.partition("/")
        if not is_safe_part(org) or not is_safe_part(name):
            raise self._bad(f"it names {move.name[:80]!a}")
        beside = os.path.join(self._store, move.token)
        return Spot(self._scope.place(move.name), f"{beside}.new", f"{beside}.old")

    # -- the three ways through --------------------------------------------------------------------------------------

    def run(self, journal: Journal) -> None:
        """Make the change; when that fails, take it back. Raises what made it fail."""
        self._write(journal)
        try:
            self._forward(journal)
        except BaseException:
            with suppress(OSError, InstallError):  # what cannot be taken back now is finished by the next command
                self._backward(journal)
                self._end()
                self._clear(journal)
            raise
        self._tidy(journal)
        self._end()

    def recover(self) -> bool:
        """Finish what an earlier process began, or take it back where a part of it is lost; whether there was any."""
        journal = self._read()
        if journal is None:
            return False
        if all(self._is_whole(move) for move in journal.moves):
            self._forward(journal)
            self._tidy(journal)
        else:
            self._backward(journal)
        self._sweep_records()
        self._end()
        return True

    def _is_whole(self, move: Move) -> bool:
        """Whether what is to be put in place is there, or on its way."""
        at = self.spot(move)
        return not move.new or move.new in {inode(at.path), inode(at.staged)}

    def _forward(self, journal: Journal) -> None:
        for move in journal.moves:
            self._moved(move, self.spot(move))
        self._sync(journal)
        self._record(journal.after)

    def _backward(self, journal: Journal) -> None:
        for move in reversed(journal.moves):  # no link ever leads to what was taken back already
            self._unmoved(move, self.spot(move))
        self._sync(journal)
        self._record(journal.before)

    def _sync(self, journal: Journal) -> None:
        """Have the disk hold what was renamed, before the lock file says so."""
        for folder in sorted({os.path.dirname(self.spot(move).path) for move in journal.moves}):
            if folder_info(folder) is not None:
                calls.sync_folder(folder)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _moved(self, move: Move, at: Spot) -> None:
        now = inode(at.path)
        if not move.new:
            if now and now == move.old:
                calls.rename(at.path, at.aside)
        elif now == move.new:
            if exists(at.staged):  # the swap was the last thing that happened
                calls.rename(at.staged, at.aside)
        else:
            self._swap(at, taken=bool(now))

    def _swap(self, at: Spot, *, taken: bool) -> None:
        if taken and calls.exchange(at.staged, at.path):
            calls.rename(at.staged, at.aside)
        else:
            if taken:  # where the system cannot exchange, there is a moment without either
                calls.rename(at.path, at.aside)
            calls.rename(at.staged, at.path)

    def _unmoved(self, move: Move, at: Spot) -> None:
        now = inode(at.path)
        before = next((path for path in (at.aside, at.staged) if inode(path) == move.old), "") if move.old else ""
        if now == move.old or (not now and not before):
            return
        if before and now:
            self._swap_back(at, before)
        elif before:
            calls.rename(before, at.path)
        elif now == move.new:
            calls.rename(at.path, at.staged)

    def _swap_back(self, at: Spot, before: str) -> None:
        """The old entry in its place again, the new one where it waited: it may yet be finished."""
        if not calls.exchange(before, at.path):
            spare = f"{at.staged}.spare"
            calls.rename(at.path, spare)
            calls.rename(before, at.path)
            calls.rename(spare, at.staged)
        elif before != at.staged:
            calls.rename(before, at.staged)

    def _clear(self, journal: Journal) -> None:
        """Delete what was staged for a change that was taken back."""
        for move in journal.moves:
            at = self.spot(move)
            for path in (at.staged, at.aside):
                if inode(path) != move.old:
                    remove_tree(path)

    def _record(self, text: str | None) -> None:
        """Have the lock file say ``text``."""
        folder = self._scope.records
        if read_text(folder, LOCK_FILE, self._limits) == text:
            return
        path = os.path.join(folder, LOCK_FILE)
        if text is None:
            calls.delete(path)
            calls.sync_folder(folder)
        else:
            make_folders(folder, durable=True)
            write_atomic(path, text.encode(), mode=0o644)

    def _tidy(self, journal: Journal) -> None:
        """What was there before goes to the backups, or away; a replaced tree stays where it is for a while."""
        for move in journal.moves:
            at = self.spot(move)
            if exists(at.aside) and move.keep:
                backup = os.path.join(self._scope.base, BACKUP)
                make_folders(backup, durable=True)
                calls.rename(at.aside, os.path.join(backup, f"{move.name.replace('/', '-').lstrip('.')}-{move.token}"))
            elif exists(at.aside) and move.link:
                remove_tree(at.aside)

    # -- the file ----------------------------------------------------------------------------------------------------

    def _write(self, journal: Journal) -> None:
        data = {
            "version": VERSION,
            "moves": [asdict(move) for move in journal.moves],
            "lock": {"before": journal.before, "after": journal.after},
        }
        write_atomic(self._path, json.dumps(data, indent=1).encode())

    def _read(self) -> Journal | None:
        text = read_text(self._store, JOURNAL, self._limits) if folder_info(self._store) else None
        if text is None:
            return None
        try:
            data = json.loads(text)
            if data["version"] != VERSION:
                raise self._bad(f"it has version {data['version']!r}")
            moves = tuple(Move(**move) for move in data["moves"])
            texts = (data["lock"]["before"], data["lock"]["after"])
            if any(not isinstance(text, str | None) for text in texts) or not all(map(_makes_sense, moves)):
                raise self._bad("it cannot be read")
            return Journal(moves, *texts)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._bad("it cannot be read") from None

    def _end(self) -> None:
        calls.delete(self._path)
        calls.sync_folder(self._store)

    def _sweep_records(self) -> None:
        """Delete what a process that was killed in the middle of writing the lock file left behind."""
        folder = self._scope.records
        with suppress(FileNotFoundError), Folder(folder) as opened:
            names = opened.entries().files
            for name in names:
                if name.startswith(f".{LOCK_FILE}.") and name.endswith(".tmp"):
                    calls.delete(os.path.join(folder, name))

    def _bad(self, why: str) -> InstallError:
        return InstallError(f"the journal of an interrupted change makes no sense: {why}", self._path, "bad-journal")


def _makes_sense(move: Move) -> bool:
    texts, numbers = (move.name, move.token), (move.new, move.old)
    return all(isinstance(text, str) for text in texts) and all(isinstance(number, int) for number in numbers)

"""The intent journal: what a change is going to do, written down before it does it.

A change stages everything new beside its place, the text of the lock file included, and then writes the journal. Then
the trees and links are moved, and at last the staged lock file is renamed to ``prowess.lock``: that is the moment
from which on the change counts. From any moment before it anybody can take the change back or finish it, and after it
finish it: each step looks at what is there first, and does nothing where it was done already. Entries keep their number
(inode) when they are renamed, which tells what is where.

Recovery never makes lock text: it renames the file that waits beside ``prowess.lock``, or leaves the lock file alone.
``lockfile/journal.py`` says what a journal holds, and which ones are not believed.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder, exists, stat_folder
from prowess.files.paths import is_real_folder, read_inode
from prowess.files.write import make_folders, write_atomic, write_new_file
from prowess.install.backups import back_up
from prowess.lockfile.journal import (
    JOURNAL_FILE,
    Journal,
    LockChange,
    Move,
    digest_text,
    format_journal,
    interrupted_error,
    journal_path,
    read_journal,
    recovery_command,
)
from prowess.lockfile.read import LOCK_FILE, read_text
from prowess.lockfile.scopes import STORE_FOLDER
from prowess.lockfile.write import EMPTY_LOCK_TEXT
from prowess.spec.skill_ref import is_safe_part

if TYPE_CHECKING:
    from prowess.install.agent_links import LinkFolders
    from prowess.limits import Limits
    from prowess.lockfile.scopes import InstallScope

_TEMP_NAME = re.compile(rf"\.{{1,2}}(?:{re.escape(LOCK_FILE)}|{re.escape(JOURNAL_FILE[1:])})\.[0-9a-f]{{12}}\.tmp")
"""What a process that died may leave beside the lock file."""


class MovePaths(NamedTuple):
    """The paths of a move: the place, where the new entry waits, where the old one goes."""

    path: str
    staged: str
    replaced: str


class ScopeJournal:
    """The journal of one scope: written, finished, taken back. Only for whoever holds the scope's lock."""

    def __init__(self, scope: InstallScope, link_folders: LinkFolders, limits: Limits) -> None:
        self._scope, self._link_folders, self._limits = scope, link_folders, limits
        self._store = os.path.join(scope.base, STORE_FOLDER)
        self._path = journal_path(scope)

    def paths_of(self, move: Move) -> MovePaths:
        """Where a move happens; a journal cannot name any other place than a scope has."""
        if not is_safe_part(move.token):
            raise self._bad_journal_error(f"it names {move.token[:80]!a}")
        if move.link:
            path = self._link_folders.path_of_link(move.name)
            beside = self._link_folders.staging_path(path, move.token)
            return MovePaths(path, f"{beside}.new", f"{beside}.old")
        org, _, name = move.name.partition("/")
        if not is_safe_part(org) or not is_safe_part(name):
            raise self._bad_journal_error(f"it names {move.name[:80]!a}")
        beside = os.path.join(self._store, move.token)
        return MovePaths(self._scope.install_folder(move.name), f"{beside}.new", f"{beside}.old")

    # -- the three ways through --------------------------------------------------------------------------------------

    def run_moves(self, moves: tuple[Move, ...], before: str | None, after: str | None) -> tuple[Issue, ...]:
        """Make the moves and have the lock file say ``after``; an issue for each backup that was made.

        When that fails, it is taken back, and what made it fail is raised.

        What fails once the lock file is renamed is not taken back: the next command finishes it.
        """
        journal = Journal(moves, None if before == after else _lock_change(before, after))
        try:
            self._stage_lock(journal, after)
            write_atomic(self._path, format_journal(journal, self._scope).encode())
            self._roll_forward(journal)
        except BaseException:
            with suppress(OSError, InstallError):  # what cannot be taken back now is ended by the next command
                if not self._is_committed(journal):
                    self._undo_change(journal)
            raise
        kept = self._dispose_replaced(journal)
        self._delete_journal()
        return kept

    def recover(self, *, keep_lock: bool = False) -> tuple[Issue, ...]:
        """End what an earlier process began: finish it, or take it back where a part of it is lost.

        Returns a warning for a journal that is not believed, which is set aside with everything that waits in the
        store, and an issue for each backup that was made. ``keep_lock``: raises ``InstallError``
        (``interrupted-change``), and changes nothing, where the change is about the lock file as well.
        """
        try:
            journal = read_journal(self._scope, self._limits)
            for move in journal.moves if journal is not None else ():
                self.paths_of(move)
        except InstallError as error:
            return self._back_up_store(error)
        if journal is None:
            return ()
        if keep_lock and journal.lock is not None:
            raise interrupted_error(self._scope)
        kept: tuple[Issue, ...] = ()
        if self._can_finish(journal):
            self._roll_forward(journal)
            kept = self._dispose_replaced(journal)
        else:
            self._roll_back(journal)
        self.delete_temp_files()
        self._delete_journal()
        return kept

    def _can_finish(self, journal: Journal) -> bool:
        """Whether a change is to be finished: it counts already, or everything that it needs is still there."""
        if self._is_committed(journal):
            return True
        whole = all(self._has_new_entry(move) for move in journal.moves)
        if journal.lock is None:
            return whole
        # Whoever wrote the lock file meanwhile, by a checkout for example, meant that one: it is not replaced.
        now = digest_text(read_text(self._scope.lock_folder, LOCK_FILE, self._limits))
        staged = digest_text(read_text(self._scope.lock_folder, journal.lock.staged, self._limits))
        return whole and (now, staged) == (journal.lock.before, journal.lock.after)

    def _is_committed(self, journal: Journal) -> bool:
        """Whether the lock file says already what it says after the change."""
        if journal.lock is None:
            return False
        text = read_text(self._scope.lock_folder, LOCK_FILE, self._limits)
        removed = text is None and journal.lock.after == digest_text(EMPTY_LOCK_TEXT) and journal.lock.before != ""
        return removed or digest_text(text) == journal.lock.after

    def _has_new_entry(self, move: Move) -> bool:
        """Whether what is to be put in place is there, or on its way."""
        at = self.paths_of(move)
        return not move.new or move.new in {read_inode(at.path), read_inode(at.staged)}

    def _roll_forward(self, journal: Journal) -> None:
        for move in journal.moves:
            if self._has_new_entry(move):  # what is lost after the change counted is missing, which a sync mends
                self._apply_move(move, self.paths_of(move))
        self._sync_folders(journal)
        self._replace_lock(journal)

    def _roll_back(self, journal: Journal) -> None:
        for move in reversed(journal.moves):  # no link ever leads to what was taken back already
            self._undo_move(move, self.paths_of(move))
        self._sync_folders(journal)

    def _undo_change(self, journal: Journal) -> None:
        """Undo a change of this process, its journal and what was staged for it included."""
        self._roll_back(journal)
        if exists(self._path):
            self._delete_journal()
        self._delete_staged(journal)

    def _sync_folders(self, journal: Journal) -> None:
        """Have the disk hold what was renamed, before the lock file says so."""
        for folder in sorted({os.path.dirname(self.paths_of(move).path) for move in journal.moves}):
            if stat_folder(folder) is not None:
                syscalls.sync_folder(folder)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _apply_move(self, move: Move, at: MovePaths) -> None:
        now = read_inode(at.path)
        if not move.new:
            if now and now == move.old:
                syscalls.rename(at.path, at.replaced)
        elif now == move.new:
            if exists(at.staged):  # the swap was the last thing that happened
                syscalls.rename(at.staged, at.replaced)
        else:
            self._swap_in(at, taken=bool(now))

    def _swap_in(self, at: MovePaths, *, taken: bool) -> None:
        if taken and syscalls.swap_entries(at.staged, at.path):
            syscalls.rename(at.staged, at.replaced)
        else:
            if taken:  # where the system cannot exchange, there is a moment without either
                syscalls.rename(at.path, at.replaced)
            syscalls.rename(at.staged, at.path)

    def _undo_move(self, move: Move, at: MovePaths) -> None:
        now = read_inode(at.path)
        before = (
            next((path for path in (at.replaced, at.staged) if read_inode(path) == move.old), "") if move.old else ""
        )
        if now == move.old or (not now and not before):
            return
        if before and now:
            self._swap_back(at, before)
        elif before:
            syscalls.rename(before, at.path)
        elif now == move.new:
            syscalls.rename(at.path, at.staged)

    def _swap_back(self, at: MovePaths, before: str) -> None:
        """The old entry in its place again, the new one where it waited: it may yet be finished."""
        if not syscalls.swap_entries(before, at.path):
            spare = f"{at.staged}.spare"
            syscalls.rename(at.path, spare)
            syscalls.rename(before, at.path)
            syscalls.rename(spare, at.staged)
        elif before != at.staged:
            syscalls.rename(before, at.staged)

    def _delete_staged(self, journal: Journal) -> None:
        """Delete what was staged for a change that was taken back."""
        for move in journal.moves:
            at = self.paths_of(move)
            for path in (at.staged, at.replaced):
                if read_inode(path) != move.old:
                    delete_tree(path)
        self.delete_temp_files()

    def _stage_lock(self, journal: Journal, text: str | None) -> None:
        """Write the new lock text beside the lock file, where only those can write who can write the lock file."""
        if journal.lock is not None:
            make_folders(self._scope.lock_folder, durable=True)
            staged = os.path.join(self._scope.lock_folder, journal.lock.staged)
            write_new_file(staged, (EMPTY_LOCK_TEXT if text is None else text).encode(), mode=0o644, durable=True)

    def _replace_lock(self, journal: Journal) -> None:
        """Have the staged lock file take the place of the lock file; one that records nothing is deleted."""
        if journal.lock is None:
            return
        folder = self._scope.lock_folder
        path = os.path.join(folder, LOCK_FILE)
        if not self._is_committed(journal):
            syscalls.rename(os.path.join(folder, journal.lock.staged), path)
            syscalls.sync_folder(folder)
        if read_text(folder, LOCK_FILE, self._limits) == EMPTY_LOCK_TEXT:
            syscalls.delete_file(path)
            syscalls.sync_folder(folder)

    def _dispose_replaced(self, journal: Journal) -> tuple[Issue, ...]:
        """What was there before goes to the backups, or away; a replaced tree stays where it is for a while."""
        kept: list[Issue] = []
        for move in journal.moves:
            at = self.paths_of(move)
            if exists(at.replaced) and move.keep:
                kept.append(back_up(at.replaced, self._scope, move.name, move.keep, move.token))
            elif exists(at.replaced) and move.link:
                delete_tree(at.replaced)
        return tuple(kept)

    # -- the file ----------------------------------------------------------------------------------------------------

    def _delete_journal(self) -> None:
        syscalls.delete_file(self._path)
        syscalls.sync_folder(self._scope.lock_folder)

    def _back_up_store(self, error: InstallError) -> tuple[Issue, ...]:
        """Put everything that waits in the store into the backups, since nothing says what it is for; warnings.

        A clone may have a folder where the journal goes, which goes there too.
        """
        kept = tuple(
            back_up(path, self._scope, what, "interrupted", new_token())
            for path, what in ((self._store, "store"), (self._path, "journal"))
            if is_real_folder(path)
        )
        if exists(self._path):
            self._delete_journal()
        self.delete_temp_files()
        message = f"{error.message}; it was set aside, and '{recovery_command(self._scope)}' restores what is not right"
        return (Issue(error.code, "", message, error.path, 0, "warning"), *kept)

    def delete_temp_files(self) -> None:
        """Delete what a process that was killed while it wrote beside the lock file left behind."""
        folder = self._scope.lock_folder
        with suppress(FileNotFoundError), Folder(folder) as opened:
            for name in opened.list_entries().files:
                if _TEMP_NAME.fullmatch(name):
                    syscalls.delete_file(os.path.join(folder, name))

    def _bad_journal_error(self, why: str) -> InstallError:
        return InstallError(f"the journal of an interrupted change makes no sense: {why}", self._path, "bad-journal")


def new_token() -> str:
    """A name for what a change moves: the time, in milliseconds, and something random."""
    return f"{int(time.time() * 1000):x}-{secrets.token_hex(6)}"


def _lock_change(before: str | None, after: str | None) -> LockChange:
    final = EMPTY_LOCK_TEXT if after is None else after
    return LockChange(secrets.token_hex(6), digest_text(before), digest_text(final))

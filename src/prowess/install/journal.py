"""The journal of a scope: what a change is going to do, written down before it does it, so that it can be recovered.

A change goes through these steps:

1. Everything new is staged beside its place, the new text of the lock file too.
2. The journal is written.
3. The trees and links are moved into their places.
4. The staged lock file is renamed to ``prowess.lock``. From this moment on the change counts.

A process may die at any moment. Before step 4 the next command can finish the change or take it back; after it, the
next command finishes it. Each step looks at the disk first, and does nothing that was done already. An entry keeps
its inode number when it is renamed, which distinguishes the old entry from the new one.

Recovery never writes lock text: it renames the file that waits beside ``prowess.lock``, or leaves the lock file alone.
``installed/journal_format.py`` says what a journal holds, and which journals are not believed.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Self

from prowess.errors import InstallError, Issue, PathTraversalError
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder, exists, select_folders
from prowess.files.paths import is_real_folder, read_inode
from prowess.files.write import make_folders, write_atomic, write_new_file
from prowess.install.backups import back_up
from prowess.installed.journal_format import (
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
from prowess.installed.placed import digest_folder
from prowess.installed.scopes import STORE_FOLDER
from prowess.lockfile.read import LOCK_FILE, read_text
from prowess.lockfile.write import EMPTY_LOCK_TEXT, refuse_oversized
from prowess.names import is_safe_part, split_relative_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.install.agent_links import LinkFolders
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits

_TEMP_NAME = re.compile(rf"\.{{1,2}}(?:{re.escape(LOCK_FILE)}|{re.escape(JOURNAL_FILE[1:])})\.[0-9a-f]{{12}}\.tmp")
"""The names of the files that a process that died may leave beside the lock file."""


class LocatedMove(NamedTuple):
    """A move with its paths: the place itself, where the new entry waits, and where the old one goes."""

    move: Move
    path: str
    staged: str
    replaced: str

    def with_staged_inode(self) -> Self:
        """Return the move with the inode number of the entry that waits."""
        return self._replace(move=replace(self.move, new=read_inode(self.staged)))


class ScopeJournal:
    """Writes, finishes and takes back the changes of one scope. Its user must hold the lock of the scope."""

    def __init__(self, scope: InstallScope, link_folders: LinkFolders, limits: Limits) -> None:
        self._scope, self._link_folders, self._limits = scope, link_folders, limits
        self._store = os.path.join(scope.base, STORE_FOLDER)
        self._path = journal_path(scope)

    def locate(self, move: Move) -> LocatedMove:
        """Return the move with its paths.

        Raises ``InstallError`` for a name that leads out of the folders of the scope.
        """
        # A journal may have come with a clone: every name in it is checked before it becomes a part of a path.
        if not is_safe_part(move.token):
            raise self._bad_journal_error(f"it names {move.token[:80]!a}")
        if move.link:
            path = self._link_folders.path_of_link(move.name)
            beside = self._link_folders.staging_path(path, move.token)
            return LocatedMove(move, path, f"{beside}.new", f"{beside}.old")
        org, name, *inner = (*move.name.split("/", 2), "")[:3]
        if not is_safe_part(org) or not is_safe_part(name) or not self._is_own_folder(move.name, *inner):
            raise self._bad_journal_error(f"it names {move.name[:80]!a}")
        beside = os.path.join(self._store, move.token)
        return LocatedMove(move, self._scope.install_folder(move.name), f"{beside}.new", f"{beside}.old")

    def _is_own_folder(self, name: str, inner: str = "") -> bool:
        """Whether a folder below an install is one that a change may move: no part of its path leads elsewhere."""
        if not inner:
            return True
        place, base = self._scope.install_folder(name), self._scope.base
        with suppress(PathTraversalError):
            real = os.path.join(os.path.realpath(base), os.path.relpath(os.path.dirname(place), base))
            return "/".join(split_relative_path(inner)) == inner and os.path.realpath(os.path.dirname(place)) == real
        return False

    # -- making and recovering a change --------------------------------------------------------------------------------

    def run_moves(self, moves: Sequence[LocatedMove], before: str | None, after: str | None) -> tuple[Issue, ...]:
        """Make the moves and have the lock file say ``after``; returns an issue for each backup that was made.

        ``None`` stands for no lock file. When something fails, the change is taken back, and the error is raised. What
        fails after the lock file was renamed is not taken back: the next command finishes it. A lock file or a journal
        that would be too large to be read again is refused first.
        """
        final = EMPTY_LOCK_TEXT if after is None else after
        change = None if before == after else LockChange(secrets.token_hex(6), digest_text(before), digest_text(final))
        journal = Journal(tuple([one.move for one in moves]), change)
        refuse_oversized(final, os.path.join(self._scope.lock_folder, LOCK_FILE), self._limits)
        try:
            make_folders(self._scope.lock_folder, durable=True)
            journal_text = format_journal(journal, self._scope)
            refuse_oversized(journal_text, self._path, self._limits)
            if change is not None:
                # Beside the lock file, and not in the store: whoever can write there can write the lock file anyway.
                staged = os.path.join(self._scope.lock_folder, change.staged)
                write_new_file(staged, final.encode(), mode=0o644, durable=True)
            write_atomic(self._path, journal_text.encode())
            self._roll_forward(moves, change)
        except BaseException:
            with suppress(OSError, InstallError):  # the next command ends what cannot be taken back now
                if not self._has_new_lock(change):
                    self._undo_change(moves)
            raise
        backups = self._dispose_old_entries(moves)
        self._delete_journal()
        return backups

    def recover(self, *, keep_lock: bool = False) -> tuple[Issue, ...]:
        """Finish what an earlier process began, or take it back when a part of it is lost.

        Returns an issue for each backup that was made. A journal that is not believed is set aside with everything that
        waits in the store, and is a warning. With ``keep_lock``, a change that is about the lock file too raises
        ``InstallError`` (``interrupted-change``), and nothing is changed.
        """
        try:
            journal = read_journal(self._scope, self._limits)
            moves = [self.locate(move) for move in journal.moves] if journal is not None else []
        except InstallError as error:
            return self._back_up_store(error)
        if journal is None:
            return ()
        if keep_lock and journal.lock is not None:
            raise interrupted_error(self._scope)
        backups: tuple[Issue, ...] = ()
        if self._can_finish(moves, journal.lock):
            self._roll_forward(moves, journal.lock)
            backups = self._dispose_old_entries(moves)
        else:
            self._roll_back(moves)
        self.delete_temp_files()
        self._delete_journal()
        return backups

    def _can_finish(self, moves: Sequence[LocatedMove], change: LockChange | None) -> bool:
        """Return whether a change can be finished: it counts already, or everything that it needs is still there."""
        if self._has_new_lock(change):
            return True
        is_whole = all(not move.new or move.new in map(read_inode, (path, staged)) for move, path, staged, _ in moves)
        if change is None:
            return is_whole
        # Somebody may have replaced the lock file meanwhile, for example by a checkout: then theirs stays.
        now = digest_text(read_text(self._scope.lock_folder, LOCK_FILE, self._limits))
        staged = digest_text(read_text(self._scope.lock_folder, change.staged, self._limits))
        return is_whole and (now, staged) == (change.before, change.after)

    def _has_new_lock(self, change: LockChange | None) -> bool:
        """Return whether the lock file has the text of the finished change, so that the change counts."""
        if change is None:
            return False
        text = read_text(self._scope.lock_folder, LOCK_FILE, self._limits)
        # A lock file that records nothing is deleted as the last step, so a missing one may be the finished change.
        removed = text is None and change.after == digest_text(EMPTY_LOCK_TEXT) and change.before != ""
        return removed or digest_text(text) == change.after

    def _roll_forward(self, moves: Sequence[LocatedMove], change: LockChange | None) -> None:
        for located in moves:
            _apply_move(*located)
        _sync_folders(moves)
        self._replace_lock(change)

    def _roll_back(self, moves: Sequence[LocatedMove]) -> None:
        # In reverse, so that no link ever leads to a tree that was taken back already.
        for located in reversed(moves):
            _undo_move(*located)
        _sync_folders(moves)

    def _undo_change(self, moves: Sequence[LocatedMove]) -> None:
        """Take back a change of this process, with its journal and everything that was staged for it."""
        self._roll_back(moves)
        if exists(self._path):
            self._delete_journal()
        for move, _, staged, replaced in moves:
            for path in (staged, replaced):
                if read_inode(path) != move.old:
                    delete_tree(path)
        self.delete_temp_files()

    # -- steps -------------------------------------------------------------------------------------------------------

    def _replace_lock(self, change: LockChange | None) -> None:
        """Rename the staged lock file to its place. A lock file that records no install does not stay."""
        if change is None:
            return
        folder = self._scope.lock_folder
        path = os.path.join(folder, LOCK_FILE)
        if not self._has_new_lock(change):
            syscalls.rename(os.path.join(folder, change.staged), path)
            syscalls.sync_folder(folder)
        if read_text(folder, LOCK_FILE, self._limits) == EMPTY_LOCK_TEXT:
            syscalls.delete_file(path)
            syscalls.sync_folder(folder)

    def _dispose_old_entries(self, moves: Sequence[LocatedMove]) -> tuple[Issue, ...]:
        """Move the old entries of a change to the backups, or delete them; returns an issue for each backup."""
        # A replaced tree stays in the store for a while: programs may still read files of it.
        backups: list[Issue] = []
        for move, _, _, replaced in moves:
            if not exists(replaced):
                continue
            reason = move.keep or self._find_late_edit(move, replaced)
            if reason:
                backups.append(back_up(replaced, self._scope, move.name, reason, move.token))
            elif move.link:
                delete_tree(replaced)
        return tuple(backups)

    def _find_late_edit(self, move: Move, replaced: str) -> str:
        """``"edited"`` for a folder that somebody changed after it was found to be unchanged, else ``""``."""
        # Nobody can reach the folder by its usual path any more, so this answer stays true.
        if not move.digest or not is_real_folder(replaced):
            return ""
        return "" if digest_folder(replaced, self._limits) == move.digest else "edited"

    # -- the file ----------------------------------------------------------------------------------------------------

    def _delete_journal(self) -> None:
        syscalls.delete_file(self._path)
        syscalls.sync_folder(self._scope.lock_folder)

    def _back_up_store(self, error: InstallError) -> tuple[Issue, ...]:
        """Move the whole store to the backups, because without a journal nobody knows what is in it.

        A clone may have a folder in the place of the journal; that goes to the backups too. Returns a warning for the
        journal, and an issue for each backup.
        """
        backups = tuple(
            back_up(path, self._scope, what, "interrupted", new_token())
            for path, what in ((self._store, "store"), (self._path, "journal"))
            if is_real_folder(path)
        )
        if exists(self._path):
            self._delete_journal()
        self.delete_temp_files()
        message = f"{error.message}; it was set aside, and '{recovery_command(self._scope)}' restores what is not right"
        return (Issue(error.code, "", message, error.path, 0, "warning"), *backups)

    def delete_temp_files(self) -> None:
        """Delete what a process left that was killed while it wrote beside the lock file."""
        folder = self._scope.lock_folder
        with suppress(FileNotFoundError), Folder(folder) as opened:
            for name in opened.list_entries().files:
                if _TEMP_NAME.fullmatch(name):
                    syscalls.delete_file(os.path.join(folder, name))

    def _bad_journal_error(self, why: str) -> InstallError:
        return InstallError(f"the journal of an interrupted change is malformed: {why}", self._path, "bad-journal")


def _apply_move(move: Move, path: str, staged: str, replaced: str) -> None:
    now, waiting = read_inode(path), read_inode(staged)
    if not move.new:
        if now and now == move.old:
            syscalls.rename(path, replaced)
    elif now == move.new:
        if waiting:  # the process died right after the swap, so the old entry has the staged name
            syscalls.rename(staged, replaced)
    elif waiting != move.new:
        return  # the new entry got lost after the change counted: it is missing from now on, and a sync puts it back
    elif now and syscalls.swap_entries(staged, path):
        syscalls.rename(staged, replaced)
    else:
        if now:  # a system that cannot exchange two names has a moment without either
            syscalls.rename(path, replaced)
        syscalls.rename(staged, path)


def _undo_move(move: Move, path: str, staged: str, replaced: str) -> None:
    now = read_inode(path)
    # After a swap the old entry has the staged name for a moment, until it gets its own.
    candidates = (replaced, staged) if move.old else ()
    before = next((candidate for candidate in candidates if read_inode(candidate) == move.old), "")
    if now == move.old or (not now and not before):
        return
    if before and now:
        # The new entry goes back to where it waited: the next command may still finish the change.
        if not syscalls.swap_entries(before, path):
            spare = f"{staged}.spare"
            syscalls.rename(path, spare)
            syscalls.rename(before, path)
            syscalls.rename(spare, staged)
        elif before != staged:
            syscalls.rename(before, staged)
    elif before:
        syscalls.rename(before, path)
    elif now == move.new:
        syscalls.rename(path, staged)


def _sync_folders(moves: Sequence[LocatedMove]) -> None:
    """Have the disk hold every rename before the lock file records it."""
    for folder in select_folders(sorted({os.path.dirname(one.path) for one in moves})):
        syscalls.sync_folder(folder)


def new_token() -> str:
    """Return a new name for an entry that a change moves: the time in milliseconds, and random digits."""
    return f"{int(time.time() * 1000):x}-{secrets.token_hex(6)}"

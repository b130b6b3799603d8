"""The store of a scope: where one process at a time stages trees and links, and moves them into place together."""

from __future__ import annotations

import os
import platform
import re
import secrets
import stat
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder, exists, stat_folder
from prowess.files.lock import lock_folder
from prowess.files.paths import is_folder_itself, is_link, read_inode
from prowess.files.write import make_folders, sync_tree, write_new_file, write_tree
from prowess.install.agent_links import LinkFolders
from prowess.install.backups import BACKUP_FOLDER, back_up
from prowess.install.entry_source import is_sourceless
from prowess.install.git_attributes import overlook_copies, update_attributes
from prowess.install.journal import ScopeJournal, new_token
from prowess.installed.journal_format import Move, find_interrupted_change, has_journal, journal_path
from prowess.installed.placed import RECORD_FILE, PlacedTrees, digest_parts, name_copy
from prowess.installed.scopes import STORE_FOLDER, list_install_names
from prowess.lockfile.read import LOCK_FILE, LockFile, parse_lock_file, read_text
from prowess.lockfile.write import keep_unknown_fields, lock_text, with_line_ends
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.errors import Issue
    from prowess.files.write import NewFile
    from prowess.install.journal import LocatedMove
    from prowess.installed.placed import Parts
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

_HOLDER_FILE = "holder"
"""The file that names the process at work, for those who wait."""
_STAGED_NAME = re.compile(r"([0-9a-f]{11,14})-[0-9a-f]{12}\.(new|old)(\.spare)?")
_TEMP_NAME = re.compile(rf"(?:\.{_HOLDER_FILE}|{re.escape(RECORD_FILE)})\.[0-9a-f]{{12}}\.tmp")


class Disposal(NamedTuple):
    """What becomes of the folder that a change replaces or removes."""

    keep: str = ""
    """Why it goes to the backups, as a key of ``backups.REASONS``; ``""`` when it is deleted."""
    digest: str = ""
    """The digest that it must still have when it is deleted, or else it goes to the backups; ``""`` when it is a link,
    or when somebody asked for its removal."""


DELETED = Disposal()
"""For a link, and for what somebody asked to remove."""


class AgentLink(NamedTuple):
    """A link to be made: its path, its target, and the files to copy where the system cannot make links."""

    path: str
    recorded: str
    """The path as the lock file has it."""
    target: str
    files: Sequence[NewFile] = ()
    disposal: Disposal = DELETED
    """What becomes of the existing folder."""
    copy: bool = False
    """True when the files are copied even where the system can make links."""


class TakenNames:
    """An index of the places and links of a scope, so that many trees can be staged without a search for each."""

    def __init__(self, scope: InstallScope, locked: LockEntries, placed: PlacedTrees) -> None:
        self._placed = placed
        self._places: dict[str, str] = {}
        for name in list_install_names(scope):
            self._places.setdefault(name.lower(), name)
        self._entries = {name.lower(): name for name in locked}
        self._links = {link: name for name, entry in locked.items() for link in entry.links}

    def find_place(self, name: str) -> str:
        """Return the install on the disk that has that name in any case, or ``""``."""
        return self._places.get(name.lower(), "")

    def is_leftover(self, name: str, place: str) -> bool:
        """Return whether the install at a place is as Prowess put it there.

        The caller knows that no entry records it.
        """
        return self._placed.is_pristine(name, place)

    def find_entry(self, name: str) -> str:
        """Return the lock entry that has that name in any case, or ``""``."""
        return self._entries.get(name.lower(), "")

    def find_link_holder(self, link: str, locked: LockEntries) -> LockEntry | None:
        """Return the entry of ``locked`` that records a link; ``None`` for none."""
        entry = locked.get(self._links.get(link, ""))
        # The index also knows entries that lost the link while this change was staged.
        return entry if entry is not None and link in entry.links else None

    def add_entry(self, entry: LockEntry) -> None:
        """Add an entry that is staged."""
        self._entries[entry.name.lower()] = entry.name
        self._links |= dict.fromkeys(entry.links, entry.name)


class Store:
    """One scope that no other process changes meanwhile; made by ``open_store`` and ``open_store_read_only``."""

    def __init__(self, scope: InstallScope, limits: Limits) -> None:
        self.scope, self.limits = scope, limits
        self.link_folders = LinkFolders(scope)
        self._journal = ScopeJournal(scope, self.link_folders, limits)
        self._folder = os.path.join(scope.base, STORE_FOLDER)
        self._lock_text = read_text(scope.lock_folder, LOCK_FILE, limits)
        path = os.path.join(scope.lock_folder, LOCK_FILE)
        recorded = LockFile({}, ()) if self._lock_text is None else parse_lock_file(self._lock_text, path)
        self.locked, self._unknown_fields = recorded
        self.placed = PlacedTrees(scope.base, limits)
        """What Prowess put on this disk."""
        self._moves: list[LocatedMove] = []
        self._made_folders: list[str] = []
        self._ready_folders: set[str] = set()
        """The folders in which links are staged."""
        self.copies: set[str] = set()
        """The staged links that became copies, as the lock file has them."""
        self.issues: tuple[Issue, ...] = ()
        """What was noticed: an interrupted change, a journal that is not believed, each backup that was made."""
        self._taken_names: TakenNames | None = None

    @property
    def taken_names(self) -> TakenNames:
        """Which places and links of the scope are taken; built once for everything that is staged together."""
        if self._taken_names is None:
            self._taken_names = TakenNames(self.scope, self.locked, self.placed)
        return self._taken_names

    # -- what a change does ------------------------------------------------------------------------------------------

    def stage_tree(
        self, name: str, files: Sequence[NewFile], disposal: Disposal = DELETED, *, inside: str = ""
    ) -> None:
        """Stage a tree for the place ``name``; ``disposal`` is what becomes of the existing tree.

        With ``inside``, it is staged for that folder of the install, and the rest of the install stays.
        """
        make_folders(self._folder)
        place = self._check_place(name, inside)
        make_folders(os.path.dirname(place), durable=True)
        move_name = f"{name}/{inside}" if inside else name
        move = self._journal.locate(Move(move_name, new_token(), old=read_inode(place), **disposal._asdict()))
        try:
            syscalls.make_folder(move.staged, 0o755)
            write_tree(move.staged, report_steps(files, lambda file: file.path))
            sync_tree(move.staged)
        finally:
            # Also when writing failed: a move that is noted is deleted with everything else that was staged.
            self._moves.append(move.with_staged_inode())

    def stage_removal(self, name: str, disposal: Disposal = DELETED, *, inside: str = "") -> None:
        """Stage the removal of a place, or of a folder inside it; ``disposal`` is what becomes of what it holds."""
        place = self._check_place(name, inside)
        make_folders(self._folder)
        move_name = f"{name}/{inside}" if inside else name
        move = Move(move_name, new_token(), old=read_inode(place), **disposal._asdict())
        self._moves.append(self._journal.locate(move))

    def _check_place(self, name: str, inside: str = "") -> str:
        """Return the folder of an install, or one in it.

        Raises ``InstallError`` when the folder around it is not ours.
        """
        place = self.scope.install_folder(name)
        _refuse_foreign_folder(os.path.dirname(place), self.scope)
        return os.path.join(place, *inside.split("/")) if inside else place

    def stage_link(self, link: AgentLink) -> None:
        """Stage a link, or the copy that stands for it where the system cannot make links."""
        folder = os.path.dirname(link.path)
        if folder not in self._ready_folders:  # thousands of links are in one folder
            if not exists(folder):
                self._made_folders.append(folder)
            self.link_folders.make_folder(folder)
            self._ready_folders.add(folder)
        move = Move(link.recorded, new_token(), old=read_inode(link.path), link=True, **link.disposal._asdict())
        located = self._journal.locate(move)
        try:
            if self.link_folders.stage_link(link.target, located.staged, link.path, link.files, copy=link.copy):
                self.copies.add(link.recorded)
        finally:
            self._moves.append(located.with_staged_inode())

    def stage_unlink(self, path: str, disposal: Disposal = DELETED) -> None:
        """Stage the removal of a link or a copy; ``disposal`` is what becomes of a copy."""
        if exists(path):
            name = self.link_folders.to_lock_path(path)
            move = Move(name, new_token(), old=read_inode(path), link=True, **disposal._asdict())
            self._moves.append(self._journal.locate(move))

    def commit(self, locked: LockEntries) -> None:
        """Move everything that is staged into place, and have the lock file record ``locked``, all or nothing.

        A lock file that records just that already stays as it is, however it is written.
        """
        locked, dropped = keep_unknown_fields(self.locked, locked)
        text = self._lock_text
        if locked != self.locked:
            text = lock_text(locked, self._unknown_fields)
            text = with_line_ends(text, self._lock_text or "") if text is not None else None
        if not self._moves and text == self._lock_text:
            return
        make_folders(self._folder, durable=True)
        # Once more: a folder that was inside the project when the links were staged may lead elsewhere now.
        for folder in sorted({os.path.dirname(one.path) for one in self._moves if one.move.link}):
            self.link_folders.refuse_outside(folder)
        # The staged entries must be on the disk before the journal names them: recovery relies on them.
        for folder in sorted({os.path.dirname(one.staged) for one in self._moves if one.move.new}):
            syscalls.sync_folder(folder)
        before = self._list_folders_at_links()
        self.issues += (*dropped, *self._journal.run_moves(self._moves, self._lock_text, text))
        self._record_moves(locked)
        self._overlook_copies(before, locked)
        if text != self._lock_text:
            self.issues += update_attributes(self.scope, self.locked, locked, self.limits)
        self._moves.clear()
        self._made_folders.clear()
        self._ready_folders.clear()
        self._lock_text, self.locked, self._taken_names = text, locked, None

    def _record_moves(self, locked: LockEntries) -> None:
        """Record what the staged moves have put in place."""
        holders = {link: entry for entry in locked.values() for link in entry.links}
        placed: dict[str, Parts] = {}
        gone: set[str] = set()
        for move in [one.move for one in self._moves]:
            # After a move inside an install the whole install is as its entry has it.
            install = "" if move.link else "/".join(move.name.split("/")[:2])
            name = install or name_copy(move.name)
            # What the lock file calls a link may be a copy on this disk.
            entry = locked.get(install) if install else holders.get(move.name) if move.name in self.copies else None
            gone.add(name)
            is_there = move.new or install not in {"", move.name}
            # The copies in copy mode are under version control: what changes them is git, and not only Prowess.
            if not is_there or name in placed:  # an install may have a move for each of many skills
                continue
            if entry is not None and not is_sourceless(entry) and not entry.is_copied:
                placed[name] = (
                    digest_parts(entry) if install else {"": entry.digest_for_link(os.path.basename(move.name))}
                )
        for name, entry in locked.items():
            old = self.locked.get(name)
            # Another install took over a skill of this one: the parts of the same files are others now.
            if old is None or old is entry or old.digest != entry.digest or old.skills == entry.skills:
                continue
            if name not in gone and self.placed.parts_of(name) == digest_parts(old):
                placed[name] = digest_parts(entry)
        self.placed.save(placed, gone)

    def _list_folders_at_links(self) -> set[str]:
        """Return the names of the staged moves of links at whose places there are folders now."""
        return {one.move.name for one in self._moves if one.move.link and is_folder_itself(one.path)}

    def _overlook_copies(self, before: set[str], locked: LockEntries) -> None:
        """Have git overlook the copies that are in place of committed links, and no other copy.

        ``before`` are the names of the links that were copies before this change.
        """
        now = self._list_folders_at_links()
        if self.scope.location != "project" or not before | now:
            return
        # The copies in copy mode are there to be committed.
        committed = {copy for entry in locked.values() if entry.is_copied for copy in entry.copies}
        self.issues += overlook_copies(self.scope.root, now - committed, before - now | committed & now, self.limits)

    @property
    def staged_count(self) -> int:
        """How many moves are staged and not committed."""
        return len(self._moves)

    def discard_staged_moves(self, since: int = 0) -> None:
        """Delete what is staged and not committed, except for the first ``since`` moves."""
        for one in self._moves[since:]:
            # With a journal, the next command still needs the staged entries to end the change.
            if one.move.new and not exists(journal_path(self.scope)):
                with suppress(OSError):
                    delete_tree(one.staged)
        del self._moves[since:]
        self._ready_folders.clear()
        # An empty folder of an agent would make the agent look present.
        for folder in self._made_folders if not self._moves else ():
            self.link_folders.delete_if_empty(folder)

    # -- beginning and end -------------------------------------------------------------------------------------------

    def delete_leftovers(self) -> None:
        """Delete staged entries that never got their place, and trees that were replaced a while ago."""
        self._journal.delete_temp_files()
        for path in self.link_folders.find_leftovers():
            with suppress(OSError):
                if is_link(path):
                    syscalls.delete_file(path)
                else:
                    # Without its journal nobody knows whether the folder is a new copy or one that was somebody's.
                    self.issues += (back_up(path, self.scope, os.path.basename(path), "interrupted", new_token()),)
        if stat_folder(self._folder) is None:
            return
        with Folder(self._folder) as opened:
            entries = opened.list_entries()
        for name in (*entries.folders, *entries.files, *entries.links):
            if self._is_deletable(name):
                with suppress(OSError):
                    delete_tree(os.path.join(self._folder, name))

    def _is_deletable(self, name: str) -> bool:
        match = _STAGED_NAME.fullmatch(name)
        if match is None:
            return _TEMP_NAME.fullmatch(name) is not None
        # A clock that was set back makes an age negative; such a tree is deleted too, or it would stay for ever.
        age = time.time() - int(match[1], 16) / 1000
        return match[2] == "new" or not 0 <= age < self.limits.keep_replaced_seconds

    def write_holder(self) -> None:
        """Write who is at work, for those who wait."""
        if stat_folder(self.scope.base) is None:
            return
        make_folders(self._folder)
        text = f"process {os.getpid()} on {platform.node() or 'this machine'}"
        # Renamed into place, so that nobody reads half of a name.
        staged = os.path.join(self._folder, f".{_HOLDER_FILE}.{secrets.token_hex(6)}.tmp")
        with suppress(OSError):
            write_new_file(staged, text.encode("ascii", "replace"), mode=0o644)
            syscalls.rename(staged, os.path.join(self._folder, _HOLDER_FILE))

    def delete_holder(self) -> None:
        """Delete the file that says who is at work, and the store's folder when it is empty."""
        with suppress(OSError):
            syscalls.delete_file(os.path.join(self._folder, _HOLDER_FILE))
        with suppress(OSError):
            syscalls.delete_folder(self._folder)


class LockOnlyStore(Store):
    """The lock file of a scope in memory: installs are recorded in it, and no file is read or changed for them.

    Whoever made it writes ``locked`` in the end.
    """

    def __init__(self, scope: InstallScope, limits: Limits) -> None:
        # A folder that never exists: what is on this disk must not decide what everybody gets.
        nowhere = os.path.join(scope.base, STORE_FOLDER, new_token())
        super().__init__(scope._replace(base=os.path.join(nowhere, "base"), root=nowhere), limits)

    def stage_tree(
        self, name: str, files: Sequence[NewFile], disposal: Disposal = DELETED, *, inside: str = ""
    ) -> None:
        """Do nothing: no tree has a place."""

    def stage_removal(self, name: str, disposal: Disposal = DELETED, *, inside: str = "") -> None:
        """Do nothing: no tree has a place."""

    def stage_link(self, link: AgentLink) -> None:
        """Record which links are copies."""
        if link.copy:
            self.copies.add(link.recorded)

    def stage_unlink(self, path: str, disposal: Disposal = DELETED) -> None:
        """Do nothing: no link has a place."""

    def commit(self, locked: LockEntries) -> None:
        """Take the entries for what the lock file has from now on."""
        self.locked, self._taken_names = locked, None


@contextmanager
def open_store(scope: InstallScope, limits: Limits, *, keep_lock: bool = False) -> Iterator[Store]:
    """The store of a scope for this process alone; an interrupted change is finished or taken back first.

    Raises ``BusyError`` when another process holds the scope for too long. With ``keep_lock``, raises ``InstallError``
    (``interrupted-change``) when ending the interrupted change would change the lock file.
    """
    check_scope_folders(scope)
    make_folders(scope.base, durable=True)
    with lock_folder(scope.base, seconds=limits.max_lock_seconds, holder=holder_path(scope)):
        issues = ScopeJournal(scope, LinkFolders(scope), limits).recover(keep_lock=keep_lock)
        store = Store(scope, limits)
        store.issues = issues
        store.delete_leftovers()
        try:
            store.write_holder()
            yield store
        finally:
            store.discard_staged_moves()
            store.delete_holder()


@contextmanager
def open_store_read_only(scope: InstallScope, limits: Limits) -> Iterator[Store]:
    """The store of a scope for a command that only reads, while no process changes it; nothing is recovered."""
    check_scope_folders(scope)
    if stat_folder(scope.base) is None:  # without a base nothing can be locked, and a reader makes no folders
        yield _read_store(scope, limits)
        return
    with lock_folder(scope.base, seconds=limits.max_lock_seconds, holder=holder_path(scope)):
        yield _read_store(scope, limits)


def _read_store(scope: InstallScope, limits: Limits) -> Store:
    store = Store(scope, limits)
    store.issues = find_interrupted_change(scope, limits)
    return store


def holder_path(scope: InstallScope) -> str:
    """Return the file that says who is changing a scope."""
    return os.path.join(scope.base, STORE_FOLDER, _HOLDER_FILE)


def recover_scope(scope: InstallScope, limits: Limits, *, keep_lock: bool = False) -> tuple[Issue, ...]:
    """Finish an interrupted change, or take it back; returns a warning for a journal that is not believed.

    With ``keep_lock``, raises ``InstallError`` (``interrupted-change``) when that would change the lock file.
    """
    if not has_journal(scope):
        return ()
    with open_store(scope, limits, keep_lock=keep_lock) as store:
        return store.issues


def check_scope_folders(scope: InstallScope) -> None:
    """Raise ``InstallError`` when a folder of a scope is a link, or belongs to another user.

    The folders of a project are all from the project's own down to the base, and the store and the backups in it. Above
    the base of a user, and above a base of another shape, links are allowed: their owner set them up.
    """
    # A repository may hold links that lead anywhere, and would have us write there.
    inner = os.path.relpath(scope.base, scope.root) if scope.location == "project" else os.curdir
    parts = () if inner == os.curdir else inner.split(os.sep)
    folders = [os.path.join(scope.root, *parts[: depth + 1]) for depth in range(len(parts))]
    for path in (*folders, os.path.join(scope.base, STORE_FOLDER), os.path.join(scope.base, BACKUP_FOLDER)):
        _refuse_foreign_folder(path, scope)


def _refuse_foreign_folder(path: str, scope: InstallScope) -> None:
    """Raise ``InstallError`` unless a folder is missing, or is real and belongs to this user, root or the project."""
    try:
        info = os.lstat(path)
    except OSError:
        return
    if is_link(path):
        raise InstallError("a folder of the install base is a link", path, "link-refused")
    if not stat.S_ISDIR(info.st_mode):
        raise InstallError("there is something else where a folder of the install base goes", path, "foreign-folder")
    # The owner of the project counts: a container often runs as root in a project of somebody else. Windows has no
    # user numbers.
    if hasattr(os, "geteuid") and info.st_uid not in {os.geteuid(), 0, os.stat(scope.root).st_uid}:
        raise InstallError(f"the folder belongs to another user (number {info.st_uid})", path, "foreign-folder")

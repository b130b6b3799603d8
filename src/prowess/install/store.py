"""The store of a scope: one process at a time, interrupted changes finished first, trees staged and swapped in."""

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
from prowess.files.delete import remove_tree
from prowess.files.directory import Folder, exists, folder_info
from prowess.files.lock import held
from prowess.files.paths import inode, is_link
from prowess.files.write import make_folders, sync_tree, write_new, write_tree
from prowess.install.agent_links import Landings, stage_link
from prowess.install.backups import BACKUP, back_up
from prowess.install.journal import Journals, new_token
from prowess.lockfile.journal import Move, find_interrupted, has_journal, journal_path
from prowess.lockfile.read import LOCK_FILE, parse_lock, read_text
from prowess.lockfile.scopes import STORE, installed_names
from prowess.lockfile.write import EMPTY_TEXT, lock_text
from prowess.progress_steps import stepped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.errors import Issue
    from prowess.files.write import NewFile
    from prowess.limits import Limits
    from prowess.lockfile.read import Locked, LockedSkill
    from prowess.lockfile.scopes import Scope

_HOLDER = "holder"
_TOKEN = re.compile(r"([0-9a-f]{11,14})-[0-9a-f]{12}\.(new|old)(\.spare)?")
_LEFTOVER = re.compile(rf"\.{_HOLDER}\.[0-9a-f]{{12}}\.tmp")


class Link(NamedTuple):
    """A link to be made: its path, the folder it leads to, and the files to copy where links cannot be made."""

    path: str
    target: str
    files: Sequence[NewFile] = ()
    keep: str = ""
    """Why what stands there is kept as a backup; empty when it is not kept."""
    copy: bool = False
    """Whether the files are to be copied, also where links can be made."""


class Taken:
    """Places and links of a scope by name, so that staging many trees does not go through all installs for each."""

    def __init__(self, scope: Scope, locked: Locked) -> None:
        self._places: dict[str, str] = {}
        for name in installed_names(scope):
            self._places.setdefault(name.lower(), name)
        self._entries = {name.lower(): name for name in locked}
        self._links = {link: name for name, entry in locked.items() for link in entry.links}

    def place_like(self, name: str) -> str:
        """The install on the disk with that name, in whatever case; ``""`` for none."""
        return self._places.get(name.lower(), "")

    def entry_like(self, name: str) -> str:
        """The lock entry with that name, in whatever case; ``""`` for none."""
        return self._entries.get(name.lower(), "")

    def holder_of(self, link: str) -> str:
        """The last entry that recorded a link; ``""`` for none. It may have lost the link since."""
        return self._links.get(link, "")

    def add(self, entry: LockedSkill) -> None:
        """Count an entry that is staged."""
        self._entries[entry.name.lower()] = entry.name
        self._links |= dict.fromkeys(entry.links, entry.name)


class Store:
    """One scope, held by this process."""

    def __init__(self, scope: Scope, limits: Limits) -> None:
        self.scope, self.limits = scope, limits
        self.landings = Landings(scope)
        self._journals = Journals(scope, self.landings, limits)
        self._folder = os.path.join(scope.base, STORE)
        self._text = read_text(scope.records, LOCK_FILE, limits)
        self.locked: Locked = (
            {} if self._text is None else parse_lock(self._text, os.path.join(scope.records, LOCK_FILE))
        )
        self._moves: list[Move] = []
        self.copies: set[str] = set()
        self.issues: tuple[Issue, ...] = ()
        """What was met on the way: a change that waits, a journal that is not believed, each backup that was made."""
        self._taken: Taken | None = None

    @property
    def taken(self) -> Taken:
        """Which places and links of the scope are taken, found out once for all that is staged together."""
        if self._taken is None:
            self._taken = Taken(self.scope, self.locked)
        return self._taken

    # -- what a change does ------------------------------------------------------------------------------------------

    def put(self, name: str, files: Sequence[NewFile], *, keep: str = "") -> None:
        """Stage a tree for the place ``name``; ``keep``: why what is there goes to the backups, if it does."""
        make_folders(self._folder)
        place = self._checked_place(name)
        make_folders(os.path.dirname(place), durable=True)
        move = Move(name, new_token(), keep=keep, old=inode(place))
        staged = self._journals.spot(move).staged
        try:
            syscalls.make_folder(staged, 0o755)
            write_tree(staged, stepped(files, lambda file: file.path))
            sync_tree(staged)
        finally:
            self._moves.append(_with_new(move, inode(staged)))

    def drop(self, name: str, *, keep: str = "") -> None:
        """Have a place emptied; ``keep``: why what is there goes to the backups, if it does."""
        place = self._checked_place(name)
        make_folders(self._folder)
        self._moves.append(Move(name, new_token(), old=inode(place), keep=keep))

    def _checked_place(self, name: str) -> str:
        """The folder of an install; raises where the one around it is not ours."""
        place = self.scope.place(name)
        _refuse_foreign(os.path.dirname(place), self.scope)
        return place

    def link(self, link: Link) -> None:
        """Stage a link."""
        self.landings.prepare(os.path.dirname(link.path))
        move = Move(self.landings.recorded(link.path), new_token(), old=inode(link.path), link=True, keep=link.keep)
        staged = self._journals.spot(move).staged
        try:
            if stage_link(link.target, staged, link.path, link.files, copy=link.copy):
                self.copies.add(move.name)
        finally:
            self._moves.append(_with_new(move, inode(staged)))

    def unlink(self, path: str, *, keep: str = "") -> None:
        """Have a link taken away."""
        if exists(path):
            self._moves.append(Move(self.landings.recorded(path), new_token(), old=inode(path), link=True, keep=keep))

    def commit(self, locked: Locked) -> None:
        """Make everything that was staged happen, together with the lock file."""
        text = lock_text(locked)
        if text is None and self._text == EMPTY_TEXT:
            text = EMPTY_TEXT  # it records nothing already, and stays as its owner has it
        if not self._moves and text == self._text:
            return
        make_folders(self._folder, durable=True)
        for folder in sorted({os.path.dirname(self._journals.spot(move).staged) for move in self._moves if move.new}):
            syscalls.sync_folder(folder)
        self.issues += self._journals.run(tuple(self._moves), self._text, text)
        self._moves.clear()
        self._text, self.locked, self._taken = text, locked, None

    @property
    def staged(self) -> int:
        """How many moves are staged and not committed."""
        return len(self._moves)

    def discard(self, since: int = 0) -> None:
        """Delete what was staged and not committed; ``since``: but for the first so many moves."""
        for move in self._moves[since:]:
            if move.new and not exists(journal_path(self.scope)):
                with suppress(OSError):
                    remove_tree(self._journals.spot(move).staged)
        del self._moves[since:]

    # -- beginning and end -------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Delete what nobody needs any more: staged trees that never got their place, trees replaced a while ago."""
        self._journals.sweep_records()
        for path in self.landings.litter():
            with suppress(OSError):
                self._sweep_link(path)
        if folder_info(self._folder) is None:
            return
        with Folder(self._folder) as opened:
            entries = opened.entries()
        for name in (*entries.folders, *entries.files, *entries.links):
            if self._is_spent(name):
                with suppress(OSError):
                    remove_tree(os.path.join(self._folder, name))

    def _sweep_link(self, path: str) -> None:
        """Delete a link that never got its place. A folder is kept: without its journal nobody knows whose it was."""
        if is_link(path):
            syscalls.delete(path)
        else:
            self.issues += (back_up(path, self.scope, os.path.basename(path), "interrupted", new_token()),)

    def _is_spent(self, name: str) -> bool:
        match = _TOKEN.fullmatch(name)
        if match is None:
            return _LEFTOVER.fullmatch(name) is not None
        age = time.time() - int(match[1], 16) / 1000
        return match[2] == "new" or not 0 <= age < self.limits.keep_replaced_seconds

    def announce(self) -> None:
        """Say who is at work, for those who wait."""
        if folder_info(self.scope.base) is None:
            return
        make_folders(self._folder)
        text = f"process {os.getpid()} on {platform.node() or 'this machine'}"
        staged = os.path.join(self._folder, f".{_HOLDER}.{secrets.token_hex(6)}.tmp")
        with suppress(OSError):
            write_new(staged, text.encode("ascii", "replace"), mode=0o644)
            syscalls.rename(staged, os.path.join(self._folder, _HOLDER))

    def leave(self) -> None:
        """Take the name off again, and the store itself when it is empty."""
        with suppress(OSError):
            syscalls.delete(os.path.join(self._folder, _HOLDER))
        with suppress(OSError):
            syscalls.delete_folder(self._folder)


def _with_new(move: Move, number: int) -> Move:
    return Move(move.name, move.token, number, move.old, move.link, move.keep)


@contextmanager
def opened(scope: Scope, limits: Limits, *, keep_lock: bool = False) -> Iterator[Store]:
    """The store of a scope for this process alone; whatever was interrupted is ended first.

    ``keep_lock``: raises ``InstallError`` (``interrupted-change``) where that would change the lock file.
    """
    check_folders(scope)
    make_folders(scope.base, durable=True)
    with held(scope.base, seconds=limits.max_lock_seconds, holder=holder_of(scope)):
        issues = Journals(scope, Landings(scope), limits).recover(keep_lock=keep_lock)
        store = Store(scope, limits)
        store.issues = issues
        store.sweep()
        try:
            store.announce()
            yield store
        finally:
            store.discard()
            store.leave()


@contextmanager
def look_into(scope: Scope, limits: Limits) -> Iterator[Store]:
    """The store of a scope while no process changes it, for those who only look: nothing is changed, nor recovered."""
    check_folders(scope)
    if folder_info(scope.base) is None:
        yield _as_it_is(scope, limits)
        return
    with held(scope.base, seconds=limits.max_lock_seconds, holder=holder_of(scope)):
        yield _as_it_is(scope, limits)


def _as_it_is(scope: Scope, limits: Limits) -> Store:
    store = Store(scope, limits)
    store.issues = find_interrupted(scope, limits)
    return store


def holder_of(scope: Scope) -> str:
    """The file that says who is changing a scope."""
    return os.path.join(scope.base, STORE, _HOLDER)


def recover(scope: Scope, limits: Limits, *, keep_lock: bool = False) -> tuple[Issue, ...]:
    """End what was interrupted, if anything was; a warning for a journal that is not believed.

    ``keep_lock``: raises ``InstallError`` (``interrupted-change``) where that would change the lock file.
    """
    if not has_journal(scope):
        return ()
    with opened(scope, limits, keep_lock=keep_lock) as store:
        return store.issues


def check_folders(scope: Scope) -> None:
    """Raise ``InstallError`` unless the folders of a scope are ours: a repository may hold links that lead anywhere.

    In a project that is every folder from the project's own down to the base, and the store and the backups in it.
    Above the base of a user, and above one of another shape, links are whoever's who set them up.
    """
    inner = os.path.relpath(scope.base, scope.root) if scope.location == "project" else os.curdir
    parts = () if inner == os.curdir else inner.split(os.sep)
    folders = [os.path.join(scope.root, *parts[: depth + 1]) for depth in range(len(parts))]
    for path in (*folders, os.path.join(scope.base, STORE), os.path.join(scope.base, BACKUP)):
        _refuse_foreign(path, scope)


def _refuse_foreign(path: str, scope: Scope) -> None:
    """Raise unless a folder of ours is not there, or is a real folder of this user, of root, or of the root's owner.

    The owner of the project counts because a container often runs as root in a project of somebody else.
    """
    try:
        info = os.lstat(path)
    except OSError:
        return
    if is_link(path):
        raise InstallError("a folder of the install base is a link", path, "link-refused")
    if not stat.S_ISDIR(info.st_mode):
        raise InstallError("there is something else where a folder of the install base goes", path, "foreign-folder")
    if hasattr(os, "geteuid") and info.st_uid not in {os.geteuid(), 0, os.stat(scope.root).st_uid}:
        raise InstallError(f"the folder belongs to another user (number {info.st_uid})", path, "foreign-folder")

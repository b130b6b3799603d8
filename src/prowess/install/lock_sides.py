"""The two sides of a lock file that is in a merge conflict, from git's index or from the conflict markers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import BusyError, GitError, InstallError
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.files.delete import temporary_folder
from prowess.files.directory import exists
from prowess.files.lock import lock_folder
from prowess.files.syscalls import wrap_os_errors
from prowess.files.write import make_folders, write_atomic
from prowess.install.store import check_scope_folders, holder_path
from prowess.lockfile.merge import find_marker, merge_locks, split_conflict
from prowess.lockfile.read import LOCK_FILE, parse_lock, read_text
from prowess.lockfile.write import refuse_oversized, with_line_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.merge import ConflictSides, LockConflict, LockMerge, Side

Owner = Literal["mine", "theirs"]
"""Whose version of an entry: that of the person who merges, or that of the other side."""
_STASH_LABEL = "Stashed changes"
_INDEX_STAGES = {"1": "base", "2": "ours", "3": "theirs"}


class LockSides(NamedTuple):
    """The versions that a lock file in conflict is merged from."""

    text: str
    """The lock file as it is on the disk."""
    base: str
    ours: str
    theirs: str
    is_base_known: bool = True
    """False when only markers without a base are there. An entry that one side lacks may then have been removed."""
    is_mine_theirs: bool = False
    """True when git calls the person's own changes ``theirs``: in a rebase, and with stashed changes."""
    labels: tuple[str, str] = ("", "")
    """The names of the two sides behind the markers, as git orders them: ``HEAD``, a branch, a commit."""

    @property
    def owners(self) -> tuple[str, str]:
        """The person's own side and the other side, each with the branch or the commit that it is, for people."""
        mine, theirs = reversed(self.labels) if self.is_mine_theirs else self.labels
        return (f"mine ({mine})" if mine else "mine", f"theirs ({theirs})" if theirs else "theirs")

    def merge(self, choices: Mapping[str, Owner] | None = None) -> LockMerge:
        """Return the merge of both sides.

        ``choices`` says whose version to take of an entry that both sides changed.
        """
        # In a rebase git calls the branch that one rebases onto "ours", so the person's own side is "theirs".
        sides: dict[str, Side] = {
            name: "ours" if (owner == "mine") != self.is_mine_theirs else "theirs"
            for name, owner in (choices or {}).items()
        }
        return merge_locks(self.base, self.ours, self.theirs, choices=sides)

    def order_versions(self, conflict: LockConflict) -> tuple[str, str]:
        """Return the version of the person's own side, then that of the other side, for people."""
        ours, theirs = describe_versions(conflict)
        return (theirs, ours) if self.is_mine_theirs else (ours, theirs)


def describe_versions(conflict: LockConflict) -> tuple[str, str]:
    """Return the versions of both sides for people, as git orders them."""
    return conflict.ours or "removed it", conflict.theirs or "removed it"


def find_sides(scope: InstallScope, limits: Limits) -> LockSides | None:
    """Return the sides of a scope's lock file; ``None`` when it is in no conflict, or the conflict is resolved already.

    git's index has both sides whole while the file is unmerged. Otherwise the sides are read from the markers in the
    file; lines that git merged by itself are then on both sides. Raises ``InstallError`` (``torn-conflict``) when the
    markers do not give two lock files.
    """
    text = read_text(scope.lock_folder, LOCK_FILE, limits) or ""
    stages = _read_stages(scope, limits)
    marked = split_conflict(text) if find_marker(text) else None
    stashed = marked is not None and marked.theirs_label == _STASH_LABEL
    labels = (marked.ours_label, marked.theirs_label) if marked is not None else ("", "")
    if stages and (find_marker(text) or text in {stages.get("ours", ""), stages.get("theirs", "")}):
        # When one side deleted the file, git leaves the other side there without markers.
        base, ours, theirs = (stages.get(side, "") for side in _INDEX_STAGES.values())
        return LockSides(text, base, ours, theirs, is_mine_theirs=stashed or "rebase" in stages, labels=labels)
    if not find_marker(text):
        return None
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    if marked is None:
        raise InstallError(
            "the conflict markers do not pair, so the two sides cannot be distinguished", path, "torn-conflict"
        )
    _require_whole_sides(marked, path)
    is_base_known = marked.base is not None and _is_lock_text(marked.base)
    base = (marked.base or "") if is_base_known else ""
    return LockSides(text, base, marked.ours, marked.theirs, is_base_known, stashed, labels)


def _require_whole_sides(marked: ConflictSides, path: str) -> None:
    """Raise ``InstallError`` (``torn-conflict``) when a side between the markers is not a whole lock file."""
    for side in (marked.ours, marked.theirs):
        try:
            parse_lock(side)
        except InstallError as error:
            message = f"the markers do not hold both sides whole, since git merged some lines already: {error.message}"
            raise InstallError(message, path, "torn-conflict") from None


def _is_lock_text(text: str) -> bool:
    """Return whether a string is a lock file."""
    # The base by the markers may not be one: git's style zdiff3 leaves out lines that both sides share.
    try:
        parse_lock(text)
    except InstallError:
        return False
    return True


def _read_stages(scope: InstallScope, limits: Limits) -> dict[str, str]:
    """Return the versions of the lock file in git's index, by side; the key ``rebase`` exists during a rebase.

    Empty when the file is not unmerged, and when git does not know.
    """
    program = GitProgram(limits, printed=limits.max_lock_bytes)
    # The program bounds what git writes into its working folder: that is an empty one, and not the project.
    with wrap_os_errors(), temporary_folder() as empty:

        def run_git(*args: str) -> str:
            return program(["-C", scope.lock_folder, *args], empty, make_environment(())).decode("utf-8", "replace")

        try:
            rows = [row.split() for row in run_git("ls-files", "--unmerged", "-z", "--", LOCK_FILE).split("\0") if row]
            if not rows:
                return {}
            # The objects themselves: no filter and no other program of the repository's configuration has a say.
            stages = {_INDEX_STAGES[stage]: run_git("cat-file", "blob", oid) for _, oid, stage, *_ in rows}
            folders = run_git("rev-parse", "--git-path", "rebase-merge", "--git-path", "rebase-apply").splitlines()
        except GitError:
            return {}
    if any(exists(os.path.join(scope.lock_folder, folder)) for folder in folders):
        stages["rebase"] = ""
    return stages


def write_merged_lock(scope: InstallScope, sides: LockSides, text: str, limits: Limits) -> None:
    """Replace the lock file by a merged text; raises ``BusyError`` when it was changed since its sides were read.

    Raises ``InstallError`` (``lock-too-large``) for a string that would be too large to be read again.
    """
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    refuse_oversized(text, path, limits)
    with wrap_os_errors():
        check_scope_folders(scope)
        make_folders(scope.base, durable=True)
        with lock_folder(scope.base, seconds=limits.max_lock_seconds, holder=holder_path(scope)):
            if (read_text(scope.lock_folder, LOCK_FILE, limits) or "") != sides.text:
                raise BusyError("the lock file was changed meanwhile", path)
            write_atomic(path, with_line_ends(text, sides.text).encode(), mode=0o644)

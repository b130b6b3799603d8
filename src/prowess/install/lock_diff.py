"""Two versions of a lock file compared by what is in the skills: their files, what is new, and what could now run."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from prowess.errors import GitError, InstallError, SkillError
from prowess.fetch.git.process import GitProgram, make_environment
from prowess.files.delete import temporary_folder
from prowess.files.syscalls import wrap_os_errors
from prowess.install.abilities import OldVersion, UpdateAddition, list_additions
from prowess.install.entry_source import is_sourceless
from prowess.install.fetch_source import LastOpenSource
from prowess.install.file_diffs import diff_files
from prowess.install.restore import fetch_recorded_tree
from prowess.installed.policy_check import check_lock_entries
from prowess.lockfile.read import LOCK_FILE, parse_lock, read_lock
from prowess.policy.files import current_policy
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.install.fetch_source import SourceAccess
    from prowess.install.install_tree import InstallTree
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry


@dataclass(frozen=True, slots=True)
class LockChange:
    """What became of one install between two versions of a lock file."""

    name: str
    """``org/name``."""
    status: Literal["added", "removed", "changed"]
    source: str
    source_before: str
    version: str
    """The version that was asked for, or else the commit; the digest where a source has neither."""
    version_before: str
    digests: Mapping[str, str]
    """The digest of each skill, by name."""
    additions: tuple[UpdateAddition, ...] = ()
    """What is new and what could now run."""
    diff: str = ""
    """The unified diff of the files."""
    why_unknown: str = ""
    """Why the files of one side could not be fetched; ``""`` where they could."""
    refusals: tuple[str, ...] = ()
    """Why the policy refuses the new version."""


def read_lock_at(scope: InstallScope, place: str, limits: Limits) -> LockEntries:
    """Return the lock file at a place: a revision of git, the path of a file, or a folder; ``""`` is the working tree.

    A revision without a lock file has no installs. Raises ``InstallError`` for a place that is none of these.
    """
    if not place:
        return read_lock(scope.lock_folder, limits=limits)
    if os.path.exists(place):
        path = os.path.abspath(place)
        folder, name = (path, LOCK_FILE) if os.path.isdir(path) else os.path.split(path)
        if name != LOCK_FILE:
            raise InstallError(f"{place!r:.200} is not a {LOCK_FILE}", path, "bad-lock")
        return read_lock(folder, limits=limits)
    program = GitProgram(limits, printed=limits.max_lock_bytes)
    # The program bounds what git writes into its working folder: that is an empty one, and not the project.
    with wrap_os_errors(), temporary_folder() as empty:

        def run_git(*args: str) -> str:
            return program(["-C", scope.lock_folder, *args], empty, make_environment(())).decode("utf-8", "replace")

        try:
            commit = run_git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{place}^{{commit}}").strip()
        except GitError:
            message = f"{place!r:.200} is neither a file nor a version that git knows in {scope.lock_folder}"
            raise InstallError(f"{message}: in CI, fetch it first", scope.lock_folder, "unknown-version") from None
        if not run_git("ls-tree", "--name-only", commit, "--", LOCK_FILE).strip():
            return {}
        return parse_lock(run_git("cat-file", "blob", f"{commit}:./{LOCK_FILE}"), f"{place}:{LOCK_FILE}")


def compare_locks(
    before: LockEntries, after: LockEntries, scope: InstallScope, access: SourceAccess
) -> tuple[LockChange, ...]:
    """Return what two versions of a lock file change, by name; the files come from the sources, at what is locked."""
    names = sorted(before.keys() | after.keys())
    names = [name for name in names if _key_of(before.get(name)) != _key_of(after.get(name))]
    policy = current_policy(scope.root)
    changes: list[LockChange] = []
    with LastOpenSource(access) as source:
        for name in report_steps(names, str):
            old, new = before.get(name), after.get(name)
            change = _describe_move(old, new)
            try:
                trees = [_fetch_tree(entry, scope, source, access.limits) for entry in (old, new)]
                change = _compare_trees(change, trees[0], trees[1], access.limits)
            except SkillError as error:
                change = replace(change, why_unknown=error.message)
            issues = check_lock_entries(scope, {name: new}, policy) if new is not None else ()
            changes.append(replace(change, refusals=tuple(issue.message for issue in issues)))
    return tuple(changes)


def _key_of(entry: LockEntry | None) -> object:
    """Return what of an entry is content: where it is linked does not matter."""
    return None if entry is None else (entry.source, entry.ref, entry.commit, entry.subpath, entry.digest)


def _fetch_tree(
    entry: LockEntry | None, scope: InstallScope, source: LastOpenSource, limits: Limits
) -> InstallTree | None:
    if entry is None:
        return None
    if is_sourceless(entry):
        raise InstallError(f"{entry.name} has no source that its files could be fetched from", code="no-source")
    return fetch_recorded_tree(entry, scope, source, limits, refuses=False)


def _describe_move(old: LockEntry | None, new: LockEntry | None) -> LockChange:
    """Return what the lock file alone says of a change."""
    either = new or old
    assert either is not None
    return LockChange(
        either.name,
        "added" if old is None else "removed" if new is None else "changed",
        new.source if new is not None else "",
        old.source if old is not None else "",
        _version_of(new),
        _version_of(old),
        {skill: new.skill_digest(skill) for skill in new.skills} if new is not None else {},
    )


def _compare_trees(
    change: LockChange, before: InstallTree | None, tree: InstallTree | None, limits: Limits
) -> LockChange:
    if tree is None:  # of what is removed, the files say nothing that anybody has to review
        return change
    hashes = {} if before is None else before.hashes
    files = () if before is None else before.files
    changed = {path for path, one in tree.hashes.items() if hashes.get(path) != one}
    known = OldVersion({} if before is None else before.skills, hashes, files)
    additions = list_additions(tree, changed, known, limits)
    return replace(change, additions=additions, diff=diff_files(files, tree.files, limits))


def _version_of(entry: LockEntry | None) -> str:
    if entry is None:
        return ""
    commit = entry.commit[:12]
    return f"{entry.ref} ({commit})" if entry.ref and commit else entry.ref or commit or entry.digest[:12]

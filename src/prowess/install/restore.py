"""The disk made equal to the lock file: installs, links and copies that are missing or edited are put back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.source_spec import SourceSpec
from prowess.errors import GitError, Issue, LockMismatchError, SkillError
from prowess.install.agent_links import LinkFolders
from prowess.install.entry_source import is_sourceless, spec_of_entry
from prowess.install.fetch_source import BATCH_BYTES, LastOpenSource
from prowess.install.install_tree import InstallTree, read_recorded_tree, recorded_tree, take_recorded_modes
from prowess.install.installed_files import read_unedited_files
from prowess.install.plan import InstallOptions
from prowess.install.stage import stage_install
from prowess.install.store import open_store
from prowess.install.verify import describe_leftovers, find_leftovers
from prowess.installed.compare import (
    NOT_SYNCED,
    compare_install,
    describe_differences,
    find_unrecorded_installs,
    get_install_state,
    verify_scope,
)
from prowess.installed.placed import PlacedTrees
from prowess.installed.policy_check import refuse_entry
from prowess.lockfile.read import read_lock
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.install.fetch_source import SourceAccess
    from prowess.installed.compare import Difference, InstallState
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

    UnequalEntries = Sequence[tuple[LockEntry, InstallState]]

_MAX_SHOWN = 5
"""How many differences a message names."""
_STATE_PHRASES = {
    "missing": "it is missing",
    "pristine": "another version is here",
    "copy": "another version is in the folder of an agent",
    "unlinked": "a link to it is missing or leads elsewhere",
}


class _Restorable(NamedTuple):
    """A lock entry, and the tree that it records."""

    entry: LockEntry
    tree: InstallTree


class Restoration:
    """One run that puts back what is not as a scope's lock file says, many trees at a time.

    ``names`` are the installs that were put back. ``issues`` are what was noticed. ``errors`` are what kept single
    installs from being put back; when the run is ``locked``, the first of them is raised instead.
    """

    def __init__(self, scope: InstallScope, access: SourceAccess, *, locked: bool) -> None:
        self._scope, self._access, self._is_locked = scope, access, locked
        self._waiting: list[_Restorable] = []
        self._waiting_bytes = 0
        self.names: list[str] = []
        self.issues: list[Issue] = []
        self.errors: list[SkillError] = []

    def restore_all(self, unequal: UnequalEntries) -> None:
        """Put back every install that differs. An entry without a source is passed over, and warned of."""
        # Entries of one source follow each other, so that each source is opened once.
        in_order = sorted(unequal, key=lambda pair: (pair[0].source, pair[0].commit or pair[0].ref))
        with LastOpenSource(self._access) as source:
            for entry, state in in_order:
                if _is_unrestorable(entry, state):
                    self.issues.append(_unrestorable_issue(entry, state, self._scope))
                    continue
                try:
                    self._add(_Restorable(entry, self._get_tree(entry, state, source)))
                    withdrawn = (
                        one for one in source.open_issues if one.code == "yanked" and one.field in entry.skills
                    )
                    self.issues += withdrawn
                except SkillError as error:
                    self._note_error(error)
        self._restore_waiting()
        self.names.sort()

    def _note_error(self, error: SkillError) -> None:
        if self._is_locked:
            raise error
        self.errors.append(error)

    def _get_tree(self, entry: LockEntry, state: InstallState, source: LastOpenSource) -> InstallTree:
        """The tree that an entry records: from this disk when only links or some copies are missing, else fetched."""
        # The files are on this disk, as they are recorded: fetching them would cost time, and may fail offline.
        if state in {"unlinked", "copy"}:
            files = read_unedited_files(entry, LinkFolders(self._scope), self._access.limits)
            if files is not None:
                return recorded_tree(entry, self._source_of(entry), files)
        return fetch_recorded_tree(entry, self._scope, source, self._access.limits)

    def _source_of(self, entry: LockEntry) -> SourceSpec:
        """Return the source of an entry; the install itself where it has no other."""
        if not is_sourceless(entry):
            return spec_of_entry(entry, self._scope, ref=entry.ref)
        org, _, name = entry.name.partition("/")
        return SourceSpec("folder", self._scope.install_folder(entry.name), org, name, local=True)

    def _add(self, restorable: _Restorable) -> None:
        self._waiting.append(restorable)
        self._waiting_bytes += sum(len(file.content) for file in restorable.tree.files)
        if self._waiting_bytes > BATCH_BYTES:
            self._restore_waiting()

    def _restore_waiting(self) -> None:
        """Put back all trees that wait at once; when that fails, put back each by itself."""
        batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not batch:
            return
        try:
            self._restore_batch(batch)
        except SkillError as error:
            if self._is_locked or len(batch) == 1:
                self._note_error(error)
                return
            # One bad install must not keep the others of its batch from being put back.
            for restorable in batch:
                self._waiting = [restorable]
                self._restore_waiting()

    def _restore_batch(self, batch: Sequence[_Restorable]) -> None:
        """Put trees and their links in place, all or none. A locked run leaves the lock file as it is."""
        # Opening the store reads the lock file: to do so for each of thousands of trees would be quadratic.
        with open_store(self._scope, self._access.limits, keep_lock=self._is_locked) as store:
            locked = dict(store.locked)
            for entry, tree in batch:
                options = InstallOptions(entry.agents, replace=True, declared=entry.declared, copy=entry.is_copied)
                stage_install(store, locked, tree, options)
                # Which links are copies on this disk is not a change of the project: all stays as recorded.
                links = locked[entry.name].links
                copies = tuple(copy for copy in entry.copies if copy in links)
                locked[entry.name] = replace(entry, copies=copies, links=links)
            store.commit(store.locked if self._is_locked else locked)
        self.names += (entry.name for entry, _ in batch)
        self.issues += store.issues


def fetch_recorded_tree(
    entry: LockEntry, scope: InstallScope, source: LastOpenSource, limits: Limits, *, refuses: bool = True
) -> InstallTree:
    """Exactly what an entry records, from its source; raises ``LockMismatchError`` when that gives other bytes.

    Raises ``PolicyError`` for a skill that the policy refuses, unless it is only looked at (``refuses=False``).
    """
    if refuses:
        refuse_entry(scope, entry)
    spec = spec_of_entry(entry, scope, ref=entry.commit or entry.ref)
    # No sync can bring what the source does not have any more, so a sync is not the advice.
    advice = f"'prowess update {entry.name} --allow-rollback' takes what it has now"
    # A locked archive is what its digest says, like a commit: a copy of it makes the server needless.
    for kept in source.list_kept_archives(spec):
        with suppress(SkillError):
            tree = read_recorded_tree(kept, entry, spec, limits)
            if tree.digest == entry.digest:
                return tree
    try:
        source_files = source.open_source(spec)
        tree = read_recorded_tree(source_files, entry, spec, limits)
        if entry.kind == "folder":
            # Who locked a plain folder on a system without executable bits has guessed them. What was locked counts.
            files = take_recorded_modes(tree.files, entry.files, has_bits=False)
            tree = replace(tree, files=files)
    except SkillError as error:
        if entry.commit and error.code == "unknown-version":
            commit = entry.commit[:12]
            message = f"{entry.source} does not have the locked commit {commit} of {entry.name} any more: {advice}"
            raise GitError(message, error.path, error.code) from None
        raise error.about(f"{entry.name} from {entry.source}") from error.__cause__
    # The digest is what makes a lock file worth having: a tag that was moved, or a changed archive, ends here.
    if tree.digest != entry.digest:
        was, now = entry.commit or "no commit", source_files.commit or "no commit"
        message = (
            f"{entry.name}: {entry.source} gives other content than the lock file says: "
            f"digest {tree.digest} ({now}), locked {entry.digest} ({was}); {advice}"
        )
        raise LockMismatchError(message, scope.install_folder(entry.name))
    return tree


# -- what differs ------------------------------------------------------------------------------------------------------


def find_unequal(scope: InstallScope, limits: Limits, recorded: LockEntries, *, locked: bool) -> UnequalEntries:
    """Return the entries of ``recorded`` that the disk does not equal, each with how it differs.

    ``locked``: raises ``LockMismatchError`` for an install that somebody edited, and for one that has no source.
    """
    link_folders, placed = LinkFolders(scope), PlacedTrees(scope.base, limits)
    unequal: list[tuple[LockEntry, InstallState]] = []
    for entry in report_steps([*recorded.values()], lambda entry: entry.name):
        differences = [*compare_install(entry, scope, link_folders.path_of_link, limits, placed)]
        state = get_install_state(differences)
        if locked and any(difference.is_edit for difference in differences):
            raise _edited_error(entry, differences)
        if locked and _is_unrestorable(entry, state):
            issue = _unrestorable_issue(entry, state, scope)
            raise LockMismatchError(issue.message, issue.path, issue.code)
        if state != "equal":
            unequal.append((entry, state))
    return unequal


def _edited_error(entry: LockEntry, differences: Sequence[Difference]) -> LockMismatchError:
    """Return the error for an install, or a copy of it, that exists and is not what the lock file says."""
    edits = [difference for difference in differences if difference.is_edit]
    folder = edits[0].folder
    edited = describe_differences([edit for edit in edits if edit.folder == folder])
    return LockMismatchError(f"{entry.name} is not what the lock file says: {edited}", folder)


def find_unrestorable(scope: InstallScope, limits: Limits, recorded: LockEntries) -> list[Issue]:
    """Return a warning for each entry that differs and that no sync can put back, because it has no source."""
    unequal = find_unequal(scope, limits, recorded, locked=False)
    return [_unrestorable_issue(entry, state, scope) for entry, state in unequal if _is_unrestorable(entry, state)]


def _is_unrestorable(entry: LockEntry, state: InstallState) -> bool:
    return is_sourceless(entry) and state in {"missing", "pristine", "edited"}


def _unrestorable_issue(entry: LockEntry, state: InstallState, scope: InstallScope) -> Issue:
    what = {"missing": "is missing", "pristine": "is another version"}.get(state, "was changed by hand")
    message = f"{entry.name} {what}, and the lock file has no source that it could be fetched from"
    return Issue("no-source", entry.name, message, scope.install_folder(entry.name), 0, "warning")


def list_restores(scope: InstallScope, limits: Limits, recorded: LockEntries) -> list[str]:
    """What a locked sync would put back, a line each; nothing is fetched.

    Raises ``LockMismatchError`` for what a locked sync would refuse.
    """
    rows = [
        f"restore {entry.name} as the lock file records it: {_STATE_PHRASES[state]}"
        for entry, state in find_unequal(scope, limits, recorded, locked=True)
    ]
    refuse_unknown_installs(scope, limits, recorded)
    return [*describe_leftovers(scope, find_leftovers(scope, recorded, limits)), *rows]


def refuse_unknown_installs(scope: InstallScope, limits: Limits, recorded: LockEntries) -> None:
    """Raise ``LockMismatchError`` for an install that no lock entry records, and that Prowess did not put there so."""
    for issue in find_unrecorded_installs(scope, recorded, PlacedTrees(scope.base, limits)):
        if issue.code != NOT_SYNCED:
            message = f"{issue.message}, and somebody made or changed it by hand"
            raise LockMismatchError(message, issue.path, "not-in-lock")


def refuse_remaining_differences(scope: InstallScope, limits: Limits, *, changed: bool) -> None:
    """Raise ``LockMismatchError`` when the disk still differs from the lock file after a restoration.

    ``changed`` says that something was put back. Otherwise every entry was found equal a moment ago, and only installs
    that no entry records are looked for.
    """
    locked = read_lock(scope.lock_folder, limits=limits)
    issues = list(
        verify_scope(scope, locked, LinkFolders(scope).path_of_link, limits)
        if changed
        else find_unrecorded_installs(scope, locked, PlacedTrees(scope.base, limits))
    )
    if issues:
        more = f"; and {len(issues) - _MAX_SHOWN} more" if len(issues) > _MAX_SHOWN else ""
        listed = "; ".join(issue.message for issue in issues[:_MAX_SHOWN])
        raise LockMismatchError(f"not everything is as the lock file says: {listed}{more}", issues[0].path)

"""Updates: what the sources of installs have now, put in place of what is installed, unless somebody edited that."""

from __future__ import annotations

import os
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.addresses.skill_ref import SkillRef, check_ref
from prowess.errors import GitError, Issue, LocalEditsError, NotInstalledError, SkillError
from prowess.files.directory import exists
from prowess.files.syscalls import wrap_os_errors
from prowess.install.abilities import OldVersion, list_additions
from prowess.install.agent_links import LinkFolders
from prowess.install.context import parse_refs, require_entry
from prowess.install.entry_source import describe_unreachable, missing_install_error, spec_of_entry
from prowess.install.fetch_source import BATCH_BYTES, LastOpenSource, select_stale_issues
from prowess.install.file_diffs import diff_files
from prowess.install.install_tree import read_recorded_tree, refuse_unloadable, take_recorded_modes, tree_for_entry
from prowess.install.installed_files import compare_files, read_current_files, read_files
from prowess.install.manifest_diff import find_stale_declarations
from prowess.install.manifest_edits import declare_version, edit_manifest
from prowess.install.plan import InstallOptions
from prowess.install.stage import refuse_other_signer, stage_install
from prowess.install.store import open_store, open_store_read_only
from prowess.installed.compare import describe_differences, list_differing
from prowess.installed.scopes import find_copies, is_on_disk, locate_install
from prowess.names import link_name
from prowess.progress_steps import report_steps
from prowess.text.versions import is_range, read_release

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.files.write import NewFile
    from prowess.install.abilities import UpdateAddition
    from prowess.install.context import InstallContext, Refs
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.install_tree import InstallTree
    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope, Location
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry


UpdateStatus = Literal["updated", "current", "edited", "failed", "available", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Update:
    """What came of one update: the commits before and after, the diff, and, when nothing was updated, why."""

    name: str
    status: UpdateStatus
    before: str
    after: str = ""
    diff: str = ""
    why: str = ""
    path: Path | None = None
    additions: tuple[UpdateAddition, ...] = ()
    """What the new version has and the old one has not: skills, scripts, commands, tools."""


_NOTHING_TO_COMPARE = "what the lock file records is neither here nor at its source, so there is no diff"

UpdateOutcome = tuple[Update, tuple["Issue", ...]]
"""What came of one update, and the issues to report with it."""


def update_skills(
    context: InstallContext,
    refs: Refs | None,
    *,
    force: bool,
    dry_run: bool,
    allow_rollback: bool,
    accept_signer: str,
    save: bool,
    location: Location,
) -> tuple[Update, ...]:
    """Update one skill, several, or all when ``refs`` is ``None``; returns what came of each, in their order.

    What keeps one skill from being updated is raised when it is the only one named; else it is its status.
    """
    begin = context.begin_read if dry_run else context.begin_change
    scopes = context.scopes_at(location)
    begin(*scopes)
    run = UpdateRun(
        context.access._replace(allow_rollback=allow_rollback, accepted_signer=accept_signer), force, dry_run
    )
    if refs is None:
        entries = context.list_entries(scopes)
        outcomes = run.update_all([WantedUpdate(scope, entry, entry.ref) for scope, entry in entries])
        context.issues += tuple(issue for _, issues in outcomes for issue in issues)
        return tuple(update for update, _ in outcomes)
    if not isinstance(refs, str | SkillRef):
        return _update_several(context, parse_refs(refs), scopes, run, save=save)
    ref = parse_refs(refs)[0]
    scope, _ = context.find_known_install(ref, scopes)
    entry = require_entry(context.read_lock(scope), scope, ref.full_name)
    outcome = run.update_one(_want_version(scope, entry, ref.version))
    _report_outcome(context, scope, entry, ref.version, outcome, save=save)
    return (outcome[0],)


def _update_several(
    context: InstallContext, refs: Sequence[SkillRef], scopes: Sequence[InstallScope], run: UpdateRun, *, save: bool
) -> tuple[Update, ...]:
    """Update the named skills; one that is not installed has the status ``"failed"``."""
    # Each lock file is read once: to read it for each of thousands of skills would be quadratic.
    recorded = {scope: context.read_lock(scope) for scope in scopes}
    known: dict[int, tuple[InstallScope, LockEntry]] = {}
    updates: dict[int, Update] = {}
    for index, ref in enumerate(refs):
        try:
            scope, _ = context.find_known_install(ref, scopes)
            known[index] = scope, require_entry(recorded[scope], scope, ref.full_name)
        except SkillError as error:
            updates[index] = Update(ref.full_name, "failed", "", why=error.message)
    outcomes = run.update_all([_want_version(*install, refs[index].version) for index, install in known.items()])
    for (index, (scope, entry)), outcome in zip(known.items(), outcomes, strict=True):
        updates[index] = outcome[0]
        _report_outcome(context, scope, entry, refs[index].version, outcome, save=save)
    return tuple(updates[index] for index in range(len(refs)))


class WantedUpdate(NamedTuple):
    """An install, as its lock file records it, and the version of its source that is asked for."""

    scope: InstallScope
    entry: LockEntry
    ref: str

    @property
    def baseline(self) -> LockEntry:
        """The entry to compare with for a rollback: whoever names another version may go back with it."""
        return self.entry if self.ref == self.entry.ref else replace(self.entry, ref=self.ref, commit="")


def _want_version(scope: InstallScope, entry: LockEntry, version: str) -> WantedUpdate:
    """Return the update to another version, or to what the version of the entry is now where ``version`` is empty."""
    return WantedUpdate(scope, entry, check_ref(version) if version else entry.ref)


def _report_outcome(
    context: InstallContext,
    scope: InstallScope,
    entry: LockEntry,
    version: str,
    outcome: UpdateOutcome,
    *,
    save: bool,
) -> None:
    """Add the issues of an update, and have the manifest declare the version that the skill was moved to."""
    update, issues = outcome
    context.issues += issues
    if not version or update.status != "updated":
        return
    if save and entry.declared:
        context.issues += edit_manifest(
            scope, lambda manifest: declare_version(manifest, scope, entry, version), context.limits
        )
    context.issues += tuple(find_stale_declarations(scope, [entry], context.limits))


# -- fetching ----------------------------------------------------------------------------------------------------------


class _PendingUpdate(NamedTuple):
    """What the source of an entry has now, fetched and not yet in place."""

    wanted: WantedUpdate
    tree: InstallTree
    issues: tuple[Issue, ...]
    locked_files: tuple[NewFile, ...] | None = None
    """The files that the lock file records, where these are compared, and not the disk; ``None`` where nobody has
    them."""

    @property
    def scope(self) -> InstallScope:
        return self.wanted.scope

    @property
    def entry(self) -> LockEntry:
        return self.wanted.entry


class UpdateRun(NamedTuple):
    """One command that updates: how it reaches sources, and whether it overwrites edits, or changes nothing."""

    access: SourceAccess
    force: bool = False
    dry_run: bool = False
    compares_lock: bool = False
    """Whether new versions are compared with what the lock file records, whatever is on the disk."""
    store: Store | None = None
    """Where everything is staged; ``None`` for the stores of the scopes."""

    def update_one(self, wanted: WantedUpdate) -> UpdateOutcome:
        """Update one install; raises ``SkillError`` when something keeps it from being updated."""
        with LastOpenSource(self.access) as source, LastOpenSource(self.access) as locked:
            fetched = self._fetch_newer(wanted, source, locked, self.access)
        return self._put_in_place([fetched], alone=True)[0] if isinstance(fetched, _PendingUpdate) else fetched

    def update_all(self, updates: Sequence[WantedUpdate]) -> list[UpdateOutcome]:
        """Update many installs; returns what came of each, in their order. What keeps one from it is its status."""
        outcomes: dict[int, UpdateOutcome] = {}
        waiting: dict[int, _PendingUpdate] = {}
        waiting_bytes = 0
        access = self.access.for_entries((wanted.scope, wanted.baseline) for wanted in updates)
        # Entries of one source follow each other, so that each source is opened once. What they gave is put in place
        # together: to open the store, which reads the lock file, for each of thousands of entries would be quadratic.
        ordered = sorted(enumerate(updates), key=lambda row: (row[1].entry.source, row[1].ref))
        with LastOpenSource(access) as source, LastOpenSource(access) as locked:
            for index, wanted in report_steps(ordered, lambda row: row[1].entry.name):
                try:
                    fetched = self._fetch_newer(wanted, source, locked, access)
                except SkillError as error:
                    fetched = _failed_outcome(wanted.entry, error)
                if not isinstance(fetched, _PendingUpdate):
                    outcomes[index] = fetched
                    continue
                waiting[index] = fetched
                waiting_bytes += sum(len(file.content) for file in fetched.tree.files)
                if waiting_bytes > BATCH_BYTES:
                    outcomes |= self._apply_waiting(waiting)
                    waiting, waiting_bytes = {}, 0
        outcomes |= self._apply_waiting(waiting)
        return [outcomes[index] for index in range(len(updates))]

    def _fetch_newer(
        self, wanted: WantedUpdate, source: LastOpenSource, locked: LastOpenSource, access: SourceAccess
    ) -> _PendingUpdate | UpdateOutcome:
        """What the source of an entry has now, or the outcome when there is nothing to be put in place.

        A source that went back is not followed: the status is ``"current"``, with the issue ``rolled-back``. When a
        site does not answer, nothing is taken: the status is ``"failed"``, with the issue ``stale-index``. ``locked``
        opens the commit that the lock file records.
        """
        scope, entry, ref = wanted
        if entry.kind == "adopted":
            return Update(entry.name, "current", entry.commit), ()
        spec = spec_of_entry(entry, scope, ref=ref)
        with wrap_os_errors():
            source_files = source.open_source(spec)
            rollback = find_rollback(wanted.baseline, source_files.commit, spec, access)
            if rollback is not None:
                why = "its source went back, and is not followed"
                return Update(entry.name, "current", entry.commit, why=why), (rollback,)
            stale = tuple(select_stale_issues(source_files.issues))
            unreachable = describe_unreachable(entry, stale)
            if unreachable:
                return Update(entry.name, "failed", entry.commit, why=unreachable), stale
            tree = tree_for_entry(entry, source_files, spec, access.limits)
            refuse_unloadable([tree])
            is_compared = self.compares_lock and tree.digest != entry.digest
            files = _read_locked_files(scope, entry, locked, access.limits) if is_compared else None
        return _PendingUpdate(wanted, tree, stale, files)

    def _apply_waiting(self, waiting: Mapping[int, _PendingUpdate]) -> dict[int, UpdateOutcome]:
        """Put updates in place, one scope after the other; returns the outcome of each number."""
        outcomes: dict[int, UpdateOutcome] = {}
        for scope in dict.fromkeys(pending.scope for pending in waiting.values()):
            in_scope = {index: pending for index, pending in waiting.items() if pending.scope == scope}
            try:
                applied = self._put_in_place([*in_scope.values()])
            except SkillError as error:  # an error of the store itself: nothing was put in place
                applied = [_failed_outcome(pending.entry, error) for pending in in_scope.values()]
            outcomes |= dict(zip(in_scope, applied, strict=True))
        return outcomes

    def _put_in_place(self, updates: Sequence[_PendingUpdate], *, alone: bool = False) -> list[UpdateOutcome]:
        """Put updates of one scope in place, all at once; what keeps one from being updated is its status.

        With ``alone`` there is one update, and what keeps it from being updated is raised.
        """
        outcomes: list[UpdateOutcome] = []
        open_scope = open_store_read_only if self.dry_run else open_store
        opened = open_scope(updates[0].scope, self.access.limits) if self.store is None else nullcontext(self.store)
        with wrap_os_errors(), opened as store:
            locked = dict(store.locked)
            for pending in updates:
                before, staged_count = locked, store.staged_count
                try:
                    current = _CurrentInstall(store, pending, self)
                    # Of thousands of installs, most are current: a copy of the entries for each would be quadratic.
                    locked = dict(locked) if current.is_due else locked
                    update, issues = current.stage_update(locked, force=self.force, dry_run=self.dry_run)
                    # The tree of a whole source repeats the issues of the source.
                    outcomes.append((update, tuple(dict.fromkeys((*pending.issues, *issues)))))
                except SkillError as error:
                    if alone:
                        raise
                    store.discard_staged_moves(staged_count)  # the others must not commit a part of this one
                    locked = before
                    outcomes.append(_failed_outcome(pending.entry, error))
            if not self.dry_run:
                store.commit(locked)
                # The store's own issues, such as backups, are about all updates together: the last one carries them.
                update, issues = outcomes[-1]
                outcomes[-1] = update, tuple(dict.fromkeys((*issues, *store.issues)))
        return outcomes


def _failed_outcome(entry: LockEntry, error: SkillError) -> UpdateOutcome:
    """Return the outcome for an entry that an error keeps from being updated."""
    status: UpdateStatus = "edited" if isinstance(error, LocalEditsError) else "failed"
    return Update(entry.name, status, entry.commit, why=error.message), ()


def _read_locked_files(
    scope: InstallScope, entry: LockEntry, source: LastOpenSource, limits: Limits
) -> tuple[NewFile, ...] | None:
    """Return the files that an entry records, from the disk or from its commit; ``None`` where neither has them."""
    folders = LinkFolders(scope)
    if is_on_disk(entry, scope) and not compare_files(entry, folders, limits):
        return read_current_files(entry, folders, limits)
    if not entry.commit:
        return None
    spec = spec_of_entry(entry, scope, ref=entry.commit)
    with suppress(SkillError):
        tree = read_recorded_tree(source.open_source(spec), entry, spec, limits)
        return tree.files if tree.digest == entry.digest else None
    return None


# -- putting in place --------------------------------------------------------------------------------------------------


class _CurrentInstall:
    """An install as it is now, with what somebody changed by hand, and the update that waits for it."""

    def __init__(self, store: Store, pending: _PendingUpdate, run: UpdateRun) -> None:
        """Raises ``NotInstalledError`` when the lock file has no such install, or its files are missing.

        With ``allow_rollback`` they may be missing, since no sync can bring them when their source has gone back.
        """
        name = pending.entry.name
        entry = store.locked.get(name)
        if entry is None:
            raise NotInstalledError(f"skill {name} is not installed")
        self._store, self._entry, self._pending = store, entry, pending
        self._place = locate_install(entry, store.scope, name)
        self._compares_lock = run.compares_lock
        self._accepted_signer = run.access.accepted_signer
        self._is_missing = not run.compares_lock and not (
            find_copies(entry, store.scope) if entry.is_copied else exists(self._place)
        )
        if self._is_missing and not run.access.allow_rollback:
            raise missing_install_error(name, self._place)
        is_read = not self._is_missing and not run.compares_lock
        differences = compare_files(entry, store.link_folders, store.limits, store.placed) if is_read else []
        self._edits = [difference for difference in differences if difference.is_edit]
        is_same = pending.tree.digest == entry.digest and pending.tree.spec.ref == entry.ref
        self._is_as_locked = not differences and not self._is_missing
        self.is_due = not self._is_as_locked or not is_same
        """True when the update would change files, or the version that is recorded."""

    def stage_update(self, locked: LockEntries, *, force: bool, dry_run: bool) -> UpdateOutcome:
        """Stage the update, and change its entry in ``locked``; a dry run only says what would be done.

        Raises ``LocalEditsError`` for an edited install, unless ``force``.
        """
        entry, commit = self._entry, self._pending.tree.commit
        refuse_other_signer(entry, self._pending.tree, accepted=self._accepted_signer)
        if not self.is_due:
            if not dry_run:  # a newer commit of equal files
                locked[entry.name] = replace(entry, commit=commit, signer=self._pending.tree.signer)
            return Update(entry.name, "current", entry.commit, commit, path=Path(self._place)), ()
        tree = self._without_taken_skills(self._pending.tree, locked)
        if dry_run:
            return self._make_update("edited" if self._edits else "available", tree), ()
        if self._edits and not force:
            raise LocalEditsError(f"{entry.name} was changed by hand: {describe_differences(self._edits)}", self._place)
        # The diff is made first: it compares with the files that staging is about to replace.
        update = self._make_update("updated", tree)
        options = InstallOptions(
            entry.agents,
            copy=entry.is_copied,
            declared=entry.declared,
            declared_agents=tuple(agent for agent in entry.agents if agent not in entry.extra_agents),
            # Only the install itself gives way: a skill that another install took over stays with that install.
            replaceable=frozenset((entry.name,)),
            accepted_signer=self._accepted_signer,
        )
        is_as_locked = self._is_as_locked and not entry.is_copied
        issues = stage_install(self._store, locked, tree, options, is_as_locked=is_as_locked)
        return update, (*tree.issues, *issues)

    def _without_taken_skills(self, tree: InstallTree, locked: LockEntries) -> InstallTree:
        """The tree without the skills that another install has: an update of this one does not take them back."""
        link_folders, taken = self._store.link_folders, self._store.taken_names

        def is_free(skill: str) -> bool:
            path = os.path.join(link_folders.shared, link_name(skill))
            holder = taken.find_link_holder(link_folders.to_lock_path(path), locked)
            return holder is None or holder.name == self._entry.name

        return replace(tree, skills={skill: folder for skill, folder in tree.skills.items() if is_free(skill)})

    def _make_update(self, status: UpdateStatus, tree: InstallTree) -> Update:
        limits, entry = self._store.limits, self._entry
        old, new, why = self._read_sides(tree)
        diff = "" if old is None else diff_files(old, new, limits)
        before = {file.path: file for file in old or ()}
        changed = {file.path for file in new if before.get(file.path) != file}
        # Files that were not compared are as the lock file has them.
        known = OldVersion(entry.skills, {*entry.files, *before}, old or ())
        additions = list_additions(tree, changed, known, limits)
        if not diff and not why and tree.spec.ref != entry.ref:
            why = f"the same content, as {tree.spec.ref}"
        return Update(entry.name, status, entry.commit, tree.commit, diff, why, Path(self._place), additions)

    def _read_sides(self, tree: InstallTree) -> tuple[Sequence[NewFile] | None, Sequence[NewFile], str]:
        """Return the old and the new files to compare, and why the old ones are unknown, which ``None`` stands for."""
        limits, entry = self._store.limits, self._entry
        if self._is_missing:
            return (), tree.files, ""
        if self._compares_lock:
            if tree.digest == entry.digest:
                return tree.files, tree.files, ""
            locked_files = self._pending.locked_files
            return locked_files, tree.files, "" if locked_files is not None else _NOTHING_TO_COMPARE
        if not self._is_as_locked or entry.is_copied:
            return read_current_files(entry, self._store.link_folders, limits), tree.files, ""
        # The disk is as it is recorded: of thousands of files, only those that change are read and compared.
        differing = set(list_differing(entry.files, tree.hashes))
        old = take_recorded_modes(read_files(self._place, sorted(differing), limits), entry.files)
        return old, [file for file in tree.files if file.path in differing], ""


_SHOWN_DIGITS = 12


def find_rollback(entry: LockEntry, commit: str, spec: SourceSpec, access: SourceAccess) -> Issue | None:
    """Return the warning that the version of an entry is ``commit`` now, which is not newer than the installed commit.

    ``None`` when the version went forward, without a commit to compare, or when going back is allowed. Raises
    ``GitError`` when the history cannot be fetched.
    """
    # An entry without a commit was moved to another version by a person. Only git has a history.
    if access.allow_rollback or not entry.commit or commit == entry.commit or spec.kind != "git":
        return None
    version = f"{spec.ref or 'the default branch'} of {entry.source}"
    remote = access.remote_for(spec)
    try:
        if is_range(spec.ref) and _is_later_release(remote.list_tags(), commit, entry.commit):
            return None
        if remote.has_ancestor(commit, entry.commit):
            return None
    except GitError as error:
        # Not knowing counts as an error: a server could hide a rollback by refusing to give its history.
        raise error.about(f"it is unknown whether {version} went back") from error.__cause__
    message = (
        f"{version} leads to {commit[:_SHOWN_DIGITS]}, whose history does not hold "
        f"{entry.commit[:_SHOWN_DIGITS]}, which is installed: "
        "it went back, or was rewritten"
    )
    return Issue("rolled-back", entry.name, message, "", 0, "warning")


def _is_later_release(tags: Mapping[str, str], commit: str, installed: str) -> bool:
    """Return whether a commit has a tag with later numbers than any tag of the installed commit."""
    releases: dict[str, tuple[int, ...]] = {}
    for tag, tagged in tags.items():
        releases[tagged] = max(releases.get(tagged, ()), read_release(tag))
    return bool(releases.get(installed)) and releases[installed] < releases.get(commit, ())

"""Newer versions: whether there are any, what they change, and what someone changed by hand."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue, LocalEditsError, NotInstalledError, SkillError
from prowess.files.directory import exists
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.copied_installs import read_copies
from prowess.install.entry_source import missing_install_error, spec_of_entry
from prowess.install.fetch_source import BATCH_BYTES, STALE_CODES, LastOpenSource
from prowess.install.file_diffs import diff_files
from prowess.install.rollback import find_rollback
from prowess.install.stage import InstallOptions, InstallRequest, stage_install
from prowess.install.store import open_store, open_store_read_only
from prowess.install.system_errors import wrap_os_errors
from prowess.install.tree import refuse_unloadable, trees_for, with_skill_files_only
from prowess.lockfile.compare import compare_folder, compare_install, describe_differences
from prowess.lockfile.scopes import find_copies, locate_install
from prowess.progress_steps import report_steps
from prowess.spec.skill_ref import check_version, is_commit, is_short_commit, link_name
from prowess.spec.source_spec import with_skills
from prowess.spec.versions import find_later_version, has_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.install.agent_links import LinkFolders
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.store import Store
    from prowess.install.tree import InstallTree, SourceFiles
    from prowess.limits import Limits
    from prowess.lockfile.compare import Difference
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.spec.source_spec import SourceSpec

UpdateStatus = Literal["updated", "current", "edited", "failed", "available"]


@dataclass(frozen=True, slots=True)
class Update:
    """What came of one update: the commits before and after, what changes, and why not if it did not."""

    name: str
    status: UpdateStatus
    before: str
    after: str = ""
    diff: str = ""
    why: str = ""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Outdated:
    """An install whose source has something newer, or could not be asked whether it has.

    It names the version asked for, the commit here and the one there.
    """

    name: str
    ref: str
    current: str
    newest: str
    newer: str = ""
    """The newest tag that is written like the version asked for (``v1.2.0`` for ``v1.0.0``); it takes naming it."""
    status: Literal["outdated", "failed"] = "outdated"
    """``"failed"``: the source could not be asked, so nobody knows of anything newer, and ``newest`` is empty."""
    why: str = ""
    """Why the source could not be asked."""


def with_version(entry: LockEntry, version: str) -> LockEntry:
    """The entry, moved to another version of its source.

    An entry that is moved has no commit: whoever names another version may go back with it.
    """
    moved = replace(entry, ref=check_version(version), commit="") if version else entry
    return entry if moved.ref == entry.ref else moved


def try_find_newer(entry: LockEntry, scope: InstallScope, reach: SourceAccess) -> Iterator[Outdated | Issue]:
    """What ``find_newer`` yields; a source that cannot be asked is an ``Outdated`` that ``failed``, and an issue."""
    try:
        yield from find_newer(entry, scope, reach)
    except SkillError as error:
        why = f"the source of {entry.name} could not be asked: {error.message}"
        yield Issue(error.code, entry.name, why, error.path, 0, "warning")
        yield _failed_check(entry, why)


def _failed_check(entry: LockEntry, why: str) -> Outdated:
    return Outdated(entry.name, entry.ref, entry.commit or entry.digest, "", status="failed", why=why)


def find_newer(entry: LockEntry, scope: InstallScope, reach: SourceAccess) -> Iterator[Outdated | Issue]:
    """What the source of an entry has that is not here; a commit that was asked for by its id never gets old.

    An issue says that the source went back behind what is here, which is nothing newer, or that it is away and only
    what it had before is known; an ``Outdated`` that ``failed`` goes with the latter. Raises ``SkillError`` when the
    source cannot be asked.
    """
    if entry.kind == "adopted" or _is_pinned(entry):
        return
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    tag = ""
    back: list[Issue] = []
    if spec.kind == "git":
        remote = reach.remote_for(spec)
        newest, current = remote.resolve_ref(entry.ref), entry.commit
        tags = remote.list_tags() if has_numbers(entry.ref) else ()
        tag = find_later_version(entry.ref, tags) if entry.ref in tags else ""
        issue = find_rollback(entry, newest, spec, reach)
        if issue is not None:
            newest, back = current, [issue]
    else:
        with wrap_os_errors(), reach.open_source(spec) as bundle:
            newest, current = tree_for_entry(entry, bundle, spec, reach.limits).digest, entry.digest
            back += _stale_issues(bundle)
    yield from back
    away = _unreachable_reason(entry, back)
    if away:
        yield _failed_check(entry, away)
    elif newest != current or tag:
        yield Outdated(entry.name, entry.ref, current, newest, tag)


def _is_pinned(entry: LockEntry) -> bool:
    """Whether an entry names its commit by its id, or by the first digits of it (and no branch of such a name)."""
    return is_commit(entry.ref) or (is_short_commit(entry.ref) and entry.commit.startswith(entry.ref))


def _stale_issues(bundle: SourceFiles) -> list[Issue]:
    """The issues that a site went back, or is away, and that what it had before is used."""
    return [issue for issue in bundle.issues if issue.code in STALE_CODES]


def _unreachable_reason(entry: LockEntry, issues: Sequence[Issue]) -> str:
    """The sentence that a site is away and only an old copy of its index is here; ``""`` where it answered."""
    away = next((issue for issue in issues if issue.code == "stale-index"), None)
    return "" if away is None else f"the source of {entry.name} could not be asked: {away.message}"


class PendingUpdate(NamedTuple):
    """What the source of an entry has now, to be put in place of what is here."""

    scope: InstallScope
    entry: LockEntry
    tree: InstallTree
    request: InstallRequest
    issues: tuple[Issue, ...]


UpdateOutcome = tuple[Update, tuple[Issue, ...]]
"""What came of one update, and what is worth saying about it."""


def update_all(
    entries: Sequence[tuple[InstallScope, LockEntry]],
    reach: SourceAccess,
    force: bool,  # noqa: FBT001 - as the caller said
    dry_run: bool,  # noqa: FBT001
) -> list[UpdateOutcome]:
    """Bring many entries to what their sources have now, in their order; what keeps one from it is its status.

    Each source is opened once, and what came of all of them is put in place together: to do so for each of thousands
    would go through the sources and the lock file as often.
    """
    outcomes: dict[int, UpdateOutcome] = {}
    waiting: dict[int, PendingUpdate] = {}
    size = 0
    ordered = sorted(enumerate(entries), key=lambda row: (row[1][1].source, row[1][1].ref))
    with LastOpenSource(reach) as source:
        for at, (scope, entry) in report_steps(ordered, lambda row: row[1][1].name):
            try:
                came = fetch_newer(scope, entry, source, reach)
            except SkillError as error:
                came = _failed_outcome(entry, error)
            if not isinstance(came, PendingUpdate):
                outcomes[at] = came
                continue
            waiting[at] = came
            size += sum(len(file.content) for file in came.tree.files)
            if size > BATCH_BYTES:
                outcomes |= _apply_all(waiting, reach.limits, force, dry_run)
                waiting, size = {}, 0
    outcomes |= _apply_all(waiting, reach.limits, force, dry_run)
    return [outcomes[at] for at in range(len(entries))]


def _failed_outcome(entry: LockEntry, error: SkillError) -> UpdateOutcome:
    """The status of an entry that something keeps from being updated."""
    status: UpdateStatus = "edited" if isinstance(error, LocalEditsError) else "failed"
    return Update(entry.name, status, entry.commit, why=error.message), ()


def _apply_all(
    waiting: Mapping[int, PendingUpdate],
    limits: Limits,
    force: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
) -> dict[int, UpdateOutcome]:
    """Put what came in place, scope by scope; what came of each, by its number."""
    outcomes: dict[int, UpdateOutcome] = {}
    for scope in dict.fromkeys(one.scope for one in waiting.values()):
        mine = {at: one for at, one in waiting.items() if one.scope == scope}
        try:
            came = apply_updates(scope, [*mine.values()], limits, force, dry_run)
        except SkillError as error:  # of the store itself: nothing was put in place
            came = [_failed_outcome(one.entry, error) for one in mine.values()]
        outcomes |= dict(zip(mine, came, strict=True))
    return outcomes


def update_one(
    scope: InstallScope,
    entry: LockEntry,
    reach: SourceAccess,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
) -> UpdateOutcome:
    """Fetch what the source of an entry has now, and put it in place of what is here."""
    with LastOpenSource(reach) as source:
        came = fetch_newer(scope, entry, source, reach)
    if not isinstance(came, PendingUpdate):
        return came
    return apply_updates(scope, [came], reach.limits, force, dry_run, alone=True)[0]


def fetch_newer(
    scope: InstallScope, entry: LockEntry, source: LastOpenSource, reach: SourceAccess
) -> PendingUpdate | UpdateOutcome:
    """What the source of an entry has now, or what came of it where there is nothing to be put in place.

    A source that went back is not followed: the update is then ``current``, with the issue ``rolled-back``. Of a site
    that is away nothing is taken: the update ``failed``, with the issue ``stale-index``.
    """
    if entry.kind == "adopted":
        return Update(entry.name, "current", entry.commit), ()
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    with wrap_os_errors():
        bundle = source.open_source(spec)
        issue = find_rollback(entry, bundle.commit, spec, reach)
        if issue is not None:
            return Update(entry.name, "current", entry.commit, why="its source went back, and is not followed"), (
                issue,
            )
        old_news = _stale_issues(bundle)
        away = _unreachable_reason(entry, old_news)
        if away:
            return Update(entry.name, "failed", entry.commit, why=away), tuple(old_news)
        tree = tree_for_entry(entry, bundle, spec, reach.limits)
        refuse_unloadable([tree], spec)
        # Only the install itself gives way: what another one took over stays with that.
        wishes = InstallOptions(entry.agents, replaceable=frozenset((entry.name,)), copy=entry.is_copied)
        arrival = InstallRequest(spec, bundle.commit, wishes)
    return PendingUpdate(scope, entry, tree, arrival, tuple(old_news))


def apply_updates(
    scope: InstallScope,
    newer: Sequence[PendingUpdate],
    limits: Limits,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
    *,
    alone: bool = False,
) -> list[UpdateOutcome]:
    """Put what came for one scope in place, all of it together; what keeps one of them from it is its status.

    ``alone``: there is one, and what keeps it from being updated is raised.
    """
    outcomes: list[UpdateOutcome] = []
    with wrap_os_errors(), (open_store_read_only if dry_run else open_store)(scope, limits) as store:
        after = dict(store.locked)
        for one in newer:
            before, staged = dict(after), store.staged_count
            try:
                here = _CurrentInstall(store, one.entry.name)
                update, issues = here.stage_update(one.tree, one.request, after, force=force, dry_run=dry_run)
                # A whole tree has the issues of its source too.
                outcomes.append((update, tuple(dict.fromkeys((*one.issues, *issues)))))
            except SkillError as error:
                if alone:
                    raise
                store.discard_staged(staged)  # what of it was staged already is none of the others'
                after = before
                outcomes.append(_failed_outcome(one.entry, error))
        if not dry_run:
            store.commit(after)
            last, issues = outcomes[-1]  # the store tells what it met, such as backups, of all of them together
            outcomes[-1] = last, tuple(dict.fromkeys((*issues, *store.issues)))
    return outcomes


class _CurrentInstall:
    """An install as it is now, with what someone changed by hand."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        now = store.locked.get(name)
        self._place = locate_install(now, store.scope, name)
        if now is None:
            raise NotInstalledError(f"skill {name} is not installed")
        if not (find_copies(now, store.scope) if now.is_copied else exists(self._place)):
            raise missing_install_error(name, self._place)
        self._entry = now
        self._edits = find_edits(now, store.scope, store.link_folders, store.limits)

    def stage_update(
        self, tree: InstallTree, arrival: InstallRequest, locked: LockEntries, *, force: bool, dry_run: bool
    ) -> tuple[Update, tuple[Issue, ...]]:
        """Stage a tree in place of it, unless there is a reason not to; ``locked`` becomes what will be recorded."""
        tree = self._leave_out_taken(tree)
        same = tree.digest == self._entry.digest and arrival.spec.ref == self._entry.ref
        if dry_run:
            return self._make_update("edited" if self._edits else "current" if same else "available", tree, arrival), ()
        if same and not self._edits:
            locked[self._entry.name] = replace(self._entry, commit=arrival.commit)  # the same bytes at a newer commit
            return self._make_update("current", tree, arrival), ()
        if self._edits and not force:
            raise LocalEditsError(
                f"{self._entry.name} was changed by hand: {describe_differences(self._edits)}", self._place
            )
        said = self._make_update("updated", tree, arrival)
        wishes = arrival.options._replace(declared=self._entry.declared)
        _, issues = stage_install(self._store, locked, tree, arrival._replace(options=wishes))
        return said, (*tree.issues, *issues)

    def _leave_out_taken(self, tree: InstallTree) -> InstallTree:
        """The tree without the skills that another install has, which it does not lose to an update of this one."""
        landings, taken = self._store.link_folders, self._store.taken_names

        def is_free(skill: str) -> bool:
            path = os.path.join(landings.shared, link_name(skill))
            return taken.find_link_holder(landings.to_lock_path(path)) in {"", self._entry.name}

        return tree._replace(skills={skill: folder for skill, folder in tree.skills.items() if is_free(skill)})

    def _make_update(self, status: UpdateStatus, tree: InstallTree, arrival: InstallRequest) -> Update:
        diff = diff_files(self._read_files(), tree.files, self._store.limits)
        renamed = "" if diff or arrival.spec.ref == self._entry.ref else f"the same content, as {arrival.spec.ref}"
        return Update(self._entry.name, status, self._entry.commit, arrival.commit, diff, renamed, Path(self._place))

    def _read_files(self) -> Sequence[NewFile]:
        """What is installed, as it is now."""
        if self._entry.is_copied:
            return read_copies(self._entry, self._store.link_folders, self._store.limits)
        return [NewFile(*row) for row in read_tree(self._place, self._store.limits).files]


def find_edits(entry: LockEntry, scope: InstallScope, landings: LinkFolders, limits: Limits) -> list[Difference]:
    """How an install differs from the lock file: its folder, or its copies where these are it.

    A copy that is missing as a whole is no edit.
    """
    if not entry.is_copied:
        return compare_folder(entry.files, scope.install_folder(entry.name), limits)
    differences = compare_install(entry, scope, landings.path_of_link, limits)
    return [difference for difference in differences if difference.is_edit]


def tree_for_entry(entry: LockEntry, bundle: SourceFiles, spec: SourceSpec, limits: Limits) -> InstallTree:
    """The tree that takes an entry's place, out of a newer version: a chosen skill may have moved meanwhile."""
    moved = entry.select and not any(path.startswith(f"{entry.subpath}/") for path in bundle.paths)
    wanted = spec if not moved or not entry.subpath else _select_by_name(spec, entry.select)
    tree = trees_for(bundle, wanted, limits)[0]
    tree = with_skill_files_only(tree) if entry.is_copied else tree
    return tree._replace(name=entry.name, select=entry.select)


def _select_by_name(spec: SourceSpec, name: str) -> SourceSpec:
    return with_skills(replace(spec, subpath=""), (name,))

"""Sync: the lock file made to say what the manifest declares, and the disk made equal to the lock file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prowess.errors import BusyError, Issue, PolicyError, SkillError
from prowess.files.syscalls import wrap_os_errors
from prowess.install.agent_links import LinkFolders, choose_preset_agents, find_present_agents
from prowess.install.apply_plan import install_trees, to_installed_skill
from prowess.install.context import parse_refs, require_entry
from prowess.install.entry_source import is_sourceless
from prowess.install.git_attributes import update_attributes
from prowess.install.install_tree import trees_for
from prowess.install.manifest import declared_places, load_manifest, read_declarations
from prowess.install.manifest_diff import (
    agents_linked_by_hand,
    compare_manifest,
    find_claimed,
    list_manifest_changes,
    may_give_way,
    refuse_manifest_diff,
    with_declarations,
)
from prowess.install.plan import InstallOptions
from prowess.install.remove import remove_installs
from prowess.install.restore import (
    Restoration,
    find_unequal,
    find_unrestorable,
    list_restores,
    refuse_remaining_differences,
    refuse_unknown_installs,
)
from prowess.install.store import Disposal, LockOnlyStore, open_store
from prowess.install.update import Update, UpdateRun, WantedUpdate
from prowess.install.verify import describe_leftovers, find_leftovers, find_lost_lock, stage_leftovers
from prowess.installed.compare import NOT_SYNCED, compare_folder, find_unrecorded_installs, verify_scope
from prowess.installed.journal_format import interrupted_error
from prowess.installed.placed import PlacedTrees, digest_parts, name_copy
from prowess.installed.policy_check import find_refusals
from prowess.installed.scopes import is_on_disk
from prowess.lockfile.read import COPY_MODE
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.install.context import InstallContext, Refs
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.install_tree import InstallTree
    from prowess.install.manifest import Declaration
    from prowess.install.store import Store
    from prowess.install.update import UpdateStatus
    from prowess.installed.scopes import InstalledSkill, InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry


SURPLUS_CODES = frozenset(("declared-no-more", "not-in-lock"))
"""The codes of the installs that nothing asks for; only a sync that may remove takes them away."""


def sync_scope(
    context: InstallContext, scope: InstallScope, *, locked: bool, removes: bool
) -> tuple[InstalledSkill, ...]:
    """Install what the manifest declares, and put back what is not as the lock file says; returns what was installed.

    ``Installer.sync`` describes ``locked`` and ``removes``. What fails does not stop the rest: the first error is
    raised at the end.
    """
    context.begin_change(scope, keep_lock=locked)
    declared = read_declarations(scope.lock_folder, context.limits)
    recorded = context.read_lock(scope)
    diff = compare_manifest(declared, recorded, scope)
    if locked and diff:
        refuse_manifest_diff(diff, recorded, scope)
    # One state of each repository for the whole sync: declarations and entries often share repositories.
    access = context.access.for_entries((scope, entry) for entry in recorded.values())
    agents, chosen = choose_agents(context, scope, diff.missing, recorded)
    context.issues += chosen
    run = DeclarationRun(context, scope, access, declared or (), agents, removes)
    installed = run.install_declarations(diff.missing)
    restoration = Restoration(scope, access, locked=locked)
    with wrap_os_errors():
        # Before anything is put back: what the manifest declares no more need not be fetched again.
        if not locked:
            context.issues += _finish_manifest(scope, declared, context.limits, removes=removes and not run.errors)
        # A locked sync has not changed the lock file, which takes long to parse when it records thousands of skills.
        current = recorded if locked else context.read_lock(scope)
        # All are compared before the first is changed: a locked sync refuses before it changes anything.
        unequal = find_unequal(scope, context.limits, current, locked=locked)
        if locked:
            refuse_unknown_installs(scope, context.limits, current)
        # Before anything is fetched: what was revoked has to go, whether or not a source answers.
        context.issues += _remove_leftovers(scope, current, context.limits, locked=locked)
        restoration.restore_all(unequal)
        for issue in _find_refused(scope, current):
            if locked:
                raise PolicyError(issue.message, issue.path, issue.code)
            context.issues += (issue,)
        if locked:
            refuse_remaining_differences(scope, context.limits, changed=bool(restoration.names))
        _record_equal_installs(scope, current, {entry.name for entry, _ in unequal}, context.limits)
    context.issues += (*run.issues, *restoration.issues)
    if not locked:
        context.issues += update_attributes(scope, {}, current, context.limits)
    after = context.read_lock(scope) if restoration.names else {}
    installed += (to_installed_skill(scope, name, after) for name in restoration.names)
    errors = [*run.errors, *restoration.errors]
    if errors:
        raise summarize_errors(errors, installed)
    return tuple(installed)


def _remove_leftovers(
    scope: InstallScope, locked_entries: LockEntries, limits: Limits, *, locked: bool
) -> tuple[Issue, ...]:
    """Remove what Prowess put here and no lock entry records any more; returns an issue for each install."""
    leftovers = find_leftovers(scope, locked_entries, limits)
    if not leftovers:
        return ()
    lost_lock = find_lost_lock(scope, leftovers)
    with open_store(scope, limits, keep_lock=locked) as store:
        # Looked for again: only now does nobody else change the scope.
        stage_leftovers(store, find_leftovers(scope, store.locked, limits))
        store.commit(store.locked)
        return (*lost_lock, *store.issues)


def _find_refused(scope: InstallScope, locked: LockEntries) -> Iterator[Issue]:
    """Yield a warning for each install on the disk that the policy refuses; one that is not here is not fetched."""
    for name, error in find_refusals(scope, locked).items():
        if is_on_disk(locked[name], scope):
            yield Issue(error.code, name, error.message, scope.install_folder(name), 0, "warning")


def _record_equal_installs(scope: InstallScope, locked: LockEntries, unequal: set[str], limits: Limits) -> None:
    """Record the installs that are as the lock file says, also where a cache or another program brought them."""
    equal = {
        name: entry
        for name, entry in locked.items()
        if name not in unequal and not is_sourceless(entry) and not entry.is_copied
    }
    placed = {name: digest_parts(entry) for name, entry in equal.items()}
    for entry in equal.values():
        placed |= {name_copy(link): {"": entry.digest_for_link(os.path.basename(link))} for link in entry.copies}
    if placed.items() <= PlacedTrees(scope.base, limits).items():
        return
    with open_store(scope, limits, keep_lock=True) as store:
        store.placed.save(placed)


def choose_agents(
    context: InstallContext, scope: InstallScope, missing: Iterable[Declaration], recorded: LockEntries
) -> tuple[tuple[str, ...], tuple[Issue, ...]]:
    """Return the agents that new installs are linked for when the manifest names none, and an issue that names them.

    They are those that an install by hand would choose, and the lock file records them. So they are chosen once, on
    the machine that installs first, and every other machine gets the same links.
    """
    is_open = any(not item.agents and not recorded.keys() >= {*declared_places(item.spec)} for item in missing)
    agents: tuple[str, ...] = ()
    if is_open:
        manifest = load_manifest(scope.lock_folder, context.limits)
        agents = choose_preset_agents(
            scope, manifest, find_present_agents(context, project=scope.location == "project")
        )
    if not agents:
        return (), ()
    message = f"the manifest names no agents, so new skills are linked for those on this machine: {', '.join(agents)}"
    return agents, (Issue("agents-chosen", "agents", message, scope.lock_folder, 0, "info"),)


def summarize_errors(errors: Sequence[SkillError], installed: Sequence[InstalledSkill]) -> SkillError:
    """The first error, whose message also says how many more there are, and what was installed in spite of them."""
    more = f"; {len(errors) - 1} more could not be synced" if len(errors) > 1 else ""
    names = ", ".join(skill.full_name for skill in installed)
    return errors[0].about("", f"{more}{f'; installed all the same: {names}' if names else ''}")


@dataclass
class DeclarationRun:
    """The declarations of one scope that a command installs, with their errors and warnings."""

    context: InstallContext
    scope: InstallScope
    access: SourceAccess
    declared: Sequence[Declaration]
    agents: tuple[str, ...]
    """The agents that a new install is linked for when the manifest names none for it."""
    removes: bool = False
    store: Store | None = None
    """Where everything is staged; ``None`` for the store of the scope."""
    errors: list[SkillError] = field(default_factory=list)
    issues: list[Issue] = field(default_factory=list)

    def install_declarations(self, declarations: Sequence[Declaration]) -> list[InstalledSkill]:
        """Install declarations one after the other; one that fails adds to ``errors`` and does not stop the others."""
        installed: list[InstalledSkill] = []
        for declaration in report_steps(declarations, str):
            try:
                installed += self._install_one(declaration)
            except SkillError as error:
                self.errors.append(error.about(str(declaration)))
        return installed

    def _install_one(self, declaration: Declaration) -> tuple[InstalledSkill, ...]:
        """Install one declaration, in place of the installs that make room for it."""
        spec, limits = declaration.spec, self.context.limits
        # Read anew: the declaration before this one may have changed the lock file.
        before = self.context.read_lock(self.scope) if self.store is None else self.store.locked
        claimed = find_claimed(self.declared, before)
        with wrap_os_errors(), self.access.open_source(spec) as source_files:
            trees = trees_for(source_files, spec, limits)
            replaceable = {
                name for name, entry in before.items() if may_give_way(entry, declaration, claimed, self.scope)
            }
            replaceable |= {tree.name for tree in trees if tree.name not in before and self._may_fill_place(tree)}
            options = InstallOptions(
                declaration.agents,
                declared=declaration.text,
                declared_agents=declaration.agents,
                replaceable=frozenset(replaceable),
                copy=declaration.mode == COPY_MODE,
                extra_agents={tree.name: self._agents_besides(declaration, before.get(tree.name)) for tree in trees},
            )
            installed, issues = install_trees(self.context, self.scope, trees, options, store=self.store)
        self.issues.extend(issues)
        return installed

    def _agents_besides(self, declaration: Declaration, before: LockEntry | None) -> tuple[str, ...]:
        """Return the agents that an install is linked for besides those that its declaration names.

        What was chosen when it was first installed stays, whatever agents are on the machine of the next sync.
        """
        if before is not None:
            return agents_linked_by_hand(before)
        return () if declaration.agents else self.agents

    def _may_fill_place(self, tree: InstallTree) -> bool:
        """Return whether a tree may take a place that no entry records.

        It may when the place holds exactly its files already, and when the sync may remove what nothing records.
        """
        place = self.scope.install_folder(tree.name)
        return self.removes or not compare_folder(tree.hashes, place, self.context.limits)


def _finish_manifest(
    scope: InstallScope, declared: tuple[Declaration, ...] | None, limits: Limits, *, removes: bool
) -> tuple[Issue, ...]:
    """Record which installs are declared, and with ``removes`` remove those that nothing asks for.

    Installs that no lock entry records go to the backups. Returns an issue for each backup, and, without ``removes``,
    a warning for each install that nothing asks for.
    """
    with open_store(scope, limits) as store:
        # Compared again: the declarations that were just installed are recorded now.
        diff = compare_manifest(declared, store.locked, scope)
        store.commit(with_declarations(store.locked, diff.unmarked))
        surplus = list(_find_surplus(diff.undeclared, store.locked, scope, limits))
        if not removes:
            return (*store.issues, *surplus)
        if diff.undeclared:
            remove_installs(store, diff.undeclared)
        for issue in surplus:
            if issue.code == "not-in-lock":
                store.stage_removal(issue.field, Disposal("unknown"))
        store.commit(store.locked)
        return store.issues


def _find_surplus(
    undeclared: Iterable[str], locked: LockEntries, scope: InstallScope, limits: Limits
) -> Iterator[Issue]:
    """Yield a warning for each install that nothing asks for and that a sync leaves where it is.

    The manifest does not declare it any more, or it is in no lock file and somebody made or changed it by hand.
    """
    for name in undeclared:
        message = f"the manifest does not declare {name} any more"
        yield Issue("declared-no-more", name, message, scope.install_folder(name), 0, "warning")
    for issue in find_unrecorded_installs(scope, locked, PlacedTrees(scope.base, limits)):
        if issue.code in SURPLUS_CODES:
            yield issue


def list_changes(context: InstallContext, scope: InstallScope, *, locked: bool, removes: bool) -> tuple[str, ...]:
    """What a sync would change, a line each; what it would pass over is added to the issues of the context.

    Nothing is fetched. ``locked``: raises ``LockMismatchError`` for everything that a locked sync would refuse before
    it fetches. ``removes``: installs that nothing asks for are among the changes.
    """
    context.begin_read(scope)
    if any(issue.code == "interrupted-change" for issue in context.issues):
        if locked:
            raise interrupted_error(scope)
        return ("end the change that was interrupted here; what else is to be done shows then",)
    recorded = context.read_lock(scope)
    diff = compare_manifest(read_declarations(scope.lock_folder, context.limits), recorded, scope)
    if locked:
        if diff:
            refuse_manifest_diff(diff, recorded, scope)
        return tuple(list_restores(scope, context.limits, recorded))
    context.issues += choose_agents(context, scope, diff.missing, recorded)[1]
    context.issues += tuple(_find_refused(scope, recorded))
    unrestorable = find_unrestorable(scope, context.limits, recorded)
    surplus = tuple(_find_surplus(diff.undeclared, recorded, scope, context.limits))
    leftovers = find_leftovers(scope, recorded, context.limits)
    context.issues += (*unrestorable, *find_lost_lock(scope, leftovers), *(() if removes else surplus))
    passed_over = {issue.field for issue in unrestorable}
    restorable = {name: entry for name, entry in recorded.items() if name not in passed_over}
    differences = verify_scope(scope, restorable, LinkFolders(scope).path_of_link, context.limits)
    rows = [
        _describe_restore(issue)
        for issue in differences
        if issue.field not in passed_over and issue.field not in leftovers.installs and issue.code not in SURPLUS_CODES
    ]
    rows += describe_leftovers(scope, leftovers)
    rows += [f"remove {issue.path}: {issue.message}" for issue in surplus if removes]
    return (*list_manifest_changes(diff, recorded, scope), *rows)


def _describe_restore(issue: Issue) -> str:
    """Return what a sync does about one difference from the lock file, and whether it keeps a backup."""
    if issue.code == NOT_SYNCED:
        return f"replace {issue.path}: {issue.message}"
    verb = "remove" if issue.code == "extra-file" else "restore"
    backup = "; a backup is kept" if issue.code in {"changed-file", "extra-file"} else ""
    return f"{verb}: {issue.message} ({issue.path}){backup}"


def lock_scope(
    context: InstallContext, scope: InstallScope, *, update: bool | Refs, dry_run: bool
) -> tuple[Update, ...]:
    """Record what the manifest declares, and what sources have now; returns what became of each changed entry.

    ``Installer.lock`` describes ``update``. What cannot be resolved does not stop the rest: the first error is raised
    at the end, and then no entry is removed.
    """
    (context.begin_read if dry_run else context.begin_change)(scope)
    store = LockOnlyStore(scope, context.limits)
    before = store.locked
    declared = read_declarations(scope.lock_folder, context.limits)
    access = context.access.for_entries((scope, entry) for entry in before.values())
    with wrap_os_errors():
        updates = UpdateRun(access, compares_lock=True, store=store).update_all(
            _list_wanted(scope, before, update=update)
        )
        errors = _lock_declarations(context, scope, store, declared)
    context.issues += tuple(dict.fromkeys(issue for _, issues in updates for issue in issues))
    if not dry_run and store.locked != before:
        _write_lock(context, scope, before, store.locked)
    done = {one.name: one for one, _ in updates if one.status != "current" or one.why}
    changes = tuple(_list_changes(before, store.locked, done))
    if errors:
        raise summarize_errors(errors, ())
    return changes


def _list_wanted(scope: InstallScope, locked: LockEntries, *, update: bool | Refs) -> list[WantedUpdate]:
    """Return the updates that were asked for; raises ``SkillError`` for a name that the lock file does not have."""
    if isinstance(update, bool):
        return [WantedUpdate(scope, entry, entry.ref) for entry in locked.values()] if update else []
    refs = parse_refs(update)
    if any(ref.version for ref in refs):
        raise SkillError("the manifest says which version is locked: change it there", code="bad-argument")
    entries = [require_entry(locked, scope, name) for name in dict.fromkeys(ref.full_name for ref in refs)]
    return [WantedUpdate(scope, entry, entry.ref) for entry in entries]


def _lock_declarations(
    context: InstallContext, scope: InstallScope, store: LockOnlyStore, declared: tuple[Declaration, ...] | None
) -> list[SkillError]:
    """Record what is declared and not locked, and remove what is not declared any more; returns what went wrong."""
    diff = compare_manifest(declared, store.locked, scope)
    agents, chosen = choose_agents(context, scope, diff.missing, store.locked)
    run = DeclarationRun(context, scope, context.access, declared or (), agents, store=store)
    run.install_declarations(diff.missing)
    diff = compare_manifest(declared, store.locked, scope)
    locked = with_declarations(store.locked, diff.unmarked)
    gone = () if run.errors else diff.undeclared
    store.commit({name: entry for name, entry in locked.items() if name not in gone})
    context.issues += (*chosen, *run.issues)
    return run.errors


def _write_lock(context: InstallContext, scope: InstallScope, before: LockEntries, locked: LockEntries) -> None:
    """Write the lock file, unless another command changed it since it was read."""
    with wrap_os_errors(), open_store(scope, context.limits) as store:
        if store.locked != before:
            message = "another command changed the lock file meanwhile: run it again"
            raise BusyError(message, scope.lock_folder)
        store.commit(locked)
        context.issues += store.issues


def _list_changes(before: LockEntries, after: LockEntries, updates: dict[str, Update]) -> Iterator[Update]:
    """What became of each entry that was changed, or could not be updated."""
    for name in sorted(before.keys() | after.keys()):
        old, new = before.get(name), after.get(name)
        if old is None or new is None:
            status: UpdateStatus = "added" if old is None else "removed"
            yield Update(name, status, old.commit if old else "", new.commit if new else "")
        elif name in updates:
            yield updates[name]
        elif old != new:
            yield Update(name, "updated", old.commit, new.commit)

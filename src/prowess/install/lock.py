"""A lock file brought up to date with its manifest, and with its sources, while nothing is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import BusyError, SkillError
from prowess.files.syscalls import wrap_os_errors
from prowess.install.context import parse_refs, require_entry
from prowess.install.manifest import read_declarations
from prowess.install.manifest_diff import compare_manifest, with_declarations
from prowess.install.store import LockOnlyStore, open_store
from prowess.install.sync import DeclarationRun, choose_agents, summarize_errors
from prowess.install.update import Update, UpdateRun, WantedUpdate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.context import InstallContext, Refs
    from prowess.install.manifest import Declaration
    from prowess.install.update import UpdateStatus
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntries


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

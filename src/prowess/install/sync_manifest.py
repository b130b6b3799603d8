"""From what a manifest declares to what is here: what that would change, and bringing what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import SkillError
from prowess.install.agent_links import LinkFolders
from prowess.install.install_all import install_trees
from prowess.install.manifest import read_declarations
from prowess.install.stage import InstallOptions, InstallRequest
from prowess.install.sync import (
    SURPLUS_CODES,
    agents_linked_by_hand,
    compare_manifest,
    find_surplus,
    find_unrestorable,
    list_manifest_changes,
    list_restores,
    may_give_way,
    refuse_manifest_diff,
)
from prowess.install.system_errors import wrap_os_errors
from prowess.install.tree import trees_for
from prowess.lockfile.compare import compare_folder, verify_scope
from prowess.lockfile.read import COPY_MODE, read_lock
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from prowess.errors import Issue
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.manifest import Declaration
    from prowess.install.tree import InstallTree
    from prowess.lockfile.scopes import InstalledSkill, InstallScope


class SyncContext(NamedTuple):
    """What a sync is told, and what it meets on the way: one declaration that fails does not stop the others."""

    access: SourceAccess
    scopes: Sequence[InstallScope]
    """All scopes whose names count."""
    declared_texts: Collection[str]
    """The manifest's declarations, as text."""
    removes: bool
    errors: list[SkillError]
    issues: list[Issue]


def list_changes(
    scope: InstallScope, reach: SourceAccess, *, locked: bool, removes: bool = False
) -> tuple[tuple[str, ...], tuple[Issue, ...]]:
    """What a sync would change, a line each, and what it would pass over; nothing is fetched.

    ``locked``: what is missing is restored, and anything else that differs raises ``LockMismatchError``.
    ``removes``: what nothing asks for is among the changes, not among what is passed over.
    """
    recorded = read_lock(scope.lock_folder, limits=reach.limits)
    found = compare_manifest(read_declarations(scope.lock_folder, reach.limits), recorded, scope)
    if locked:
        if found:
            refuse_manifest_diff(found, recorded, scope)
        return tuple(list_restores(scope, reach)), ()
    issues = tuple(find_unrestorable(scope, reach))
    out = {issue.field for issue in issues}
    left = {name: entry for name, entry in recorded.items() if name not in out}
    differing = verify_scope(scope, left, LinkFolders(scope).path_of_link, reach.limits)
    rows = [
        f"restore: {issue.message} ({issue.path})"
        for issue in differing
        if issue.field not in out and issue.code not in SURPLUS_CODES
    ]
    surplus = tuple(find_surplus(found.undeclared, recorded, scope))
    if removes:
        rows += [f"remove {issue.path}: {issue.message}" for issue in surplus]
    return (*list_manifest_changes(found, recorded, scope), *rows), (*issues, *(() if removes else surplus))


def install_declared(scope: InstallScope, wishes: Sequence[Declaration], order: SyncContext) -> list[InstalledSkill]:
    """Install what the manifest declares; what could not be installed is among the errors of the order."""
    done: list[InstalledSkill] = []
    for wish in report_steps(wishes, str):
        try:
            done += _install_one(scope, wish, order)
        except SkillError as error:
            order.errors.append(error.about(str(wish)))
    return done


def _install_one(scope: InstallScope, wish: Declaration, order: SyncContext) -> tuple[InstalledSkill, ...]:
    """One declaration; an earlier one of the same place gives way."""
    before = read_lock(scope.lock_folder, limits=order.access.limits)
    with wrap_os_errors(), order.access.open_source(wish.spec) as bundle:
        trees = trees_for(bundle, wish.spec, order.access.limits)
        yielding = {name for name, entry in before.items() if may_give_way(entry, wish, order.declared_texts, scope)}
        yielding |= {tree.name for tree in trees if tree.name not in before and _may_fill_place(scope, tree, order)}
        by_hand = {tree.name: agents_linked_by_hand(before[tree.name]) for tree in trees if tree.name in before}
        wishes = InstallOptions(
            wish.agents,
            declared=wish.text,
            replaceable=frozenset(yielding),
            copy=wish.mode == COPY_MODE,
            extra_agents=by_hand,
        )
        arrival = InstallRequest(wish.spec, bundle.commit, wishes)
        done, issues = install_trees(scope, trees, arrival, scopes=order.scopes, limits=order.access.limits)
    order.issues.extend(issues)
    return done


def _may_fill_place(scope: InstallScope, tree: InstallTree, order: SyncContext) -> bool:
    """Whether a tree may take a place that no entry records: one that it fills already, or that may be emptied."""
    return order.removes or not compare_folder(tree.hashes, scope.install_folder(tree.name), order.access.limits)

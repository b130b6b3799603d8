"""From what a manifest declares to what is here: what that would change, and bringing what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import SkillError
from prowess.install.agent_links import Landings
from prowess.install.install_all import land
from prowess.install.install_tree import Arrival, Wishes
from prowess.install.manifest import read_manifest
from prowess.install.sync import (
    SURPLUS_CODES,
    agents_by_hand,
    find_surplus,
    gap,
    gives_way,
    lost,
    refuse_gap,
    to_restore,
    to_settle,
)
from prowess.install.system_errors import typed
from prowess.install.tree import cut
from prowess.lockfile.compare import compare_folder, verify_scope
from prowess.lockfile.read import COPY, read_lock
from prowess.progress_steps import stepped

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from prowess.errors import Issue
    from prowess.install.fetch_source import Reach
    from prowess.install.manifest import Declared
    from prowess.install.tree import Tree
    from prowess.lockfile.scopes import InstalledSkill, Scope


class Order(NamedTuple):
    """What a sync is told, and what it meets on the way: one declaration that fails does not stop the others."""

    reach: Reach
    scopes: Sequence[Scope]
    """All scopes whose names count."""
    texts: Collection[str]
    """The manifest's declarations, as text."""
    removes: bool
    errors: list[SkillError]
    issues: list[Issue]


def changes(
    scope: Scope, reach: Reach, *, locked: bool, removes: bool = False
) -> tuple[tuple[str, ...], tuple[Issue, ...]]:
    """What a sync would change, a line each, and what it would pass over; nothing is fetched.

    ``locked``: what is missing is restored, and anything else that differs raises ``LockMismatchError``.
    ``removes``: what nothing asks for is among the changes, not among what is passed over.
    """
    recorded = read_lock(scope.records, limits=reach.limits)
    found = gap(read_manifest(scope.records, reach.limits), recorded, scope)
    if locked:
        if found:
            refuse_gap(found, recorded, scope)
        return tuple(to_restore(scope, reach)), ()
    issues = tuple(lost(scope, reach))
    out = {issue.field for issue in issues}
    left = {name: entry for name, entry in recorded.items() if name not in out}
    differing = verify_scope(scope, left, Landings(scope).path, reach.limits)
    rows = [
        f"restore: {issue.message} ({issue.path})"
        for issue in differing
        if issue.field not in out and issue.code not in SURPLUS_CODES
    ]
    surplus = tuple(find_surplus(found.spare, recorded, scope))
    if removes:
        rows += [f"remove {issue.path}: {issue.message}" for issue in surplus]
    return (*to_settle(found, recorded, scope), *rows), (*issues, *(() if removes else surplus))


def bring(scope: Scope, wishes: Sequence[Declared], order: Order) -> list[InstalledSkill]:
    """Install what the manifest declares; what could not be installed is among the errors of the order."""
    done: list[InstalledSkill] = []
    for wish in stepped(wishes, str):
        try:
            done += _brought(scope, wish, order)
        except SkillError as error:
            order.errors.append(error.about(str(wish)))
    return done


def _brought(scope: Scope, wish: Declared, order: Order) -> tuple[InstalledSkill, ...]:
    """One declaration; an earlier one of the same place gives way."""
    before = read_lock(scope.records, limits=order.reach.limits)
    with typed(), order.reach.opened(wish.spec) as bundle:
        trees = cut(bundle, wish.spec, order.reach.limits)
        yielding = {name for name, entry in before.items() if gives_way(entry, wish, order.texts, scope)}
        yielding |= {tree.name for tree in trees if tree.name not in before and _may_fill(scope, tree, order)}
        by_hand = {tree.name: agents_by_hand(before[tree.name]) for tree in trees if tree.name in before}
        wishes = Wishes(
            wish.agents,
            declared=wish.text,
            yielding=frozenset(yielding),
            copy=wish.mode == COPY,
            agents_by_hand=by_hand,
        )
        arrival = Arrival(wish.spec, bundle.commit, wishes)
        done, issues = land(scope, trees, arrival, scopes=order.scopes, limits=order.reach.limits)
    order.issues.extend(issues)
    return done


def _may_fill(scope: Scope, tree: Tree, order: Order) -> bool:
    """Whether a tree may take a place that no entry records: one that it fills already, or that may be emptied."""
    return order.removes or not compare_folder(tree.hashes, scope.place(tree.name), order.reach.limits)

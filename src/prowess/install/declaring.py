"""From what a manifest declares to what is here: what that would change, and bringing what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import SkillError
from prowess.install.apply import Arrival, Wishes
from prowess.install.failures import typed
from prowess.install.landing import land
from prowess.install.links import Landings
from prowess.install.manifest import read_manifest
from prowess.install.syncing import SURPLUS_CODES, find_surplus, gap, lost, refuse_gap, to_restore, to_settle
from prowess.install.trees import cut
from prowess.library.compare import verify_scope
from prowess.library.lock import read_lock
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.fetch import Reach
    from prowess.install.manifest import Declared
    from prowess.library.installs import InstalledSkill, Scope


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


def bring(scope: Scope, wishes: Sequence[Declared], reach: Reach, scopes: Sequence[Scope]) -> list[InstalledSkill]:
    """Install what the manifest declares; an error says which entry it is about, and what was done before."""
    done: list[InstalledSkill] = []
    for wish in stepped(wishes, str):
        try:
            done += _brought(scope, wish, reach, scopes)
        except SkillError as error:
            before = ", ".join(one.full_name for one in done)
            raise error.about(str(wish), f"; installed before that: {before}" if before else "") from error.__cause__
    return done


def _brought(scope: Scope, wish: Declared, reach: Reach, scopes: Sequence[Scope]) -> tuple[InstalledSkill, ...]:
    """One declaration; an earlier one of the same place gives way."""
    before = read_lock(scope.records, limits=reach.limits)
    with typed(), reach.opened(wish.spec) as bundle:
        trees = cut(bundle, wish.spec, reach.limits)
        given = all(tree.name in before and before[tree.name].declared for tree in trees)
        arrival = Arrival(wish.spec, bundle.commit, Wishes(wish.agents, given, wish.text))
        return land(scope, trees, arrival, scopes=scopes, limits=reach.limits)[0]

"""Trees that arrive: judged, staged and recorded as one, so that all of them are installed or none is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.install import install_tree
from prowess.install.lock_entries import recorded_source
from prowess.install.lookalikes import near_names
from prowess.install.store import opened
from prowess.install.tree import refuse_broken
from prowess.lockfile.read import read_lock
from prowess.lockfile.scopes import InstalledSkill, installed_names, place_of
from prowess.progress_steps import stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.install_tree import Arrival
    from prowess.install.tree import Tree
    from prowess.limits import Limits
    from prowess.lockfile.read import Locked
    from prowess.lockfile.scopes import Scope


def land(
    scope: Scope, trees: Sequence[Tree], arrival: Arrival, *, scopes: Sequence[Scope], limits: Limits
) -> tuple[tuple[InstalledSkill, ...], tuple[Issue, ...]]:
    """Install trees in a scope: what is installed then, and what is worth saying. ``scopes``: all whose names count."""
    issues = [issue for tree in trees for issue in tree.issues]
    refuse_broken(trees, arrival.spec)
    with opened(scope, limits) as store:
        names = [name for tree in trees for name in (*tree.skills, tree.name)]
        source = recorded_source(arrival.spec, scope)
        issues += near_names(names, arrival.spec.org, _names_of_others(source, {*names}, scopes, limits))
        locked = dict(store.locked)
        for tree in stepped(trees, lambda tree: tree.name):
            locked, more = install_tree.stage(store, locked, tree, arrival)
            issues += more
        store.commit(locked)
        issues += store.issues
    return tuple(installed_as(scope, tree.name, locked) for tree in trees), tuple(issues)


def _names_of_others(source: str, arriving: set[str], scopes: Sequence[Scope], limits: Limits) -> set[str]:
    """The names of everything that is installed from another source, and does not give way to what arrives.

    Whoever gives two skills of one source similar names means two skills: only another source can pass for the first.
    """
    known: set[str] = set()
    for scope in scopes:
        own: set[str] = set()
        with suppress(InstallError):
            for name, entry in read_lock(scope.records, limits=limits).items():
                if entry.source == source and source:
                    own.add(name)
                elif name not in arriving:
                    known |= {name, *entry.skills}
        known |= {*installed_names(scope)} - own - arriving
    return known


def installed_as(scope: Scope, full_name: str, locked: Locked) -> InstalledSkill:
    """What is, or will be, installed under a name, once the lock file says so."""
    org, _, name = full_name.partition("/")
    return InstalledSkill(org, name, scope.location, Path(place_of(locked.get(full_name), scope, full_name)))

"""Trees that arrive: judged, staged and recorded as one, so that all of them are installed or none is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.install import apply
from prowess.install.resemblance import near_names
from prowess.install.store import opened
from prowess.install.trees import refuse_broken
from prowess.library.installs import InstalledSkill, installed
from prowess.library.lock import read_lock
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.apply import Arrival
    from prowess.install.trees import Tree
    from prowess.library.installs import Scope
    from prowess.limits import Limits


def land(
    scope: Scope, trees: Sequence[Tree], arrival: Arrival, *, scopes: Sequence[Scope], limits: Limits
) -> tuple[tuple[InstalledSkill, ...], tuple[Issue, ...]]:
    """Install trees in a scope: what is installed then, and what is worth saying. ``scopes``: all whose names count."""
    issues = [issue for tree in trees for issue in tree.issues]
    refuse_broken(trees, arrival.spec)
    with opened(scope, limits) as store:
        locked = store.locked
        for tree in stepped(trees, lambda tree: tree.name):
            issues += near_names((*tree.skills, tree.name), arrival.spec.org, _others(tree, scopes, limits))
            locked, more = apply.stage(store, locked, tree, arrival)
            issues += more
        store.commit(locked)
        issues += store.issues
    return tuple(installed_as(scope, tree.name) for tree in trees), tuple(issues)


def _others(tree: Tree, scopes: Sequence[Scope], limits: Limits) -> set[str]:
    """The names of everything else that is installed."""
    known: set[str] = set()
    for scope in scopes:
        with suppress(InstallError):
            for name, entry in read_lock(scope.records, limits=limits).items():
                known |= {name, *entry.skills} if name != tree.name else set()
        known |= {one.full_name for one in installed(scope) if one.full_name != tree.name}
    return known


def installed_as(scope: Scope, full_name: str) -> InstalledSkill:
    """What is, or will be, installed under a name."""
    org, _, name = full_name.partition("/")
    return InstalledSkill(org, name, scope.location, Path(scope.place(full_name)))

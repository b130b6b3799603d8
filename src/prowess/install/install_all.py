"""Trees that arrive: judged, staged and recorded as one, so that all of them are installed or none is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.install import stage
from prowess.install.entry_source import source_for_lock
from prowess.install.lookalikes import find_lookalike_issues
from prowess.install.store import open_store
from prowess.install.tree import refuse_unloadable
from prowess.lockfile.read import read_lock
from prowess.lockfile.scopes import InstalledSkill, list_install_names, locate_install
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.install.stage import InstallRequest
    from prowess.install.tree import InstallTree
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries
    from prowess.lockfile.scopes import InstallScope


def install_trees(
    scope: InstallScope,
    trees: Sequence[InstallTree],
    arrival: InstallRequest,
    *,
    scopes: Sequence[InstallScope],
    limits: Limits,
) -> tuple[tuple[InstalledSkill, ...], tuple[Issue, ...]]:
    """Install trees in a scope: what is installed then, and what is worth saying. ``scopes``: all whose names count."""
    issues = [issue for tree in trees for issue in tree.issues]
    refuse_unloadable(trees, arrival.spec)
    with open_store(scope, limits) as store:
        names = [name for tree in trees for name in (*tree.skills, tree.name)]
        source = source_for_lock(arrival.spec, scope)
        issues += find_lookalike_issues(
            names, arrival.spec.org, _names_from_other_sources(source, {*names}, scopes, limits)
        )
        locked = dict(store.locked)
        for tree in report_steps(trees, lambda tree: tree.name):
            locked, more = stage.stage_install(store, locked, tree, arrival)
            issues += more
        store.commit(locked)
        issues += store.issues
    return tuple(to_installed_skill(scope, tree.name, locked) for tree in trees), tuple(issues)


def _names_from_other_sources(
    source: str, arriving: set[str], scopes: Sequence[InstallScope], limits: Limits
) -> set[str]:
    """The names of everything that is installed from another source, and does not give way to what arrives.

    Whoever gives two skills of one source similar names means two skills: only another source can pass for the first.
    """
    known: set[str] = set()
    for scope in scopes:
        own: set[str] = set()
        with suppress(InstallError):
            for name, entry in read_lock(scope.lock_folder, limits=limits).items():
                if entry.source == source and source:
                    own.add(name)
                elif name not in arriving:
                    known |= {name, *entry.skills}
        known |= {*list_install_names(scope)} - own - arriving
    return known


def to_installed_skill(scope: InstallScope, full_name: str, locked: LockEntries) -> InstalledSkill:
    """What is, or will be, installed under a name, once the lock file says so."""
    org, _, name = full_name.partition("/")
    return InstalledSkill(org, name, scope.location, Path(locate_install(locked.get(full_name), scope, full_name)))

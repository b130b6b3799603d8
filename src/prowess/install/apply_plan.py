"""A plan applied: its source is fetched, and all of its trees are staged and recorded at once, or none is."""

from __future__ import annotations

import re
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue
from prowess.files.syscalls import wrap_os_errors
from prowess.install.entry_source import source_for_lock
from prowess.install.install_tree import refuse_unloadable, trees_for
from prowess.install.manifest_diff import find_stale_declarations
from prowess.install.manifest_edits import declare_source, edit_manifest
from prowess.install.stage import stage_install
from prowess.install.store import open_store
from prowess.installed.scopes import InstalledSkill, list_install_names, locate_install
from prowess.lockfile.read import COPY_MODE
from prowess.progress_steps import report_steps
from prowess.text.spelling import lookup_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prowess.install.context import InstallContext
    from prowess.install.install_tree import InstallTree
    from prowess.install.manifest import ProjectManifest
    from prowess.install.manifest_edits import ManifestEdit
    from prowess.install.plan import InstallOptions, Plan
    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntries


def apply_plan(context: InstallContext, plan: Plan) -> tuple[InstalledSkill, ...]:
    """Install what a plan says, and have the manifest declare it; returns what is installed.

    Raises what fetching, checking and staging raise; then nothing is installed.
    """
    scope = context.scope_for(project=plan.location == "project")
    context.begin_change(scope)
    before = context.read_lock(scope)
    with wrap_os_errors(), context.open_source(plan.spec, plan.offer) as source_files:
        trees = trees_for(source_files, plan.spec, context.limits)
        installed, issues = install_trees(context, scope, trees, plan.options)
    context.issues += (*plan.issues, *issues)
    # The manifest is edited last: it must not declare what could not be installed.
    if plan.manifest:
        mode = COPY_MODE if plan.options.copy else ""
        gone = before.keys() - context.read_lock(scope).keys()

        def declare_plan(manifest: ProjectManifest) -> ManifestEdit:
            return declare_source(
                manifest, scope, plan.spec, plan.declared_agents, mode=mode, written=plan.written, gone=gone
            )

        context.issues += edit_manifest(scope, declare_plan, context.limits)
    replaced = [before.get(skill.full_name) for skill in installed]
    context.issues += tuple(find_stale_declarations(scope, replaced, context.limits))
    return installed


def install_trees(
    context: InstallContext,
    scope: InstallScope,
    trees: Sequence[InstallTree],
    options: InstallOptions,
    *,
    store: Store | None = None,
) -> tuple[tuple[InstalledSkill, ...], tuple[Issue, ...]]:
    """Install trees of one source in a scope, all or none; returns what is installed, and what is worth a warning.

    They are staged in the store of the scope unless another one is given. Raises ``InstallError`` when no skill of a
    tree can be loaded, and what ``stage_install`` raises.
    """
    issues = [issue for tree in trees for issue in tree.issues]
    refuse_unloadable(trees)
    spec = trees[0].spec
    # Everything is fetched by now, so other commands do not have to wait for the network.
    with open_store(scope, context.limits) if store is None else nullcontext(store) as opened:
        names = [name for tree in trees for name in (*tree.skills, tree.name)]
        known = _names_from_other_sources(context, source_for_lock(spec, scope), {*names})
        issues += find_lookalike_issues(names, spec.org, known)
        locked = dict(opened.locked)
        for tree in report_steps(trees, lambda tree: tree.name):
            issues += stage_install(opened, locked, tree, options)
        opened.commit(locked)
        issues += opened.issues
    return tuple(to_installed_skill(scope, tree.name, locked) for tree in trees), tuple(issues)


def _names_from_other_sources(context: InstallContext, source: str, arriving: set[str]) -> set[str]:
    """The names of all installs and skills that come from another source and are not replaced by ``arriving``."""
    # Two similar names from one source mean two skills: only another source can try to pass for the first.
    known: set[str] = set()
    for scope in context.scopes:
        same_source: set[str] = set()
        with suppress(InstallError):  # a lock file that is malformed is reported by the commands that need it
            for name, entry in context.read_lock(scope).items():
                if entry.source == source and source:
                    same_source.add(name)
                elif name not in arriving:
                    known |= {name, *entry.skills}
        known |= {*list_install_names(scope)} - same_source - arriving
    return known


def to_installed_skill(scope: InstallScope, full_name: str, locked: LockEntries) -> InstalledSkill:
    """Return the install with that name, at the place that ``locked`` gives it."""
    org, _, name = full_name.partition("/")
    return InstalledSkill(org, name, scope.location, Path(locate_install(locked.get(full_name), scope, full_name)))


_VENDORS = ("anthropic", "claude", "cloudflare", "github", "google", "huggingface", "microsoft", "openai", "vercel")
"""Words that a name may only begin with when the skill comes from that vendor."""

_MAX_SHOWN = 5
_NUMBER = re.compile("[0-9]+")


def find_lookalike_issues(names: Iterable[str], owner: str, known: Iterable[str]) -> Iterator[Issue]:
    """Yield one warning for all names that resemble known ones, and one for all that borrow a vendor's name."""
    arriving = list(dict.fromkeys(names))
    lookalikes = _find_lookalikes(arriving, known)
    alike = [
        f"{name!a} is easily mistaken for {' and '.join(map(ascii, lookalikes[name]))}" for name in sorted(lookalikes)
    ]
    borrowed = [
        f"{name!a} begins like something of {vendor}'s and comes from {owner!a}"
        for name in arriving
        for vendor in _VENDORS
        if name.startswith(f"{vendor}-") and not owner.lower().startswith(vendor)
    ]
    for pairs in (alike, borrowed):
        if pairs:
            more = f"; and {len(pairs) - _MAX_SHOWN} more" if len(pairs) > _MAX_SHOWN else ""
            yield Issue("near-name", "name", "; ".join(pairs[:_MAX_SHOWN]) + more, severity="warning")


def _find_lookalikes(names: Sequence[str], known: Iterable[str]) -> dict[str, list[str]]:
    """Return the names that resemble known ones, each with those known names; ``step-2`` does not resemble ``step-1``.

    ``org/a`` is left out beside ``org/b`` when ``a`` and ``b`` are reported already.
    """
    by_form: dict[str, list[str]] = {}
    for name in names:
        for form in lookup_forms(name):
            by_form.setdefault(form, []).append(name)
    pairs = {
        (name, other)
        for other in known
        for form in lookup_forms(other)
        for name in by_form.get(form, ())
        if name != other and not _is_series(name, other)
    }
    alike: dict[str, list[str]] = {}
    for name, other in sorted(pairs):
        (_, slash, last), (_, _, other_last) = name.rpartition("/"), other.rpartition("/")
        if not slash or (last, other_last) not in pairs:
            alike.setdefault(name, []).append(other)
    return alike


def _is_series(name: str, other: str) -> bool:
    """Return True for two skills whose names differ in numbers alone, such as ``step-1`` and ``step-2``."""
    last, other_last = name.rpartition("/")[2], other.rpartition("/")[2]
    return last != other_last and _NUMBER.sub("0", last) == _NUMBER.sub("0", other_last)

"""Removing installs: their folders, links, lock entries, and the entries of the manifest that declare them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import NotInstalledError
from prowess.files.directory import exists
from prowess.files.syscalls import wrap_os_errors
from prowess.install.context import parse_refs
from prowess.install.entry_source import is_sourceless
from prowess.install.manifest_diff import find_stale_declarations
from prowess.install.manifest_edits import edit_manifest, undeclare_places
from prowess.install.ownership import dispose_of_install, recorded_link_paths, stage_unlink
from prowess.install.store import DELETED, Disposal, open_store

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from prowess.install.context import InstallContext, Refs
    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope, Location
    from prowess.lockfile.read import LockEntry


def remove_skills(context: InstallContext, refs: Refs, *, save: bool, location: Location) -> tuple[Path, ...]:
    """Remove installs, and with ``save`` their entries in the manifest; returns where each of them was.

    The installs of one scope go together or not at all. Raises ``NotInstalledError`` for one that no scope has.
    """
    scopes = context.scopes_at(location)
    context.begin_change(*scopes)
    places: list[str] = []
    by_scope: dict[InstallScope, dict[str, str]] = {}
    for ref in parse_refs(refs):
        scope, place = context.find_known_install(ref, scopes)
        by_scope.setdefault(scope, {})[ref.full_name] = place
        places.append(place)
    for scope, installs in by_scope.items():
        _remove_from_scope(context, scope, installs, save=save)
    return tuple(map(Path, places))


def _remove_from_scope(context: InstallContext, scope: InstallScope, places: Mapping[str, str], *, save: bool) -> None:
    """Remove installs of one scope; ``places`` has the folder of each, by name."""
    with wrap_os_errors(), open_store(scope, context.limits) as store:
        # Another process may have removed one since it was found: only now does nobody else change the scope.
        for name, place in places.items():
            if not exists(place) and name not in store.locked:
                raise NotInstalledError(f"skill {name} is not installed")
        removed = [store.locked.get(name) for name in places]
        remove_installs(store, places.keys())
    context.issues += store.issues
    if save:
        context.issues += edit_manifest(
            scope, lambda manifest: undeclare_places(manifest, scope, places.keys()), context.limits
        )
    context.issues += tuple(find_stale_declarations(scope, removed, context.limits))


def remove_installs(store: Store, names: Collection[str]) -> None:
    """Remove installs with their links and lock entries, all or none; edited ones go to the backups."""
    paths: list[str] = []
    for name in names:
        place = store.scope.install_folder(name)
        entry = store.locked.get(name)
        links = recorded_link_paths(store, entry)
        for path in links:
            stage_unlink(store, path, entry)
        if exists(place):
            # Whoever names what is in no lock file wants it gone; what they may not know of are edits.
            store.stage_removal(name, _dispose_of_removed(store, entry, name))
        paths += links
    store.commit({name: entry for name, entry in store.locked.items() if name not in names})
    # An empty folder of an agent would make the agent look present. The shared folder belongs to no agent, and stays.
    for folder in sorted({os.path.dirname(path) for path in paths} - {store.link_folders.shared}):
        store.link_folders.delete_if_empty(folder)


def _dispose_of_removed(store: Store, entry: LockEntry | None, name: str) -> Disposal:
    """What becomes of an install that somebody removes by its name: what no source could give back is kept."""
    if entry is None:
        # After a switch to a branch that does not record it, what Prowess once put here may have been edited.
        return dispose_of_install(store, None, name) if store.placed.parts_of(name) else DELETED
    return Disposal("sourceless") if is_sourceless(entry) else dispose_of_install(store, entry, name)

"""Leftovers: what Prowess put on this disk, and the lock file does not record any more, as after a pulled removal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue
from prowess.files.directory import exists
from prowess.files.paths import is_link, is_link_into, is_real_folder
from prowess.install.agent_links import LinkFolders
from prowess.install.ownership import dispose_of_install
from prowess.install.store import Disposal
from prowess.installed.placed import PlacedTrees, name_copy
from prowess.installed.scopes import list_install_names
from prowess.lockfile.read import LOCK_FILE
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries


class Leftovers(NamedTuple):
    """Installs, and links and copies where agents look, that no lock entry records; false when there are none."""

    installs: tuple[str, ...] = ()
    """The names of installs that are as Prowess put them there."""
    paths: tuple[str, ...] = ()
    """Links into the install base, and copies that are as Prowess put them there."""

    def __bool__(self) -> bool:
        """Whether there is anything to remove."""
        return bool(self.installs or self.paths)


def find_leftovers(scope: InstallScope, locked: LockEntries, limits: Limits) -> Leftovers:
    """What a sync removes without a question, because it is nobody's work and no lock entry records it."""
    placed = PlacedTrees(scope.base, limits)
    unrecorded = {name: scope.install_folder(name) for name in list_install_names(scope) if name not in locked}
    installs = tuple(name for name, place in unrecorded.items() if placed.is_pristine(name, place))
    # An install that somebody made or changed by hand stays, and so do the links to it.
    kept = [place for name, place in unrecorded.items() if name not in installs]
    return Leftovers(installs, tuple(_find_leftover_paths(scope, locked, placed, kept)))


def _find_leftover_paths(
    scope: InstallScope, locked: LockEntries, placed: PlacedTrees, kept: list[str]
) -> Iterator[str]:
    link_folders = LinkFolders(scope)
    recorded = {link for entry in locked.values() for link in entry.links}
    for path in link_folders.find_links_into(scope.base):
        if link_folders.to_lock_path(path) not in recorded and not any(is_link_into(path, place) for place in kept):
            yield path
    # A name in the record may be forged: only what is where Prowess makes links counts.
    for path in (path for copy in placed.copies for path in link_folders.list_paths(os.path.basename(copy))):
        link = link_folders.to_lock_path(path)
        if link not in recorded and is_real_folder(path) and placed.is_pristine(name_copy(link), path):
            yield path


def find_lost_lock(scope: InstallScope, leftovers: Leftovers) -> tuple[Issue, ...]:
    """A warning about leftovers without any lock file: somebody may have deleted it."""
    if not leftovers.installs or exists(os.path.join(scope.lock_folder, LOCK_FILE)):
        return ()
    count = format_count(len(leftovers.installs), "install")
    message = f"there is no {LOCK_FILE}, and {count} of Prowess {'is' if len(leftovers.installs) == 1 else 'are'} here"
    return (Issue("lock-missing", LOCK_FILE, message, scope.lock_folder, 0, "warning"),)


def stage_leftovers(store: Store, leftovers: Leftovers) -> None:
    """Stage the removal of leftovers; an issue of the store names each install."""
    for name in leftovers.installs:
        store.stage_removal(name, dispose_of_install(store, None, name))
        message = f"removed {name}, which the lock file does not record any more"
        store.issues += (Issue("removed-by-sync", name, message, store.scope.install_folder(name), 0, "info"),)
    to_lock_path = store.link_folders.to_lock_path
    for path in leftovers.paths:
        digest = "" if is_link(path) else store.placed.digest_if_pristine(name_copy(to_lock_path(path)), path)
        store.stage_unlink(path, Disposal(digest=digest))


def describe_leftovers(scope: InstallScope, leftovers: Leftovers) -> list[str]:
    """What a sync is going to remove, a line each."""
    rows = [f"remove {name}, which the lock file does not record any more" for name in leftovers.installs]
    to_lock_path = LinkFolders(scope).to_lock_path
    return rows + [f"remove {to_lock_path(path)}, which the lock file does not record" for path in leftovers.paths]

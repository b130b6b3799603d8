"""Verification: every installed file and link compared with the lock files; nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue
from prowess.files.directory import exists
from prowess.files.paths import is_link, is_link_into, is_real_folder
from prowess.files.syscalls import wrap_os_errors
from prowess.install.agent_links import LinkFolders
from prowess.install.manifest import manifest_file_name, read_declarations
from prowess.install.manifest_diff import compare_manifest, describe_manifest_diff
from prowess.install.ownership import dispose_of_install
from prowess.install.store import Disposal, open_store_read_only
from prowess.installed.compare import verify_scope
from prowess.installed.placed import PlacedTrees, name_copy
from prowess.installed.policy_check import find_refusals
from prowess.installed.scopes import list_install_names
from prowess.lockfile.read import LOCK_FILE
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.store import Store
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries


def verify_installs(scopes: Sequence[InstallScope], limits: Limits) -> tuple[Issue, ...]:
    """Return an issue for everything in some scopes that is not as their lock files say, or that the policy refuses."""
    issues: list[Issue] = []
    for scope in scopes:
        # Under the lock, so that a change of another process is not taken for an edit.
        with wrap_os_errors(), open_store_read_only(scope, limits) as store:
            issues += store.issues
            refused = find_refusals(scope, store.locked)
            issues += verify_scope(scope, store.locked, store.link_folders.path_of_link, limits, refused=refused)
            issues += find_manifest_differences(scope, store.locked, limits)
        if not exists(os.path.join(scope.lock_folder, LOCK_FILE)):
            issues += find_lost_lock(scope, find_leftovers(scope, {}, limits))
    return tuple(issues)


def find_manifest_differences(scope: InstallScope, locked: LockEntries, limits: Limits) -> Iterator[Issue]:
    """An issue for everything that the manifest declares otherwise than the lock file records it (``lock-outdated``).

    Without a lock file, one issue says so. Raises ``InstallError`` for a manifest that is malformed.
    """
    declared = read_declarations(scope.lock_folder, limits)
    if exists(os.path.join(scope.lock_folder, LOCK_FILE)):
        for reason in describe_manifest_diff(compare_manifest(declared, locked, scope), locked):
            yield Issue("lock-outdated", LOCK_FILE, reason, scope.lock_folder)
    elif declared:  # a clone that was never synced, or whose lock file was never committed, is not verified
        file, entries = manifest_file_name(scope.lock_folder), format_count(len(declared), "source")
        message = f"{file} declares {entries}, and there is no {LOCK_FILE} that records what to install"
        yield Issue("lock-outdated", LOCK_FILE, message, scope.lock_folder)


class _Leftovers(NamedTuple):
    """Installs, and links and copies where agents look, that no lock entry records; false when there are none."""

    installs: tuple[str, ...] = ()
    """The names of installs that are as Prowess put them there."""
    paths: tuple[str, ...] = ()
    """Links into the install base, and copies that are as Prowess put them there."""

    def __bool__(self) -> bool:
        """Whether there is anything to remove."""
        return bool(self.installs or self.paths)


def find_leftovers(scope: InstallScope, locked: LockEntries, limits: Limits) -> _Leftovers:
    """What a sync removes without a question, because it is nobody's work and no lock entry records it."""
    placed = PlacedTrees(scope.base, limits)
    unrecorded = {name: scope.install_folder(name) for name in list_install_names(scope) if name not in locked}
    installs = tuple(name for name, place in unrecorded.items() if placed.is_pristine(name, place))
    # An install that somebody made or changed by hand stays, and so do the links to it.
    kept = [place for name, place in unrecorded.items() if name not in installs]
    return _Leftovers(installs, tuple(_find_leftover_paths(scope, locked, placed, kept)))


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


def find_lost_lock(scope: InstallScope, leftovers: _Leftovers) -> tuple[Issue, ...]:
    """Return a warning about leftovers without any lock file: somebody may have deleted it."""
    if not leftovers.installs or exists(os.path.join(scope.lock_folder, LOCK_FILE)):
        return ()
    count = format_count(len(leftovers.installs), "install")
    message = f"there is no {LOCK_FILE}, and {count} of Prowess {'is' if len(leftovers.installs) == 1 else 'are'} here"
    return (Issue("lock-missing", LOCK_FILE, message, scope.lock_folder, 0, "warning"),)


def stage_leftovers(store: Store, leftovers: _Leftovers) -> None:
    """Stage the removal of leftovers; an issue of the store names each install."""
    for name in leftovers.installs:
        store.stage_removal(name, dispose_of_install(store, None, name))
        message = f"removed {name}, which the lock file does not record any more"
        store.issues += (Issue("removed-by-sync", name, message, store.scope.install_folder(name), 0, "info"),)
    to_lock_path = store.link_folders.to_lock_path
    for path in leftovers.paths:
        digest = "" if is_link(path) else store.placed.digest_if_pristine(name_copy(to_lock_path(path)), path)
        store.stage_unlink(path, Disposal(digest=digest))


def describe_leftovers(scope: InstallScope, leftovers: _Leftovers) -> list[str]:
    """What a sync is going to remove, a line each."""
    rows = [f"remove {name}, which the lock file does not record any more" for name in leftovers.installs]
    to_lock_path = LinkFolders(scope).to_lock_path
    return rows + [f"remove {to_lock_path(path)}, which the lock file does not record" for path in leftovers.paths]

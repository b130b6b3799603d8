"""Verification: every installed file and link compared with the lock files; nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.files.directory import exists
from prowess.install.leftovers import find_leftovers, find_lost_lock
from prowess.install.manifest import manifest_file_name, read_declarations
from prowess.install.manifest_diff import compare_manifest, describe_manifest_diff
from prowess.install.store import open_store_read_only
from prowess.install.system_errors import wrap_os_errors
from prowess.installed.compare import verify_scope
from prowess.lockfile.read import LOCK_FILE
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries


def verify_installs(scopes: Sequence[InstallScope], limits: Limits) -> tuple[Issue, ...]:
    """An issue for everything in some scopes that is not as their lock files say."""
    issues: list[Issue] = []
    for scope in scopes:
        # Under the lock, so that a change of another process is not taken for an edit.
        with wrap_os_errors(), open_store_read_only(scope, limits) as store:
            issues += store.issues
            issues += verify_scope(scope, store.locked, store.link_folders.path_of_link, limits)
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

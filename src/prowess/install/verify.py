"""Verification: every installed file and link compared with the lock files; nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.files.directory import exists
from prowess.install.leftovers import find_leftovers, find_lost_lock
from prowess.install.manifest import manifest_file_name, read_declarations
from prowess.install.store import open_store_read_only
from prowess.install.system_errors import wrap_os_errors
from prowess.lockfile.compare import verify_scope
from prowess.lockfile.read import LOCK_FILE
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits
    from prowess.lockfile.scopes import InstallScope


def verify_installs(scopes: Sequence[InstallScope], limits: Limits) -> tuple[Issue, ...]:
    """An issue for everything in some scopes that is not as their lock files say."""
    issues: list[Issue] = []
    for scope in scopes:
        # Under the lock, so that a change of another process is not taken for an edit.
        with wrap_os_errors(), open_store_read_only(scope, limits) as store:
            issues += store.issues
            issues += verify_scope(scope, store.locked, store.link_folders.path_of_link, limits)
        issues += _find_missing_lock(scope, limits)
    return tuple(issues)


def _find_missing_lock(scope: InstallScope, limits: Limits) -> Iterator[Issue]:
    """An issue for a manifest that declares skills, and for installs, where no lock file records any.

    Raises ``InstallError`` for a manifest that makes no sense.
    """
    # Without it a clone that was never synced, or whose lock file was never committed, would count as verified.
    if exists(os.path.join(scope.lock_folder, LOCK_FILE)):
        return
    yield from find_lost_lock(scope, find_leftovers(scope, {}, limits))
    declared = read_declarations(scope.lock_folder, limits)
    if declared:
        file, entries = manifest_file_name(scope.lock_folder), format_count(len(declared), "source")
        message = f"{file} declares {entries}, and there is no {LOCK_FILE} that records what to install"
        yield Issue("lock-outdated", LOCK_FILE, message, scope.lock_folder)

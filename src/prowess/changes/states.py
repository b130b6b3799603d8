"""The states of the files that a plan names, so that a plan older than its files is known for what it is."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import ResourceError
from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_link, read_link
from prowess.files.tree import digest_tree, hash_file, hash_tree
from prowess.install.manifest import MANIFEST_FILE
from prowess.lockfile.read import LOCK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits


def read_file_states(paths: Iterable[str], limits: Limits) -> dict[str, str]:
    """Return a string for each path that changes with every byte at that path; for a link, its target."""
    return {path: _read_state(path, limits) for path in paths}


def list_scope_files(scope: InstallScope) -> list[str]:
    """Return the lock file and the manifest of a scope, which every change of its installs goes by."""
    return [os.path.join(scope.lock_folder, name) for name in (LOCK_FILE, MANIFEST_FILE)]


def _read_state(path: str, limits: Limits) -> str:
    if is_link(path):
        return f"a link to {read_link(path)}"
    if not exists(path):
        return "missing"
    try:
        if stat_folder(path) is not None:
            return f"a folder, {digest_tree(hash_tree(path, limits).files)}"
        return f"a file, {hash_file(os.path.dirname(path), (os.path.basename(path),), limits.max_digest_bytes).sha256}"
    except (OSError, ResourceError) as error:
        return f"unreadable: {error}"

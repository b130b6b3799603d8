"""Which files of the cache are not what their names say. Fetching does not use these, and fetches them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import GitError
from prowess.fetch.cache import sha256_hex
from prowess.fetch.git.objects import load_objects
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from prowess.fetch.cache import Cache, CachedFile
    from prowess.limits import Limits


def find_damaged(cache: Cache, limits: Limits) -> list[CachedFile]:
    """Return the files of the cache that are damaged; every file is read and hashed."""
    max_bytes = max(limits.max_fetch_bytes, limits.max_download_bytes, limits.max_install_bytes)
    found = []
    for file in report_steps(cache.list_files(), lambda file: file.kind):
        data = cache.read_file(file, max_bytes)
        if data is None or not _is_intact(file, data):
            found.append(file)
    return found


def _is_intact(file: CachedFile, data: bytes) -> bool:
    if file.kind == "git":
        try:
            return file.parts[-1] in load_objects(data)  # which compares each object with its id
        except GitError:
            return False
    name = "".join(file.parts[1:]) if file.kind == "sha256" else file.parts[-1]
    return sha256_hex(data) == name

"""How many files, and how many bytes of the disk, a program has used: by walking its folders, or of a file system.

A part of the supervisor, which loads this file by its path: only the standard library, and nothing of the package.
"""

from __future__ import annotations

import os
from contextlib import suppress

_MAX_DEPTH = 100


def measure_folders(folders: list[str], max_files: int) -> tuple[int, int]:
    """Return how many entries there are below some folders, and the bytes that they take on the disk.

    It stops beyond ``max_files``, and counts folders that are nested too deeply as too many files: a program must not
    keep the supervisor busy by what it creates.
    """
    files = size = 0
    queue = [(folder, 0) for folder in folders]
    while queue and files <= max_files:
        folder, depth = queue.pop()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                files += 1
                with suppress(OSError):
                    size += getattr(entry.stat(follow_symlinks=False), "st_blocks", 0) * 512
                    if entry.is_dir(follow_symlinks=False):
                        queue.append((entry.path, depth + 1))
                if files > max_files:
                    break
        if depth > _MAX_DEPTH:
            return max_files + 1, size
    return files, size


class LimitedFileSystem:
    """A mounted file system of limited size, with all folders that a program may write to."""

    def __init__(self, folder: str) -> None:
        self._handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        self.device = os.fstat(self._handle).st_dev
        self._initial_entries = self._count_entries()

    def _count_entries(self) -> int:
        info = os.fstatvfs(self._handle)
        return info.f_files - info.f_ffree

    def measure_usage(self) -> tuple[int, int]:
        """Return how many entries were made in it, and their bytes; files without a name count too."""
        info = os.fstatvfs(self._handle)
        return self._count_entries() - self._initial_entries, (info.f_blocks - info.f_bfree) * info.f_frsize

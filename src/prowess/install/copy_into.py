"""Skills copied into a folder of the caller: completely or not at all, and without leftovers."""

from __future__ import annotations

import os
import re
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.errors import AlreadyInstalledError
from prowess.files import syscalls
from prowess.files.delete import delete_tree
from prowess.files.directory import Folder, exists
from prowess.files.lock import lock_folder
from prowess.files.write import make_folders, sync_tree, write_tree
from prowess.progress_steps import report_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.install_tree import InstallTree
    from prowess.limits import Limits

_STAGED_NAME = re.compile(r"\.prowess-[0-9a-f]{16}")


def refuse_taken_places(spec: SourceSpec, folder: str) -> None:
    """Raise ``AlreadyInstalledError`` when the folder already holds an entry named like one of the skills."""
    for name in spec.skills or (spec.name,):
        place = os.path.join(folder, name)
        if exists(place):
            raise AlreadyInstalledError(f"skill {spec.org}/{name} already exists at {place}", place)


def copy_trees_into(folder: str, trees: Sequence[InstallTree], limits: Limits) -> list[str]:
    """Copy trees into a folder, each under its name; returns their paths.

    Raises ``AlreadyInstalledError`` when a place is taken. What an interrupted process left there is deleted first.
    """
    make_folders(folder)
    with lock_folder(folder, seconds=limits.max_lock_seconds):
        _delete_leftovers(folder)
        try:
            # All trees are written before the first is moved: what is too large for the disk leaves nothing behind.
            steps = report_steps(trees, lambda tree: tree.name)
            staged = [(_stage_tree(folder, tree), os.path.join(folder, tree.name.partition("/")[2])) for tree in steps]
            for waiting, place in staged:
                _move_into_place(waiting, place)
            syscalls.sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                _delete_leftovers(folder)
            raise
        return [place for _, place in staged]


def _stage_tree(folder: str, tree: InstallTree) -> str:
    """Write a tree beside its place, where a rename can move it; returns the path."""
    staged = os.path.join(folder, f".prowess-{secrets.token_hex(8)}")
    syscalls.make_folder(staged, 0o755)
    write_tree(staged, report_steps(tree.files, lambda file: file.path))
    sync_tree(staged)
    return staged


def _move_into_place(staged: str, place: str) -> None:
    if exists(place):  # another program may have put it there since the places were checked
        raise AlreadyInstalledError(f"there is something at {place} already", place)
    syscalls.rename(staged, place)


def _delete_leftovers(folder: str) -> None:
    with Folder(folder) as opened:
        names = opened.list_entries().folders
    for name in names:
        if _STAGED_NAME.fullmatch(name):
            delete_tree(os.path.join(folder, name))

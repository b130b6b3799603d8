"""Skills copied into a folder of the caller's: whole or not at all, and nothing else is left there."""

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

    from prowess.install.tree import InstallTree
    from prowess.limits import Limits
    from prowess.spec.source_spec import SourceSpec

_STAGED_NAME = re.compile(r"\.prowess-[0-9a-f]{16}")


def refuse_taken_places(spec: SourceSpec, folder: str) -> None:
    """Raise ``AlreadyInstalledError`` where something is in the place of a skill that is to be copied into a folder."""
    for name in spec.skills or (spec.name,):
        place = os.path.join(folder, name)
        if exists(place):
            raise AlreadyInstalledError(f"skill {spec.org}/{name} already exists at {place}", place)


def copy_trees_into(folder: str, trees: Sequence[InstallTree], limits: Limits) -> list[str]:
    """Where the trees are then, each under its name. What an interrupted process left in the folder goes first."""
    make_folders(folder)
    with lock_folder(folder, seconds=limits.max_lock_seconds):
        _delete_leftovers(folder)
        try:
            each = report_steps(trees, lambda tree: tree.name)
            staged = [(_stage_tree(folder, tree), os.path.join(folder, tree.name.partition("/")[2])) for tree in each]
            for waiting, place in staged:
                _move_into_place(waiting, place)
            syscalls.sync_folder(folder)
        except BaseException:
            with suppress(OSError):
                _delete_leftovers(folder)
            raise
        return [place for _, place in staged]


def _stage_tree(folder: str, tree: InstallTree) -> str:
    where = os.path.join(folder, f".prowess-{secrets.token_hex(8)}")
    syscalls.make_folder(where, 0o755)
    write_tree(where, report_steps(tree.files, lambda file: file.path))
    sync_tree(where)
    return where


def _move_into_place(staged: str, place: str) -> None:
    if exists(place):
        raise AlreadyInstalledError(f"there is something at {place} already", place)
    syscalls.rename(staged, place)


def _delete_leftovers(folder: str) -> None:
    with Folder(folder) as opened:
        names = opened.list_entries().folders
    for name in names:
        if _STAGED_NAME.fullmatch(name):
            delete_tree(os.path.join(folder, name))

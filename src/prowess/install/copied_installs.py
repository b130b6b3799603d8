"""Installs that are copies: their files read from where agents look, since the install base has none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.paths import is_real_folder
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.lockfile.compare import is_exact_copy
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from prowess.install.agent_links import LinkFolders
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


def read_whole_copies(entry: LockEntry, landings: LinkFolders, limits: Limits) -> tuple[NewFile, ...] | None:
    """The files of an install out of copies that are as recorded; ``None`` where a skill has no such copy."""
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = _copy_paths(entry, skill, landings)
        whole = next((path for path in paths if is_exact_copy(entry, path, limits)), None)
        if whole is None:
            return None
        files += _read_copy(whole, folder, limits)
    return tuple(files)


def read_copies(entry: LockEntry, landings: LinkFolders, limits: Limits) -> tuple[NewFile, ...]:
    """The files of an install as they are now, edited or not: of each skill those of the first copy that differs.

    Where none differs, those of the first copy that is there.
    """
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = [path for path in _copy_paths(entry, skill, landings) if is_real_folder(path)]
        edited = next((path for path in paths if not is_exact_copy(entry, path, limits)), None)
        if paths:
            files += _read_copy(edited or paths[0], folder, limits)
    return tuple(files)


def _copy_paths(entry: LockEntry, skill: str, landings: LinkFolders) -> list[str]:
    name = link_name(skill)
    return [landings.path_of_link(recorded) for recorded in entry.copies if os.path.basename(recorded) == name]


def _read_copy(path: str, folder: str, limits: Limits) -> list[NewFile]:
    """The files of one copy, named as the lock file has them."""
    prefix = f"{folder}/" if folder else ""
    files = (NewFile(*row) for row in read_tree(path, limits).files)
    return [file._replace(path=prefix + file.path) for file in files]

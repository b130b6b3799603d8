"""Installs that are copies: their files read from where agents look, since the install base has none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.paths import is_real_folder
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.lockfile.compare import is_copy
from prowess.spec.skill_ref import link_name

if TYPE_CHECKING:
    from prowess.install.agent_links import Landings
    from prowess.limits import Limits
    from prowess.lockfile.read import LockedSkill


def read_whole_copies(entry: LockedSkill, landings: Landings, limits: Limits) -> tuple[NewFile, ...] | None:
    """The files of an install out of copies that are as recorded; ``None`` where a skill has no such copy."""
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = _paths_of(entry, skill, landings)
        whole = next((path for path in paths if is_copy(entry, path, limits)), None)
        if whole is None:
            return None
        files += _files_below(whole, folder, limits)
    return tuple(files)


def read_copies(entry: LockedSkill, landings: Landings, limits: Limits) -> tuple[NewFile, ...]:
    """The files of an install as they are now, edited or not: of each skill those of the first copy that differs.

    Where none differs, those of the first copy that is there.
    """
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = [path for path in _paths_of(entry, skill, landings) if is_real_folder(path)]
        edited = next((path for path in paths if not is_copy(entry, path, limits)), None)
        if paths:
            files += _files_below(edited or paths[0], folder, limits)
    return tuple(files)


def _paths_of(entry: LockedSkill, skill: str, landings: Landings) -> list[str]:
    name = link_name(skill)
    return [landings.path(recorded) for recorded in entry.copies if os.path.basename(recorded) == name]


def _files_below(path: str, folder: str, limits: Limits) -> list[NewFile]:
    """The files of one copy, named as the lock file has them."""
    prefix = f"{folder}/" if folder else ""
    files = (NewFile(*row) for row in read_tree(path, limits).files)
    return [file._replace(path=prefix + file.path) for file in files]

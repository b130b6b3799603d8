"""The files of an install as they are on the disk: in its folder, or, in copy mode, in the copies where agents look."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.errors import ResourceNotFoundError
from prowess.files.paths import is_real_folder
from prowess.files.read import OpenFile
from prowess.files.tree import is_executable, read_tree
from prowess.files.write import NewFile
from prowess.install.install_tree import take_recorded_modes
from prowess.installed.compare import NOT_SYNCED, compare_folder, compare_install, is_exact_copy
from prowess.names import link_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.install.agent_links import LinkFolders
    from prowess.installed.compare import Difference
    from prowess.installed.placed import PlacedTrees
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


def read_current_files(entry: LockEntry, link_folders: LinkFolders, limits: Limits) -> tuple[NewFile, ...]:
    """Return the files of an install as they are now, edited or not.

    A skill may have several copies: its files are those of the first copy that was edited, else of the first one.
    """
    if not entry.is_copied:
        return take_recorded_modes(read_folder(link_folders.scope.install_folder(entry.name), limits), entry.files)
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = [path for path in _copy_paths(entry, skill, link_folders) if is_real_folder(path)]
        # The edited copy counts: it is what an update would overwrite, so a diff has to show it.
        edited = next((path for path in paths if not is_exact_copy(entry, path, limits)), None)
        if paths:
            files += read_folder(edited or paths[0], limits, folder)
    return take_recorded_modes(files, entry.files)


def read_unedited_files(entry: LockEntry, link_folders: LinkFolders, limits: Limits) -> tuple[NewFile, ...] | None:
    """Return the files of an install, from copies that nobody edited; ``None`` when a skill has no such copy.

    The folder of an install that is not in copy mode is read as it is: the caller has compared it.
    """
    if not entry.is_copied:
        return take_recorded_modes(read_folder(link_folders.scope.install_folder(entry.name), limits), entry.files)
    files: list[NewFile] = []
    for skill, folder in entry.skills.items():
        paths = _copy_paths(entry, skill, link_folders)
        unedited = next((path for path in paths if is_exact_copy(entry, path, limits)), None)
        if unedited is None:
            return None
        files += read_folder(unedited, limits, folder)
    return take_recorded_modes(files, entry.files)


def _copy_paths(entry: LockEntry, skill: str, link_folders: LinkFolders) -> list[str]:
    # A copy is named after its skill; an install of several skills has copies of each.
    name = link_name(skill)
    return [link_folders.path_of_link(recorded) for recorded in entry.copies if os.path.basename(recorded) == name]


def read_files(path: str, names: Iterable[str], limits: Limits) -> tuple[NewFile, ...]:
    """Some of the files of a folder; those that are missing are left out."""
    files: list[NewFile] = []
    for name in names:
        with suppress(ResourceNotFoundError), OpenFile(path, tuple(name.split("/"))) as file:
            files.append(NewFile(name, file.read_all(limits.max_install_bytes), is_executable(file)))
    return tuple(files)


def read_folder(path: str, limits: Limits, inside: str = "") -> tuple[NewFile, ...]:
    """Return the files of a folder, named as if the folder were at ``inside``.

    Raises ``OSError`` when there is none.
    """
    files = (NewFile(*row) for row in read_tree(path, limits).files)
    return tuple(file._replace(path=f"{inside}/{file.path}") if inside else file for file in files)


def compare_files(
    entry: LockEntry, link_folders: LinkFolders, limits: Limits, placed: PlacedTrees | None = None
) -> list[Difference]:
    """Return how the files of an install differ from its lock entry; a copy that is missing as a whole does not count.

    With ``placed``, an install that is as Prowess put it there differs as a whole, with ``not-synced``.
    """
    if not entry.is_copied:
        parts = placed.parts_of(entry.name) if placed is not None else None
        return compare_folder(entry.files, link_folders.scope.install_folder(entry.name), limits, placed=parts)
    # A missing copy holds nothing that an update could destroy; only changed files count.
    differences = compare_install(entry, link_folders.scope, link_folders.path_of_link, limits, placed)
    return [difference for difference in differences if difference.is_edit or difference.code == NOT_SYNCED]

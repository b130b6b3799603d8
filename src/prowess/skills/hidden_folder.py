"""A skill without one of its folders: what is in the folder is neither named nor read, and everything else stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import ResourceNotFoundError
from prowess.names import split_resource_path
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from prowess.literals import OnBadBytes
    from prowess.model import FileList, Resources
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill


class FilesWithoutFolder(SkillFiles):
    """The files of a skill on this machine, except those in one folder at its top.

    ``list_files`` and ``digest`` are still about all files, because they say what a script could use, and a person's
    grant is about them.
    """

    __slots__ = ("_files", "_folder")

    def __init__(self, files: SkillFiles, folder: str) -> None:
        self._files = files
        self._folder = folder

    def load(self, skill: Skill) -> LoadedSkill:
        return self._files.load(skill)

    def read_body(self, skill: Skill, errors: OnBadBytes, limit: int) -> str | bytes:
        return self._files.read_body(skill, errors, limit)

    def list_files(self, skill: Skill) -> FileList:
        return self._files.list_files(skill)

    def list_resources(self, skill: Skill) -> Resources:
        return self._files.list_resources(skill)  # it does not go into other folders than the usual ones

    def resource_paths(self, skill: Skill) -> tuple[str, ...]:
        return self._files.resource_paths(skill)

    def readable_paths(self, skill: Skill) -> tuple[str, ...]:
        return tuple(path for path in self._files.readable_paths(skill) if path.split("/")[0] != self._folder)

    def read_text(self, skill: Skill, path: str, limit: int, *, truncate: bool) -> str:
        self._check_path(path)
        return self._files.read_text(skill, path, limit, truncate=truncate)

    def read_bytes(self, skill: Skill, path: str, limit: int) -> bytes:
        self._check_path(path)
        return self._files.read_bytes(skill, path, limit)

    def digest(self, skill: Skill) -> str:
        return self._files.digest(skill)

    def _check_path(self, path: str) -> None:
        # Some file systems take names of another case for equal.
        if split_resource_path(path)[0].casefold() == self._folder.casefold():
            raise ResourceNotFoundError(f"no file {path[:200]!r}", path)


def hide_folder(skill: Skill, folder: str) -> Skill:
    """Return the skill without the folder of this name at its top; a skill that is not on this machine as it is."""
    if not skill.is_local:
        return skill
    return skill.with_source(files=FilesWithoutFolder(skill._location.files, folder))

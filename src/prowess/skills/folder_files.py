"""The files of a skill in a folder on this machine: each read stays below the folder, and within the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import ResourceError
from prowess.files.read import HAS_CHANGE_TIME, OpenFile, read_if_same
from prowess.names import split_resource_path
from prowess.skills import instructions, resources
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from prowess.files.read import Identity
    from prowess.model import FileList, Resources
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill


class FolderFiles(SkillFiles):
    """A folder on this machine. It holds nothing of its own: the skill knows its folder."""

    __slots__ = ()

    # -- SKILL.md ----------------------------------------------------------------------------------------------------

    def load(self, skill: Skill) -> LoadedSkill:
        data, identity = self._read_skill_file(skill, skill.limits.max_body_bytes)
        fresh = skill.with_file(data, identity)
        return instructions.LoadedSkill(fresh, instructions.extract_instructions(skill, data, fresh.body_offset))

    def _read_skill_file(self, skill: Skill, limit: int) -> tuple[bytes, Identity]:
        """The whole SKILL.md and its identity; ``limit``: how many bytes its body may have."""
        known = skill.identity
        if known is not None:
            # Fast path of the bench row "load_skill, first call": a file with the identity that was seen is the one
            # that was opened below its folder, so one open by its path will do.
            data = read_if_same(skill.location, known, 0, limit)
            if data is not None:
                return data, known
        try:
            with _open_skill_file(skill) as file:
                return file.read_all(skill.limits.max_frontmatter_bytes + limit), file.identity
        except ResourceError as error:
            raise instructions.unreadable_error(skill, error, limit) from None

    def _read_body_bytes(self, skill: Skill, limit: int) -> tuple[bytes, int]:
        known, offset = skill.identity, skill.body_offset
        if known is not None:
            # Fast path, as in ``_read_skill_file``: an unchanged head need not be parsed to find where the body begins.
            body = read_if_same(skill.location, known, offset, limit)
            if body is not None:
                return body, offset
        try:
            with _open_skill_file(skill) as file:
                if not HAS_CHANGE_TIME or known != file.identity:
                    offset = instructions.read_body_offset(skill, file)
                return file.read_all(limit, offset), offset
        except ResourceError as error:
            raise instructions.unreadable_error(skill, error, limit) from None

    # -- all files ---------------------------------------------------------------------------------------------------

    def list_files(self, skill: Skill) -> FileList:
        return resources.list_files(skill.base, skill.parts, skill.location, skill.limits)

    def list_resources(self, skill: Skill) -> Resources:
        return resources.list_resources(skill.base, skill.parts, skill.file_name, skill.location, skill.limits)

    def resource_paths(self, skill: Skill) -> tuple[str, ...]:
        plain = resources.list_plain_paths(skill.base, skill.parts, skill.file_name, skill.limits)
        return self.list_resources(skill).paths if plain is None else plain.paths

    def readable_paths(self, skill: Skill) -> tuple[str, ...]:
        # Fast path: nearly every skill has files in the usual places or none, and needs no walk of its whole folder.
        plain = resources.list_plain_paths(skill.base, skill.parts, skill.file_name, skill.limits)
        if plain is not None and (plain.paths or not plain.has_folders):
            return plain.paths
        return self.list_resources(skill).paths or resources.find_readable(self.list_files(skill), skill.file_name)

    def read_text(self, skill: Skill, path: str, limit: int, *, truncate: bool) -> str:
        with OpenFile(skill.base, (*skill.parts, *split_resource_path(path))) as file:
            size = file.info.st_size  # may be 0 for files, such as those in /proc, that do hold something
            data = file.read(limit + 1)  # one byte more shows that there is more
        return resources.decode_within(data, path, limit, truncate=truncate, size=max(size, len(data)))

    def read_bytes(self, skill: Skill, path: str, limit: int) -> bytes:
        with OpenFile(skill.base, (*skill.parts, *split_resource_path(path))) as file:
            return file.read_all(limit)

    def digest(self, skill: Skill) -> str:
        return resources.digest_folder(skill.base, skill.parts, skill.location, skill.limits)


def _open_skill_file(skill: Skill) -> OpenFile:
    return OpenFile(skill.base, (*skill.parts, skill.file_name))

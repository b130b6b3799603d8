"""The files of a skill that is a text in a program: it has none, and its body is that text."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from prowess.errors import ResourceError
from prowess.model import FileList, Resources
from prowess.skills.instructions import LoadedSkill, strip_body
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from prowess.literals import OnBadBytes
    from prowess.skills.skill import Skill


class InlineFiles(SkillFiles):
    """The text of an inline skill, and no files."""

    __slots__ = ("_body",)

    is_inline = True

    def __init__(self, body: str) -> None:
        self._body = body

    def get_location(self, skill: Skill) -> str:
        return f"inline:{skill.name}"

    def load(self, skill: Skill) -> LoadedSkill:
        return LoadedSkill(skill, strip_body(self._body))

    def read_body(self, skill: Skill, errors: OnBadBytes, limit: int) -> str | bytes:
        # No limit: the program holds the text in memory already.
        return self._body.encode() if errors == "bytes" else self._body

    def read_source(self, skill: Skill) -> str:
        return self._body

    def list_files(self, skill: Skill) -> FileList:
        return FileList()

    def list_resources(self, skill: Skill) -> Resources:
        return Resources()

    def _read_whole(self, skill: Skill, path: str) -> NoReturn:
        raise ResourceError("the skill is text only and has no files", code="no-files")

    def digest(self, skill: Skill) -> str:
        self._read_whole(skill, "")

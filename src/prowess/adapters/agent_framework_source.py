"""Skills for the ``SkillsProvider`` of Microsoft's Agent Framework, which has tools of its own."""

from __future__ import annotations

import logging
from asyncio import to_thread
from typing import TYPE_CHECKING

from agent_framework import FileSkill, SkillFrontmatter, SkillResource, SkillScript, SkillsSource
from agent_framework import Skill as NativeSkill

if TYPE_CHECKING:
    from agent_framework import SkillsSourceContext

    from prowess.adapters.core import SkillsAdapter
    from prowess.skills.skill import Skill


def source(skills: SkillsAdapter) -> SkillsSource:
    """Return the skills as a source for the framework's own ``SkillsProvider(source)``, which then has its own tools.

    It has the skills that a model may have here: those that passed the checks of their sources, the filter and
    ``allowed``. The framework asks people in its own way. Scripts are offered only with ``Skills(scripts=…)``, and run
    under its trust.
    """
    return _Source(skills)


class _Source(SkillsSource):
    def __init__(self, skills: SkillsAdapter) -> None:
        self._skills = skills

    async def get_skills(self, context: SkillsSourceContext) -> list[NativeSkill]:
        """Return every skill; one that breaks the framework's own rules is logged and left out."""
        return await to_thread(self._list_skills)

    def _list_skills(self) -> list[NativeSkill]:
        offered: list[NativeSkill] = []
        for skill in self._skills.list_skills():
            try:
                offered.append(_LazySkill(self._skills, skill))
            except ValueError as error:
                logging.getLogger("prowess").warning("Agent Framework does not take a skill: %s", error)
        return offered


class _LazySkill(NativeSkill):
    """A skill whose files are read when the model asks for them."""

    def __init__(self, skills: SkillsAdapter, skill: Skill) -> None:
        self._skills = skills
        self._skill = skill
        front = skill.frontmatter
        self._head = SkillFrontmatter(
            name=skill.name,
            description=skill.description,
            license=front.license or None,
            compatibility=front.compatibility or None,
            allowed_tools=" ".join(front.allowed_tools) or None,
            metadata={key: str(value) for key, value in front.metadata.items()},
        )

    @property
    def frontmatter(self) -> SkillFrontmatter:
        """The head of the skill."""
        return self._head

    async def get_content(self) -> str:
        """Return the SKILL.md, and the names of its files; raises ``SkillError``."""
        return str(await (await to_thread(self._load)).get_content())

    async def get_resource(self, name: str) -> SkillResource | None:
        """Return a file of the skill; ``None`` when it has no such file."""
        return await (await to_thread(self._load)).get_resource(name)

    async def get_script(self, name: str) -> SkillScript | None:
        """Return a script of the skill; ``None`` when it has none, or when scripts are not run here."""
        return await (await to_thread(self._load)).get_script(name)

    def _load(self) -> FileSkill:
        paths = [path for path in self._skill.files() if path != "SKILL.md"]
        can_run = "run_skill_script" in {definition.name for definition in self._skills.list_definitions()}
        scripts = [path for path in paths if path.startswith("scripts/")] if can_run else []
        return FileSkill(
            frontmatter=self._head,
            content=self._skill.read_text(),
            path=self._skill.location,
            resources=[_File(self._skill, path) for path in paths],
            scripts=[_Script(self._skills, self._skill, path) for path in scripts],
        )


class _File(SkillResource):
    def __init__(self, skill: Skill, path: str) -> None:
        super().__init__(name=path)
        self._skill = skill

    async def read(self, **_kwargs: object) -> object:
        """Return the text of the file, or its bytes when it is no text."""
        data = await to_thread(self._skill.read_bytes, self.name)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data


class _Script(SkillScript):
    def __init__(self, skills: SkillsAdapter, skill: Skill, path: str) -> None:
        super().__init__(name=path)
        self._skills = skills
        self._skill = skill

    async def run(self, skill: NativeSkill, args: object = None, **_kwargs: object) -> str:
        """Run the script in the sandbox, if it is trusted; return what it printed, or why it did not run."""
        arguments = {"name": self._skill.name, "script": self.name, "args": args or []}
        return (await self._skills.conversations.begin().acall("run_skill_script", arguments)).content

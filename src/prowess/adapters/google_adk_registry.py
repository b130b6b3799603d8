"""Skills for the ``SkillToolset`` of Google's Agent Development Kit, which has tools of its own."""

from __future__ import annotations

from asyncio import to_thread
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from google.adk.skills import SkillRegistry
from google.adk.skills import models as native
from pydantic import ValidationError

from prowess.errors import SkillError, UnknownSkillError

if TYPE_CHECKING:
    from prowess.adapters.core import SkillsAdapter
    from prowess.skills.skill import Skill

_MAX_HITS = 10


def registry(skills: SkillsAdapter) -> SkillRegistry:
    """Return the skills as a registry for ADK's own ``SkillToolset(registry=…)``, which then has its own tools.

    It has the skills that a model may have here: those that passed the checks of their sources, the filter and
    ``allowed``. ADK runs their scripts in its own way, so trust, approval and forks are ADK's as well.
    """
    return _Registry(skills)


class _Registry(SkillRegistry):
    def __init__(self, skills: SkillsAdapter) -> None:
        self._skills = skills

    async def get_skill(self, *, name: str) -> native.Skill:
        """Return a skill with its files; raises ``UnknownSkillError`` for a name that models may not have."""
        return await to_thread(self._load_skill, name)

    def _load_skill(self, name: str) -> native.Skill:
        offered = {skill.name: skill for skill in self._skills.list_skills()}
        if name not in offered:
            raise UnknownSkillError(name, offered)
        return make_native_skill(offered[name])

    async def search_skills(self, *, query: str) -> list[native.Frontmatter]:
        """Return the heads of the skills that fit a request, best first; a head that ADK refuses is left out."""
        return await to_thread(self._search_skills, query)

    def _search_skills(self, query: str) -> list[native.Frontmatter]:
        offered = [skill.name for skill in self._skills.list_skills()]
        heads = []
        for hit in self._skills.catalog.rank_skills(query, offered, _MAX_HITS):
            with suppress(SkillError):
                heads.append(make_native_head(hit.skill))
        return heads


def make_native_skill(skill: Skill) -> native.Skill:
    """Return a skill as ADK's own tools take it, with the files of its three folders; raises ``SkillError``."""
    folders: dict[str, dict[str, Any]] = {"references": {}, "assets": {}, "scripts": {}}
    for path in skill.files():
        folder, _, rest = path.partition("/")
        if rest and folder in folders:
            folders[folder][rest] = content = skill.read_bytes(path)
            with suppress(UnicodeDecodeError):
                folders[folder][rest] = content.decode()
    scripts = {path: native.Script(src=text) for path, text in folders["scripts"].items() if isinstance(text, str)}
    resources = native.Resources(references=folders["references"], assets=folders["assets"], scripts=scripts)
    return native.Skill(frontmatter=make_native_head(skill), instructions=skill.read_body(), resources=resources)


def make_native_head(skill: Skill) -> native.Frontmatter:
    """Return the head of a skill as ADK's own tools take it; raises ``SkillError`` where ADK has stricter rules."""
    try:
        return native.Frontmatter.model_validate({**skill.frontmatter.typed(), "name": skill.name})
    except ValidationError as error:
        raise SkillError(f"ADK does not take the skill {skill.name!r}: {error.errors()[0]['msg']}") from None

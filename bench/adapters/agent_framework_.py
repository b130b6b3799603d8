from __future__ import annotations

import asyncio

from agent_framework import FileSkillsSource, SkillsSourceContext

_LOOP = asyncio.Runner()


def discover(root: str) -> list[tuple[str, str]]:
    source = FileSkillsSource(root)
    found = _LOOP.run(source.get_skills(SkillsSourceContext(agent=None)))
    return [(skill.frontmatter.name, skill.frontmatter.description) for skill in found]

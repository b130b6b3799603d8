from __future__ import annotations

from fastmcp.server.providers.skills import SkillsDirectoryProvider


def discover(root: str) -> list[tuple[str, str]]:
    found = [provider.skill_info for provider in SkillsDirectoryProvider(roots=root).providers]
    return [(skill.name, skill.description) for skill in found]

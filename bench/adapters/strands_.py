from __future__ import annotations

from strands.vended_plugins.skills import Skill


def discover(root: str) -> list[tuple[str, str]]:
    return [(skill.name, skill.description) for skill in Skill.from_directory(root)]

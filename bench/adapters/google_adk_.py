from __future__ import annotations

from google.adk.skills import list_skills_in_dir


def discover(root: str) -> list[tuple[str, str]]:
    return [(skill.name, skill.description) for skill in list_skills_in_dir(root).values()]

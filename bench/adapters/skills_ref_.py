from __future__ import annotations

from pathlib import Path

from skills_ref import read_properties


def discover(root: str) -> list[tuple[str, str]]:
    found = [read_properties(folder) for folder in Path(root).iterdir()]
    return [(skill.name, skill.description) for skill in found]

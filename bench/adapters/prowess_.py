from __future__ import annotations

import prowess


def discover(root: str) -> list[tuple[str, str]]:
    return [(skill.name, skill.description) for skill in prowess.scan(root)]

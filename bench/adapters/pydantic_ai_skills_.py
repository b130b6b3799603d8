from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_skills import SkillsCapability

_LOOP = asyncio.Runner()
_RUN = RunContext(deps=None, model=TestModel(), usage=RunUsage())


def discover(root: str) -> list[tuple[str, str]]:
    capability = _LOOP.run(SkillsCapability(root).for_run(_RUN))
    found: list[Any] = []
    capability.apply(found.append)
    return [(skill.id, skill.description) for skill in found if skill is not capability]

"""Which skills a command is about that names none: the one in this folder, or the project's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.authoring.check import skill_files
from prowess.cli.verified import absence
from prowess.errors import SourceError

if TYPE_CHECKING:
    from prowess.library.settings import Settings


def find_own_paths(settings: Settings) -> tuple[str, ...]:
    """The folders that are meant without a path: this one if it is a skill, else those set, else the project's.

    Raises ``SourceError`` (``missing-skill-md``) where none of them holds a skill.
    """
    if os.path.lexists("SKILL.md"):
        return (".",)
    if settings.names("folders"):
        return settings.names("folders")
    from prowess.library.scan import discover  # noqa: PLC0415 - only without a path
    from prowess.model import SkillScope  # noqa: PLC0415

    places = discover(agents=settings.names("agents")).places
    paths = tuple(
        place.path
        for place in places
        if place.scope is SkillScope.PROJECT and place.state != "missing" and _has_skills(place.path)
    )
    if not paths:
        why = absence() or "name a skill's folder, or a folder of skills"
        raise SourceError(f"there is no skill here: {why}", os.getcwd(), "missing-skill-md")
    return paths


def _has_skills(path: str) -> bool:
    """Whether there is a skill at or below ``path``; links that lead out of it, as installs make, count as none."""
    try:
        return bool(skill_files(path))
    except SourceError:
        return False

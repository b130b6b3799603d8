"""Which skills a command is about that names none: the one in this folder, or the project's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.authoring.check import find_skill_files
from prowess.cli.lock_states import suggest_sync
from prowess.cli.options import is_skill_folder
from prowess.errors import SourceError
from prowess.names import SKILL_FILE

if TYPE_CHECKING:
    from prowess.discovery.settings import Settings


def find_own_paths(settings: Settings) -> tuple[str, ...]:
    """The folders that are meant without a path: this one if it is a skill, else those set, else the project's.

    Raises ``SourceError`` (``missing-skill-md``) where none of them holds a skill.
    """
    if os.path.lexists(SKILL_FILE):
        return (".",)
    if settings.names("folders"):
        return settings.names("folders")
    from prowess.discovery.scan import discover  # noqa: PLC0415 - only without a path
    from prowess.model import SkillScope  # noqa: PLC0415

    places = discover(agents=settings.names("agents")).places
    paths = tuple(
        place.path
        for place in places
        if place.scope is SkillScope.PROJECT and place.state != "missing" and _has_skills_below(place.path)
    )
    if not paths:
        raise SourceError(f"there is no skill {_suggest_location()}", os.getcwd(), "missing-skill-md")
    return paths


def _suggest_location() -> str:
    """What to do where no skill was found: bring what the lock file records, or name the folder that has some."""
    absent = suggest_sync()
    if not absent and any(map(_has_skill_folders, (os.curdir, "skills"))):
        return "where agents look; for those below this folder, name it: ."
    why = absent or "name a skill's folder, or a folder of skills"
    return f"here: {why}"


def _has_skill_folders(folder: str) -> bool:
    """Whether a skill's folder lies right in ``folder``: a glance, since a whole home folder may lie below it."""
    return os.path.isdir(folder) and any(is_skill_folder(os.path.join(folder, name)) for name in os.listdir(folder))


def _has_skills_below(path: str) -> bool:
    """Whether there is a skill at or below ``path``; links that lead out of it, as installs make, count as none."""
    try:
        return bool(find_skill_files(path))
    except SourceError:
        return False

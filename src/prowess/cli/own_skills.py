"""The skills that ``check`` and ``eval`` are about if none is named: the one in this folder, or the project's."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.authoring.check import find_skill_files
from prowess.cli.lock_states import suggest_sync
from prowess.cli.skill_lookup import is_skill_folder
from prowess.discovery.scan import discover
from prowess.errors import SourceError
from prowess.model import SkillScope

if TYPE_CHECKING:
    from prowess.settings import Settings


def find_own_paths(settings: Settings) -> tuple[str, ...]:
    """Return this folder if it is a skill, or the folders of the settings, or those of the project that hold skills.

    Raise ``SourceError`` (``missing-skill-md``) if none of them holds a skill.
    """
    if is_skill_folder(os.curdir):
        return (".",)
    if settings.names("folders"):
        return settings.names("folders")
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
    """Return the end of a sentence: bring what the lock file records, or name a folder that has skills."""
    absent = suggest_sync()
    if not absent and any(map(_has_skill_folders, (os.curdir, "skills"))):
        return "where agents look; for those below this folder, name it: ."
    return "here: " + (absent or "name a skill's folder, or a folder of skills")


def _has_skill_folders(folder: str) -> bool:
    """Return True when a folder of a skill lies right in ``folder``."""
    # Only one level deep: a whole home folder may lie below.
    return os.path.isdir(folder) and any(is_skill_folder(os.path.join(folder, name)) for name in os.listdir(folder))


def _has_skills_below(path: str) -> bool:
    """Return True when there is a skill at or below ``path``."""
    try:
        # Links that lead out of the folder, as installs make them, do not count: their authors check those skills.
        return bool(find_skill_files(path))
    except SourceError:
        return False

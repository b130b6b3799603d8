"""The standard places: which folders hold skills, and in which order they win.

The project's folders come first, from the working folder up to the root of its git repository, the nearest winning;
then the user's own. In each folder: ``.prowess/skills``, ``.agents/skills``, ``.claude/skills``, ``.github/skills``,
then those of the agents asked for. The user's: ``$XDG_CONFIG_HOME/prowess/skills`` (else ``~/.config``),
``~/.agents/skills``, ``~/.claude/skills``, then the agents'.

``files/projects.py`` says where the walk up from the working folder ends.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.discovery.agents import get_agent
from prowess.files.projects import NATIVE_PROJECT, config_home, project_folders
from prowess.model import Place, SkillScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

BASE_NAME = os.path.join("prowess", "skills")
"""How the path of every install base in the standard places ends."""
SHARED_SKILLS = ".agents/skills"
CLAUDE_SKILLS = ".claude/skills"
GITHUB_SKILLS = ".github/skills"
"""Where GitHub Copilot and VS Code look in a project, besides the two above."""


def standard_places(
    cwd: str,
    home: str,
    *,
    agents: Iterable[str] = (),
    project: bool = True,
    user: bool = True,
    env: Mapping[str, str] | None = None,
) -> tuple[Place, ...]:
    """Return every folder where skills may be, the one that wins first.

    ``project`` and ``user`` say whose folders count, ``agents`` whose besides; ``env`` has the variables that move an
    agent's folders.
    """
    chosen = [get_agent(name) for name in agents]
    env = env or {}
    places: dict[str, Place] = {}
    if project:
        for folder in project_folders(cwd, home):
            standard = NATIVE_PROJECT, SHARED_SKILLS, CLAUDE_SKILLS, GITHUB_SKILLS
            for name in (*standard, *(agent.project for agent in chosen)):
                _add_place(places, os.path.join(folder, name), SkillScope.PROJECT)
    if user:
        for path in user_folders(home, env):
            _add_place(places, path, SkillScope.USER)
        for agent in chosen:
            for path in agent.user_folders(home, env):
                _add_place(places, path, SkillScope.USER)
    return tuple(places.values())


def _add_place(places: dict[str, Place], path: str, scope: SkillScope) -> None:
    path = os.path.normpath(path)
    # The first wins: a folder that several agents share keeps the rank of the first of them.
    places.setdefault(path, Place(path, scope))


def user_folders(home: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the user's own folders."""
    yield os.path.join(config_home(home, env), "prowess", "skills")
    yield os.path.join(home, os.path.normpath(SHARED_SKILLS))
    yield os.path.join(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "skills")


def lock_file_of(place: str) -> str:
    """Return the path of the lock file that records what is installed in a place; ``""`` for no install base."""
    if not place.endswith(BASE_NAME):
        return ""
    above = place.removesuffix(os.sep + NATIVE_PROJECT.replace("/", os.sep))
    return os.path.join(above if above != place else os.path.dirname(place), "prowess.lock")


def install_bases(home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folders into which installers put skills, and to which they link from other folders."""
    shared = os.path.join(home, os.path.normpath(SHARED_SKILLS))
    return (os.path.join(config_home(home, env), "prowess", "skills"), shared)

"""Which folders hold skills, in which order they win.

The project's folders come first, from the working folder up to the root of its git repository, the nearest winning;
then the user's own. In each folder: ``.prowess/skills``, ``.agents/skills``, ``.claude/skills``, then those of the
agents asked for. The user's: ``$XDG_CONFIG_HOME/prowess/skills`` (else ``~/.config``), ``~/.agents/skills``,
``~/.claude/skills``, then the agents'.

The walk up ends at the git root, at the home folder, where another file system begins, and at a folder that someone
else owns or that everyone may write to. Without a git root it ends at the nearest folder with ``prowess.lock``,
``prowess.toml`` or ``.prowess/skills``, and without that only the working folder counts; the home folder itself is
never a project.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.folders import exists, folder_info
from prowess.library.agents import agent_of
from prowess.model import Place, SkillScope

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

NATIVE_PROJECT = ".prowess/skills"
SHARED = ".agents/skills"
COMPATIBLE = ".claude/skills"
_MARKS = ("prowess.lock", "prowess.toml", NATIVE_PROJECT)
_EVERYONE_WRITES = 0o002


def standard_places(
    cwd: str,
    home: str,
    *,
    agents: Iterable[str] = (),
    project: bool = True,
    user: bool = True,
    env: Mapping[str, str] | None = None,
) -> tuple[Place, ...]:
    """Every folder where skills may be, first to win first; the project's and the user's as far as asked for.

    ``env``: variables that move an agent's folders.
    """
    chosen = [agent_of(name) for name in agents]
    env = env or {}
    places: dict[str, Place] = {}
    if project:
        for folder in project_folders(cwd, home):
            for name in (NATIVE_PROJECT, SHARED, COMPATIBLE, *(agent.project for agent in chosen)):
                _add(places, os.path.join(folder, name), SkillScope.PROJECT)
    if user:
        for path in user_folders(home, env):
            _add(places, path, SkillScope.USER)
        for agent in chosen:
            for path in agent.user_folders(home, env):
                _add(places, path, SkillScope.USER)
    return tuple(places.values())


def _add(places: dict[str, Place], path: str, scope: SkillScope) -> None:
    path = os.path.normpath(path)
    places.setdefault(path, Place(path, scope))


def user_folders(home: str, env: Mapping[str, str]) -> Iterator[str]:
    """The user's own folders."""
    yield os.path.join(config_home(home, env), "prowess", "skills")
    yield os.path.join(home, SHARED)
    yield os.path.join(env.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude"), "skills")


def config_home(home: str, env: Mapping[str, str]) -> str:
    """Where configuration lives, on every platform; a relative ``XDG_CONFIG_HOME`` is ignored, as its rules say."""
    named = env.get("XDG_CONFIG_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".config")


def install_bases(home: str, env: Mapping[str, str]) -> tuple[str, ...]:
    """Folders into which installers put skills that are linked from elsewhere."""
    return (os.path.join(config_home(home, env), "prowess", "skills"), os.path.join(home, SHARED))


def project_folders(cwd: str, home: str) -> tuple[str, ...]:
    """From ``cwd`` up to its git root, nearest first; else to its project's root; nothing in the home folder."""
    if _same(cwd, home):
        return ()
    walked: list[str] = []
    for folder in _walk_up(cwd, home):
        walked.append(folder)
        if exists(os.path.join(folder, ".git")):
            return tuple(walked)
    root = project_root(cwd, home)
    return tuple(walked[: walked.index(root) + 1]) if root in walked else (cwd,)


def project_root(cwd: str, home: str) -> str:
    """The folder whose project ``cwd`` belongs to: the nearest with a lock file, a manifest, installs or ``.git``.

    Under the rules of the walk; where there is none, ``cwd`` itself.
    """
    if _same(cwd, home):
        return cwd
    marks = (*_MARKS, ".git")
    return next((up for up in _walk_up(cwd, home) if any(exists(os.path.join(up, mark)) for mark in marks)), cwd)


def git_root(path: str, home: str) -> str | None:
    """The root of the git repository around ``path``, under the rules of the walk."""
    return next((folder for folder in _walk_up(path, home) if exists(os.path.join(folder, ".git"))), None)


def _walk_up(cwd: str, home: str) -> Iterator[str]:
    first = folder_info(cwd)
    folder = cwd
    while first is not None:
        yield folder
        above = os.path.dirname(folder)
        info = folder_info(above)
        if above == folder or info is None or _same(above, home) or info.st_dev != first.st_dev:
            return
        if _is_foreign(info):
            return
        folder = above


def _is_foreign(info: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return False
    return info.st_uid != os.geteuid() or bool(info.st_mode & _EVERYONE_WRITES)


def _same(one: str, other: str) -> bool:
    return os.path.normcase(os.path.realpath(one)) == os.path.normcase(os.path.realpath(other))

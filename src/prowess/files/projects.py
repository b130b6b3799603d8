"""Projects and the user's configuration folder: which folder is the root of the project around a path.

The walk up from a path ends at the git root, at the home folder, where another file system begins, and at a folder
that someone else owns or that everyone may write to. Without a git root it ends at the nearest folder with
``prowess.lock``, ``prowess.toml`` or ``.prowess/skills``, and without that only the folder itself counts. The home
folder is never a project.
"""

from __future__ import annotations

import os

from prowess.files.directory import exists, stat_folder

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NATIVE_PROJECT = ".prowess/skills"
_MARKS = ("prowess.lock", "prowess.toml", NATIVE_PROJECT)
_EVERYONE_WRITES = 0o002


def config_home(home: str, env: Mapping[str, str]) -> str:
    """Where configuration lives, on every platform; a relative ``XDG_CONFIG_HOME`` is ignored, as its rules say."""
    named = env.get("XDG_CONFIG_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".config")


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
    first = stat_folder(cwd)
    folder = cwd
    while first is not None:
        yield folder
        above = os.path.dirname(folder)
        info = stat_folder(above)
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

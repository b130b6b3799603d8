"""Which folder is the root of the project around a path, and where the files of the user are.

The walk up from a path ends at the git root, at the home folder, where another file system begins, and at a folder
that someone else owns or that everyone may write to. Without a git root it ends at the nearest folder with
``prowess.lock``, ``prowess.toml`` or ``.prowess/skills``, and without that only the folder itself counts. The home
folder is never a project.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.directory import exists, stat_folder
from prowess.files.paths import is_owned_alone

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


NATIVE_PROJECT = ".prowess/skills"
_MARKS = ("prowess.lock", "prowess.toml", NATIVE_PROJECT)
_EVERYONE_WRITES = 0o002


def config_home(home: str, env: Mapping[str, str]) -> str:
    """Return the folder of the user's configuration; a relative ``XDG_CONFIG_HOME`` is ignored, as XDG demands."""
    named = env.get("XDG_CONFIG_HOME", "")
    return named if os.path.isabs(named) else os.path.join(home, ".config")


def user_config_file(name: str) -> str:
    """Return the path of a file of Prowess in the configuration folder of the user who runs this process."""
    return os.path.join(config_home(os.path.expanduser("~"), os.environ), "prowess", name)


def user_state_file(name: str) -> str:
    """Return the path of a file where Prowess remembers what this user did; as XDG has it, apart from settings."""
    named = os.environ.get("XDG_STATE_HOME", "")
    home = named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(home, "prowess", name)


def project_folders(cwd: str, home: str) -> tuple[str, ...]:
    """Return the folders from ``cwd`` up to its git root, or else to its project's root, the nearest first.

    The home folder is not a project: it has none.
    """
    if _is_same_place(cwd, home):
        return ()
    walked: list[str] = []
    for folder in _walk_up(cwd, home):
        walked.append(folder)
        if exists(os.path.join(folder, ".git")):
            return tuple(walked)
    root = project_root(cwd, home)
    return tuple(walked[: walked.index(root) + 1]) if root in walked else (cwd,)


def project_root(cwd: str, home: str) -> str:
    """Return the nearest folder around ``cwd`` with a lock file, a manifest, installed skills or ``.git``.

    Without such a folder, before the walk up ends, it is ``cwd`` itself.
    """
    if _is_same_place(cwd, home):
        return cwd
    return next((folder for folder in _walk_up(cwd, home) if _has_mark(folder)), cwd)


def is_project(folder: str, home: str) -> bool:
    """Return whether a folder has a lock file, a manifest, installed skills or ``.git``; the home folder never counts.

    ``project_root`` of a path outside of every project is a folder for which this is False.
    """
    return not _is_same_place(folder, home) and _has_mark(folder)


def _has_mark(folder: str) -> bool:
    return any(exists(os.path.join(folder, mark)) for mark in (*_MARKS, ".git"))


def git_root(path: str, home: str) -> str | None:
    """Return the root of the git repository around ``path``; ``None`` when the walk up ends before one is found."""
    return next((folder for folder in _walk_up(path, home) if exists(os.path.join(folder, ".git"))), None)


def _walk_up(cwd: str, home: str) -> Iterator[str]:
    first = stat_folder(cwd)
    folder = cwd
    while first is not None:
        yield folder
        above = os.path.dirname(folder)
        info = stat_folder(above)
        if above == folder or info is None or _is_same_place(above, home) or info.st_dev != first.st_dev:
            return
        # Whoever owns a folder above could put a ".git" and skills there, and would decide what this user is shown.
        # Windows has other permissions, which are not looked at.
        if hasattr(os, "geteuid") and (info.st_uid != os.geteuid() or info.st_mode & _EVERYONE_WRITES):
            return
        folder = above


def _is_same_place(path: str, other: str) -> bool:
    # The disk knows whether two spellings are one folder: it may ignore case, and macOS has /tmp as /private/tmp.
    first, second = stat_folder(path), stat_folder(other)
    if first is not None and second is not None:
        return os.path.samestat(first, second)
    return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))


_CACHE_DIR_VARIABLE = "PROWESS_CACHE_DIR"


def default_cache_dir(env: Mapping[str, str] = os.environ) -> str:
    """Return the folder that ``PROWESS_CACHE_DIR`` names, or else the user's cache folder for Prowess."""
    from platformdirs import user_cache_dir

    if env.get(_CACHE_DIR_VARIABLE):
        return os.path.abspath(env[_CACHE_DIR_VARIABLE])
    return os.path.join(user_cache_dir("prowess", appauthor=False), "skills")


def is_private_folder(path: str) -> bool:
    """Return whether there is a folder at a path that belongs to this user, and that nobody else may write to."""
    info = stat_folder(path)
    return info is not None and is_owned_alone(info)

"""The cache folder of Prowess: where it is, and whether a folder is private enough to keep anything in it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from prowess.files.directory import stat_folder
from prowess.files.paths import is_owned_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_DIR_VARIABLE = "PROWESS_CACHE_DIR"


def default_cache_dir(env: Mapping[str, str] = os.environ) -> str:
    """Return the folder that ``PROWESS_CACHE_DIR`` names, or else the user's cache folder for Prowess."""
    if env.get(CACHE_DIR_VARIABLE):
        return os.path.abspath(env[CACHE_DIR_VARIABLE])
    return os.path.join(_linux_cache_dir() or _system_cache_dir(), "skills")


def _linux_cache_dir() -> str:
    """Return the user's cache folder on Linux where nothing about it is unusual, and ``""`` everywhere else.

    Fast path of the first search of a process: to import platformdirs takes longer than the search. The slow twin is
    ``_system_cache_dir``, and tests/files/test_cache_folder.py compares them.
    """
    if sys.platform != "linux" or "ANDROID_DATA" in os.environ:
        return ""
    folder = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME", "") + "/.cache"
    is_plain = (
        folder[:1] == "/" != folder[1:2] and folder not in {"/", "/.cache"} and folder == os.path.normpath(folder)
    )
    return os.path.join(folder, "prowess") if is_plain else ""


def _system_cache_dir() -> str:
    from platformdirs import user_cache_dir

    return user_cache_dir("prowess", appauthor=False)


def is_private_folder(path: str) -> bool:
    """True when there is a folder at a path that belongs to this user, and that nobody else may write to."""
    info = stat_folder(path)
    return info is not None and is_owned_alone(info)

"""The cache folder of Prowess: where it is, and whether a folder is private enough to keep anything in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.files.directory import stat_folder
from prowess.files.paths import is_owned_alone

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_DIR_VARIABLE = "PROWESS_CACHE_DIR"


def default_cache_dir(env: Mapping[str, str] = os.environ) -> str:
    """Return the folder that ``PROWESS_CACHE_DIR`` names, or else the user's cache folder for Prowess."""
    from platformdirs import user_cache_dir

    if env.get(CACHE_DIR_VARIABLE):
        return os.path.abspath(env[CACHE_DIR_VARIABLE])
    return os.path.join(user_cache_dir("prowess", appauthor=False), "skills")


def is_private_folder(path: str) -> bool:
    """True when there is a folder at a path that belongs to this user, and that nobody else may write to."""
    info = stat_folder(path)
    return info is not None and is_owned_alone(info)

"""Paths as people read and type them: short, and quoted in commands that are shown."""

from __future__ import annotations

import os
from shlex import quote

from prowess.files.paths import path_inside


def shorten_path(path: str) -> str:
    """Return a path relative to the working folder if it lies there, with ``~`` if it lies in the home folder."""
    here, home = os.getcwd(), os.path.expanduser("~")
    for base, prefix in ((here, ""), (home, "~" + os.sep)):
        # Everything lies below the root folder: a path relative to it would only lose its first slash.
        inner = path_inside(path, base) if base not in {os.sep, ""} else None
        if inner is not None:
            return prefix + inner if inner else ("." if base == here else "~")
    return path


def quote_path(path: str) -> str:
    """Return a path for a command that a person pastes into a shell, quoted because anybody may have named it."""
    short_path = shorten_path(path)
    home = "~" + os.sep
    if short_path.startswith(home):  # within quotes a shell does not expand the tilde
        return home + quote(short_path.removeprefix(home))
    is_clear = os.path.isabs(short_path) or short_path.startswith((".", "~"))
    return quote(short_path if is_clear else os.path.join(os.curdir, short_path))


def with_dot_prefix(name: str) -> str:
    """Return a relative path that starts with a dot, so that nothing takes it for the name of a skill."""
    return f".{os.sep}{name}"

"""Paths as people read and type them: short, and quoted in commands that are shown."""

from __future__ import annotations

import os

from prowess.files.paths import shorten_path


def quote_path(path: str) -> str:
    """Return a path for a command that a person pastes into a shell, quoted because anybody may have named it."""
    from shlex import quote

    short_path = shorten_path(path)
    home = "~" + os.sep
    if short_path.startswith(home):  # within quotes a shell does not expand the tilde
        return home + quote(short_path.removeprefix(home))
    is_clear = os.path.isabs(short_path) or short_path.startswith((".", "~"))
    return quote(short_path if is_clear else os.path.join(os.curdir, short_path))


def with_dot_prefix(name: str) -> str:
    """Return a relative path that starts with a dot, so that nothing takes it for the name of a skill."""
    return f".{os.sep}{name}"

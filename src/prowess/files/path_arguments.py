"""Checks of the paths that a program passes to Prowess; each raises ``SourceError`` with the code ``bad-argument``."""

from __future__ import annotations

import os

from prowess.arguments import raise_bad_argument, shorten_value


def show_path_argument(given: object) -> str:
    """Return a path as a remedy shows it in the parentheses of a call: shortened, or ``…`` when it is not a path."""
    return repr(shorten_value(str(os.fspath(given)))) if isinstance(given, str | os.PathLike) else "…"


def check_path(given: str | os.PathLike[str], argument: str, remedy: str = "") -> str:
    """Return the path as a string, as it was given. Raises ``SourceError`` unless it is a string or a path object."""
    try:
        written = os.fspath(given)
    except TypeError:
        written = None
    if not isinstance(written, str):
        raise_bad_argument(argument, "is a string or a path", given, remedy)
    return written


def as_absolute(given: str | os.PathLike[str], argument: str) -> str:
    """Return the absolute path, so that a later change of the working folder changes nothing; ``""`` stays ``""``.

    Raises ``SourceError`` unless it is a string or a path object.
    """
    written = check_path(given, argument)
    return os.path.abspath(written) if written else ""


def as_optional_absolute(given: str | os.PathLike[str] | None, argument: str) -> str | None:
    """Return ``None`` for ``None``, and otherwise the absolute path that ``as_absolute`` returns."""
    return None if given is None else as_absolute(given, argument)


def as_existing_folder(given: str | os.PathLike[str], argument: str) -> str:
    """Return the absolute path of a folder. Raises ``SourceError`` unless the folder exists; it is never created."""
    folder = as_absolute(given, argument)
    if not os.path.isdir(folder):
        raise_bad_argument(argument, "is an existing folder", folder, "make it first")
    return folder

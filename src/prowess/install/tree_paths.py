"""The paths in a tree that is to be installed: whether every file system can hold them, together and safely."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from prowess.errors import PathTraversalError, UnsafeTreeError
from prowess.files.tree import EXTRA_DEPTH
from prowess.names import find_git_repository, split_relative_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.limits import Limits

REFUSAL_REASONS = {
    "link-in-skill": "is a link",
    "submodule": "is a submodule",
    "special-file": "is no regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unsafe-name": "is not a plain name on every platform",
    "unreadable-directory": "cannot be read",
    "too-many-files": "is one of too many files",
    "too-deep": "lies too deep",
}
"""Why an entry of a source is not installed, in words, by the code of the error."""


def check_paths(paths: Sequence[str], limits: Limits) -> None:
    """Raise ``UnsafeTreeError`` for paths that cannot be written together.

    Refused are too many files, paths that are unsafe or too deep, paths that are one file where case or the form of
    Unicode does not count, and a git repository.
    """
    if len(paths) > limits.max_install_files:
        message = f"there are {len(paths)} files; at most {limits.max_install_files} are installed at once"
        raise UnsafeTreeError(message, code="too-many-files")
    for path in paths:
        if not is_safe_path(path):
            raise _refusal(path, "unsafe-name")
        if path.count("/") > limits.max_depth_per_skill + EXTRA_DEPTH:
            raise _refusal(path, "too-deep")
    _refuse_collisions(paths)
    # git would run the hooks of a repository inside a skill as soon as somebody works in that folder.
    repository = find_git_repository(paths)
    if repository is not None:
        raise UnsafeTreeError(f"the folder {repository!a} is a repository of git", code="git-in-skill")


def is_safe_path(path: str) -> bool:
    """Whether a path is relative, stays inside its tree, and is written in its one plain form."""
    try:
        return "/".join(split_relative_path(path)) == path
    except PathTraversalError:
        return False


def _refusal(path: str, code: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{path!a} {REFUSAL_REASONS.get(code, 'cannot be installed')}", code=code)


def refuse_irregular(irregular: Iterable[tuple[str, str]]) -> None:
    """Raise ``UnsafeTreeError`` for the first entry that cannot be installed, given as its code and its path."""
    for code, path in irregular:
        raise _refusal(path, code)


def _refuse_collisions(paths: Iterable[str]) -> None:
    """Raise ``UnsafeTreeError`` (``case-collision``) when two paths are one file, or one folder, on some systems."""
    # On such a system the second file would silently replace the first, and differ from what was checked.
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        key = _fold_name(path)
        if key in files:
            raise _collision_error(files[key], path)
        files[key] = path
        parts = path.split("/")[:-1]
        for count in range(1, len(parts) + 1):
            folder = "/".join(parts[:count])
            first = folders.setdefault(_fold_name(folder), folder)
            if first != folder:
                raise _collision_error(first, folder)
    for key, path in files.items():
        if key in folders:
            raise _collision_error(folders[key], path)


def _fold_name(path: str) -> str:
    """A path as a file system reads it that ignores case and the form in which Unicode is written."""
    if path.isascii():  # fast path: nearly all names
        return path.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFKC", path).casefold())


def _collision_error(first: str, second: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{first!a} and {second!a} are one file on some systems", code="case-collision")

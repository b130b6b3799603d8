"""The paths in a tree that is to be installed: whether every file system can hold them, together and safely."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import UnsafeTreeError
from prowess.files.tree import EXTRA_DEPTH
from prowess.names import find_collision, find_git_repository, is_safe_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prowess.limits import Limits

REFUSAL_REASONS = {
    "link-in-skill": "is a link",
    "submodule": "is a submodule",
    "special-file": "is not a regular file",
    "bad-file-name": "is not a UTF-8 name",
    "unsafe-name": "is not a plain name on every platform",
    "unreadable-directory": "cannot be read",
    "too-many-files": "is one of too many files",
    "too-deep": "is too deep",
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
    collision = find_collision(paths)
    if collision is not None:
        # On such a system the second file would silently replace the first, and differ from what was checked.
        raise UnsafeTreeError(
            f"{collision[0]!a} and {collision[1]!a} are one file on some systems", code="case-collision"
        )
    # git would run the hooks of a repository inside a skill as soon as somebody works in that folder.
    repository = find_git_repository(paths)
    if repository is not None:
        raise UnsafeTreeError(f"the folder {repository!a} is a repository of git", code="git-in-skill")


def _refusal(path: str, code: str) -> UnsafeTreeError:
    return UnsafeTreeError(f"{path!a} {REFUSAL_REASONS.get(code, 'cannot be installed')}", code=code)


def refuse_irregular(irregular: Iterable[tuple[str, str]]) -> None:
    """Raise ``UnsafeTreeError`` for the first entry that cannot be installed, given as its code and its path."""
    for code, path in irregular:
        raise _refusal(path, code)

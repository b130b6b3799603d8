"""Names that are safe as one part of a path on every platform: pure text, below every layer that joins paths."""

from __future__ import annotations

import re

from prowess.errors import PathTraversalError, ResourceError, ResourceNotFoundError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from collections.abc import Set as AbstractSet

SKILL_FILE = "SKILL.md"
"""The file that makes a folder a skill."""

MAX_PATH_CHARS = 4096
DEVICE_NAMES = frozenset(
    ("con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))),
)
_GIT_NAMES = frozenset((".git", "git~1"))
_GIT_FIRST_CHARS = frozenset(".gG")
_HFS_IGNORES = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
_REPOSITORY_LAYOUTS = (frozenset(("head", "objects/", "refs/")), frozenset(("head", "commondir")))
_REPOSITORY_ENTRIES = frozenset.union(*_REPOSITORY_LAYOUTS)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_device_name(name: str) -> bool:
    """Whether Windows takes ``name`` for a device, with or without an extension."""
    return name.partition(".")[0].strip().lower() in DEVICE_NAMES


def is_git_name(name: str) -> bool:
    """Whether ``name`` is ``.git``, or some file system takes it for that.

    In any case; with dots and blanks at its end, as a stream (``.git::$INDEX_ALLOCATION``) or by its short name
    ``GIT~1``, as NTFS has it; with code points in it that HFS+ ignores. It is the rule by which git protects itself.
    """
    if not name.isascii():
        name = name.translate(_HFS_IGNORES)
    if name[:1] not in _GIT_FIRST_CHARS:  # Fast path of nearly every name in every walk: its first letter decides.
        return False
    return name.partition(":")[0].rstrip(". ").lower() in _GIT_NAMES


def find_git_repository(paths: Iterable[str]) -> str | None:
    """The folder among the paths of files that git takes for a repository whatever it is called, ``"."`` for the top.

    ``None`` where there is none. Git runs commands out of the settings in such a folder once it is started in there.
    It asks for a file ``HEAD`` and for folders ``objects`` and ``refs``, or for a file that says where those are.
    """
    seen: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            name = part.translate(_HFS_IGNORES).lower() + ("/" if depth < len(parts) - 1 else "")
            if name in _REPOSITORY_ENTRIES:
                seen.setdefault("/".join(parts[:depth]), set()).add(name)
    repositories = (at for at, names in seen.items() if any(needed <= names for needed in _REPOSITORY_LAYOUTS))
    return next((folder or "." for folder in repositories), None)


def split_relative_path(path: str) -> tuple[str, ...]:
    """The folders and the file that ``path`` names below a skill's folder; ``.`` and empty parts are dropped.

    This is the judgement of every name that comes in: by install, archive, index or server. Raises
    ``PathTraversalError`` for whatever leaves the folder, or could on some platform: ``..``, absolute paths,
    backslashes, drive letters and streams (a colon), ``~``, control characters, device names, and parts that end in
    a dot or a blank; and with the code ``git-in-skill`` for what a file system takes for ``.git``.
    """
    git = _find_git_part(path)
    if git:
        message = f"path {path[:200]!r} holds {git!r}, which is git's own and no part of a skill"
        raise PathTraversalError(message, code="git-in-skill")
    return _split_safe_path(path)


def split_resource_path(path: str) -> tuple[str, ...]:
    """The folders and the file that ``path`` names, for somebody who wants to read that file of a skill.

    Raises ``PathTraversalError`` for whatever ``split_relative_path`` says may leave the folder,
    ``ResourceNotFoundError`` for ``.git`` and what is in it, and ``ResourceError`` for a path that ends in ``/`` or
    ``/.``, which can only name a folder.
    """
    if _find_git_part(path):
        raise ResourceNotFoundError(f"no file {path[:200]!r}: '.git' is no part of a skill", path)
    parts = _split_safe_path(path)
    if path.rpartition("/")[2] in {"", "."}:
        message = f"{path[:200]!r} ends like a folder: name a file in it"
        raise ResourceError(message, path, "not-a-regular-file")
    return parts


def _find_git_part(path: str) -> str:
    return next((part for part in path.split("/") if is_git_name(part)), "")


def _split_safe_path(path: str) -> tuple[str, ...]:
    if not path or len(path) > MAX_PATH_CHARS:
        raise _path_error(path, "is empty" if not path else f"is longer than {MAX_PATH_CHARS} characters")
    if not _is_utf8(path):
        raise _path_error(path, "holds half a character")
    if _CONTROL.search(path):
        raise _path_error(path, "holds a control character")
    if path[0] in "/~":
        raise _path_error(path, "is not relative to the skill's folder")
    if "\\" in path or ":" in path:
        raise _path_error(path, "holds a backslash or a colon")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    for part in parts:
        if part == "..":
            raise _path_error(path, "holds '..'")
        if part[-1] in ". " or is_device_name(part):
            raise _path_error(path, f"holds {part!r}, which is not a file name on every platform")
    if not parts:
        raise _path_error(path, "names the folder itself")
    return parts


def _is_utf8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _path_error(path: str, why: str) -> PathTraversalError:
    return PathTraversalError(f"resource path {path[:200]!r} {why}", code="path-escape")


def is_below(path: str, folders: AbstractSet[str]) -> bool:
    """Whether a relative path with ``/`` lies in one of the folders, at any depth; everything does in ``""``, the top.

    It costs as much as the path is deep, however many folders there are.
    """
    return "" in folders or not folders.isdisjoint(folders_above(path))


def folders_above(path: str) -> Iterator[str]:
    """The folders that a relative path with ``/`` lies in, the nearest first; the last is ``""``, the top."""
    while path:
        path = path.rpartition("/")[0]
        yield path

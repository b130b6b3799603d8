"""Checks of file names and relative paths that must be safe on every platform.

Nothing here looks at a disk: every layer that joins paths uses these rules, for names that come from anywhere.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import PathTraversalError, ResourceError, ResourceNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from collections.abc import Set as AbstractSet
    from typing import TypeVar

    T = TypeVar("T")

SKILL_FILE = "SKILL.md"
"""The name of the file that makes a folder a skill."""
EVALS_FOLDER = "evals"
"""The folder at the top of a skill that has the tests of the skill."""
MAX_PATH_CHARS = 4096
MAX_PART_CHARS = 100
"""The longest name that is safe as one part of a path."""
_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_NOT_IN_LINK_NAMES = re.compile(r"[^a-z0-9._]+")
_PORT_DIGITS = "0123456789¹²³"  # Windows takes the superscripts of Latin-1 for digits here
DEVICE_NAMES = frozenset(
    (
        *("con", "conin$", "conout$", "prn", "aux", "nul"),
        *(f"{port}{digit}" for port in ("com", "lpt") for digit in _PORT_DIGITS),
    )
)
_GIT_NAMES = frozenset((".git", "git~1"))
GIT_FIRST_CHARS = frozenset(".gG")
"""The characters with which every ASCII name begins that some file system takes for ``.git``."""
# macOS ignores these code points in names, so that a name with one of them is the name without it.
_HFS_IGNORES = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
_REPOSITORY_LAYOUTS = (frozenset(("head", "objects/", "refs/")), frozenset(("head", "commondir")))
_REPOSITORY_ENTRIES = frozenset.union(*_REPOSITORY_LAYOUTS)
_SHORT_NAME = re.compile(r"[^.~]{1,7}~[0-9]{1,6}(?:\.[^.]{0,3})?")
"""How Windows and FAT write the second, short name of a file, such as ``GIT~1`` or ``PROWES~1.TOM``."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_SLUGS = re.compile(r"[^a-z0-9]+")
_SLUG_DIGITS = 8


def is_device_name(name: str) -> bool:
    """Return whether Windows takes ``name`` for a device, with or without an extension."""
    return name.partition(".")[0].strip().lower() in DEVICE_NAMES


def is_safe_part(text: str) -> bool:
    """Return whether ``text`` is one plain name in ASCII, which can be one part of a path on every platform."""
    return len(text) <= MAX_PART_CHARS and _PART.fullmatch(text) is not None and not is_device_name(text)


def make_slug(name: str, most: int) -> str:
    """Return a name of at most ``most`` lower-case letters, digits and hyphens in place of one that cannot be used.

    It ends in eight digits of the name's SHA-256, so that two names rarely become one, and one name always the same.
    """
    from hashlib import sha256

    digits = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_SLUG_DIGITS]
    words = _NOT_IN_SLUGS.sub("-", name.lower())[: most - _SLUG_DIGITS - 1].strip("-")
    return f"{words or 'skill'}-{digits}"


def link_name(skill: str) -> str:
    """Return the name of the folder under which agents find a skill: its name in characters that every agent accepts.

    A long name is cut, and ends in digits of its digest. Returns ``""`` when nothing is left, or when the name is not
    ASCII: such names are easily mistaken for others.
    """
    if not skill.isascii():
        return ""
    name = _NOT_IN_LINK_NAMES.sub("-", skill.lower()).strip(".-")
    if len(name) > MAX_PART_CHARS:
        return make_slug(skill, MAX_PART_CHARS)
    return name if is_safe_part(name) else ""


def fold_name(name: str) -> str:
    """Return one string for all names that some file system takes for ``name``, but for its short name.

    Case does not count. HFS+ ignores some code points, and NTFS dots and spaces at the end, and has streams.
    """
    return name.translate(_HFS_IGNORES).partition(":")[0].rstrip(". ").casefold()


def is_short_name(name: str) -> bool:
    """Return whether a file system may take ``name`` for the short name of a file with any other name."""
    return _SHORT_NAME.fullmatch(fold_name(name)) is not None


def is_git_name(name: str) -> bool:
    """Return whether ``name`` is ``.git``, or some file system takes it for that.

    Case does not count. NTFS ignores dots and spaces at the end, has streams (``.git::$INDEX_ALLOCATION``) and the
    short name ``GIT~1``. HFS+ ignores some code points. Git protects itself by these rules too.
    """
    if not name.isascii():
        name = name.translate(_HFS_IGNORES)
    # Fast path of every walk over files: the first letter decides for nearly every name.
    return name[:1] in GIT_FIRST_CHARS and name.partition(":")[0].rstrip(". ").lower() in _GIT_NAMES


def find_git_repository(paths: Iterable[str]) -> str | None:
    """Return a folder above some of the paths that git takes for a repository by its files, whatever its name.

    ``"."`` is the top, and ``None`` is returned when there is no such folder. A repository has a file ``HEAD`` and the
    folders ``objects`` and ``refs``, or a file ``commondir`` that says where these are.
    """
    # Such a folder is dangerous: git that is started in it, even by a shell prompt, runs commands of its settings.
    entries: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            name = part.translate(_HFS_IGNORES).lower() + ("/" if depth < len(parts) - 1 else "")
            if name in _REPOSITORY_ENTRIES:
                entries.setdefault("/".join(parts[:depth]), set()).add(name)
    repositories = (
        folder for folder, names in entries.items() if any(layout <= names for layout in _REPOSITORY_LAYOUTS)
    )
    return next((folder or "." for folder in repositories), None)


def split_relative_path(path: str) -> tuple[str, ...]:
    """Return the folders and the file that ``path`` names below a skill's folder, without ``.`` and empty parts.

    This check decides about every name that comes in, by install, archive, index or server. Raises
    ``PathTraversalError`` for a path that leaves the folder, or could on some platform: ``..``, absolute paths,
    backslashes, drive letters and streams (a colon), ``~``, control characters, device names, and parts that end in
    a dot or a space. The code is ``git-in-skill`` for what a file system takes for ``.git``.
    """
    git_part = _find_git_part(path)
    if git_part:
        raise PathTraversalError(
            f"path {path[:200]!r} holds {git_part!r}, which is git's own and no part of a skill", code="git-in-skill"
        )
    return _split_safe_path(path)


def split_resource_path(path: str) -> tuple[str, ...]:
    """Return the folders and the file that ``path`` names, for a caller who wants to read that file of a skill.

    Raises ``PathTraversalError`` where ``split_relative_path`` does, except that ``.git`` and what is in it raise
    ``ResourceNotFoundError``. Raises ``ResourceError`` for a path that ends in ``/`` or ``/.``, which can only name a
    folder.
    """
    if _find_git_part(path):
        raise ResourceNotFoundError(f"no file {path[:200]!r}: '.git' is not part of a skill", path)
    parts = _split_safe_path(path)
    if path.rpartition("/")[2] in {"", "."}:
        raise ResourceError(f"{path[:200]!r} ends like a folder: name a file in it", path, "not-a-regular-file")
    return parts


def find_unsafe_paths(paths: Iterable[str]) -> list[str]:
    """Return the paths that are not relative, leave their tree, or are not written in their one plain form."""
    return [path for path in paths if not _is_safe_path(path)]


def _is_safe_path(path: str) -> bool:
    try:
        return "/".join(split_relative_path(path)) == path
    except PathTraversalError:
        return False


def fold_path(path: str) -> str:
    """Return one string for all spellings of a path that some file system takes for one.

    File systems disagree on case, and on how accents are encoded. Where two files of a tree are one, the second would
    replace the first, after somebody had looked at the first.
    """
    if path.isascii():  # fast path: nearly all names
        return path.lower()
    from unicodedata import normalize

    return normalize("NFC", normalize("NFC", path).casefold())  # folding can undo the first normalization


def find_collision(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return two files, or a file and a folder, that are one on some systems; ``None`` when all paths are distinct."""
    files: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path in paths:
        first = files.setdefault(fold_path(path), path)
        if first is not path:
            return first, path
        for folder in folders_above(path):
            first = folders.setdefault(fold_path(folder), folder)
            if first != folder:
                return first, folder
    return next(((folders[key], path) for key, path in files.items() if key in folders), None)


def _find_git_part(path: str) -> str:
    return next((part for part in path.split("/") if is_git_name(part)), "")


def _split_safe_path(path: str) -> tuple[str, ...]:
    if not path or len(path) > MAX_PATH_CHARS:
        raise _path_error(path, "is empty" if not path else f"is longer than {MAX_PATH_CHARS} characters")
    if not _is_utf8(path):  # a lone surrogate, which neither JSON nor most file systems can hold
        raise _path_error(path, "holds an unpaired surrogate")
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


def select_below(items: Iterable[T], folders: AbstractSet[str], path_of: Callable[[T], str]) -> list[T]:
    """Return the items that are in one of the folders, at any depth; ``""`` is the top.

    ``path_of`` returns the relative path of an item.
    """
    # The folders above a path are looked up, so that the cost does not grow with the number of folders.
    return [item for item in items if "" in folders or not folders.isdisjoint(folders_above(path_of(item)))]


def folders_above(path: str) -> list[str]:
    """Return the folders that a relative path with ``/`` is in, the nearest first; the last is ``""``, the top."""
    folders = []
    while path:
        path = path.rpartition("/")[0]
        folders.append(path)
    return folders


def group_by_folder(items: Iterable[T], folders: Iterable[str], path_of: Callable[[T], str]) -> dict[str, list[T]]:
    """Return the items in each of some folders, at any depth; ``path_of`` returns the relative path of an item."""
    groups: dict[str, list[T]] = {folder: [] for folder in folders}
    # One pass over the items for all folders: a repository may have thousands of skills.
    for item in items:
        for folder in folders_above(path_of(item)):
            if folder in groups:
                groups[folder].append(item)
    return groups

"""Questions about paths: whether one is inside another, whether it is a link, and where it leads.

The rule "this path is inside that folder" is here and nowhere else.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from prowess.arguments import raise_bad_argument, shorten_value
from prowess.errors import ResourceError
from prowess.files.contained_open import is_link_info
from prowess.files.directory import stat_folder
from prowess.files.read import OpenFile

_MAX_LINKS = 40
"""How many links Linux follows in one path. A loop of links ends there."""
_MAX_LINK_BYTES = 4096
"""How long a path may be on Linux, and so the text of a link."""
_OTHERS_WRITE = 0o022  # the group, and everybody else


def path_inside(path: str, folder: str) -> str | None:
    """Return the path from ``folder`` to ``path``: ``""`` for the folder itself, ``None`` when it is elsewhere.

    Only the text of two absolute paths is compared. Where links matter, pass paths without them
    (``os.path.realpath``).
    """
    if os.name == "nt":
        return windows_path_inside(path, folder)
    above = folder.rstrip(os.sep) + os.sep  # with the separator: "/a/bc" is not inside "/a/b"
    if path.startswith(above):
        return path[len(above) :]
    return "" if path == folder or path + os.sep == above else None


def windows_path_inside(path: str, folder: str) -> str | None:
    r"""``path_inside`` by the rules of Windows: neither case nor the kind of slash nor the prefix ``\\?\`` counts."""
    path, folder = plain_windows_path(path), plain_windows_path(folder)
    above = folder.rstrip("\\") + "\\"
    if path[: len(above)].lower() == above.lower():
        return path[len(above) :]
    return "" if path.lower() == folder.lower() or f"{path}\\".lower() == above.lower() else None


def plain_windows_path(path: str) -> str:
    """Return a path of Windows with backslashes alone, and without the prefix that lifts the limit on its length.

    Links and long paths come with that prefix from the system, and the same paths without it from people.
    """
    path = path.replace("/", "\\")
    if path[:8].upper() == "\\\\?\\UNC\\":
        return f"\\\\{path[8:]}"
    # Volumes without a letter have no other name.
    return path[4:] if path.startswith("\\\\?\\") and path[5:7] == ":\\" else path


def relative_path(path: str, folder: str) -> str:
    """Return the way from ``folder`` to ``path``, or the absolute path when Windows has them on different drives."""
    try:
        return os.path.relpath(path, folder)
    except ValueError:
        return os.path.abspath(path)


def is_inside(path: str, folder: str) -> bool:
    """Return whether ``path`` is ``folder`` or is below it, by the strings of two absolute paths."""
    return path_inside(path, folder) is not None


def is_really_inside(path: str, folder: str) -> bool:
    """Return whether ``path`` leads to ``folder`` or below it on the disk, with every link in both resolved.

    Two spellings of one folder count as one, as on a disk that ignores case, and where a folder is mounted twice.
    """
    try:
        real, real_folder = os.path.realpath(path), os.path.realpath(folder)
    except ValueError:  # NUL, which no path has
        return False
    if is_inside(real, real_folder):
        return True
    above, parent = real, os.path.dirname(real)
    while not is_same_folder(above, real_folder):
        if above == parent:
            return False
        above, parent = parent, os.path.dirname(parent)
    return True


def is_link(path: str) -> bool:
    """Return whether the entry at a path is itself a link or a junction; ``False`` without an entry."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return is_link_info(info)


def is_real_folder(path: str) -> bool:
    """Return whether a path is a folder and not a link to one."""
    return stat_folder(path) is not None and not is_link(path)


def is_folder_itself(path: str) -> bool:
    """Return whether the entry at a path is a folder or a junction, and not a symbolic link."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def is_same_folder(first: str, second: str) -> bool:
    """Return whether two paths lead to one existing folder."""
    try:
        first_info, second_info = os.stat(first), os.stat(second)
    except OSError:
        return False
    return os.path.samestat(first_info, second_info) and stat.S_ISDIR(first_info.st_mode)


def read_link(path: str) -> str | None:
    """Return the path that is written in a link, or ``None`` when the entry is not a link."""
    try:
        text = os.readlink(path)
    except OSError:
        return None
    return plain_windows_path(text) if os.name == "nt" else text


def is_link_to(path: str, folder: str) -> bool:
    """Return whether ``path`` is a link that leads to ``folder``, whether or not the folder exists."""
    return is_link(path) and is_known_link_to(path, folder)


def is_known_link_to(link: str, folder: str) -> bool:
    """Return whether ``link``, which must be a link, leads to ``folder``, whether or not the folder exists."""
    return is_same_folder(link, folder) or _resolve_link(link) == os.path.realpath(folder)


def is_link_into(path: str, folder: str) -> bool:
    """Return whether ``path`` is a link that leads to ``folder`` or below it, whether or not its end exists."""
    return is_link(path) and is_really_inside(_resolve_link(path), folder)


def is_link_file_into(path: str, folder: str) -> bool:
    """Return whether ``path`` is a file that holds the text of a link to ``folder``, or below it, and nothing else.

    Git writes committed links so where it makes no links (``core.symlinks=false``).
    """
    parent, name = os.path.split(path)
    try:
        with OpenFile(parent, (name,)) as file:
            text = os.fsdecode(file.read_all(_MAX_LINK_BYTES))
    except ResourceError:  # no regular file, or too large for a link
        return False
    # Git writes "/" on every system. No path has a line break or a NUL that anybody would mean.
    if not text.isprintable() or os.path.isabs(text) or "/" not in text:
        return False
    return is_really_inside(_resolve_text(text.replace("/", os.sep), path), folder)


def _resolve_link(path: str) -> str:
    """Return the real path that a link leads to; nothing needs to exist there."""
    text = read_link(path)
    return _resolve_text(text, path) if text is not None else os.path.realpath(path)


def _resolve_text(text: str, path: str) -> str:
    """Return the real path to which a link at ``path`` with this text leads."""
    return os.path.realpath(os.path.join(os.path.realpath(os.path.dirname(path)), text))


class ResolvedPath(NamedTuple):
    """Where a path ends on the disk, and every link that is followed on the way there, in order.

    ``os.path.realpath`` gives the end alone. The links matter where the folders on the way decide, as in the question
    whether a skill is reached through an agent's folder. Each link is named by its own path below real folders.
    """

    end: str
    links: tuple[str, ...] = ()


def resolve_path(path: str) -> ResolvedPath:
    """Resolve every link of one path; nothing needs to exist there. A loop of links ends after 40 links."""
    # Only Windows takes ".." out of the text of a path before it looks at the disk.
    lexical = os.name == "nt" or not os.path.isabs(path)
    drive, rest = os.path.splitdrive(os.path.abspath(path) if lexical else path)
    real, parts, links = drive + os.sep, rest.split(os.sep)[::-1], list[str]()
    while parts and len(links) <= _MAX_LINKS:
        part = parts.pop()
        if part in {"", os.curdir}:
            continue
        entry = os.path.dirname(real) if part == os.pardir else os.path.join(real, part)
        text = read_link(entry) if part != os.pardir else None
        if text is None:
            real = entry
            continue
        links.append(entry)
        if os.path.isabs(text):
            drive, text = os.path.splitdrive(text)
            real = drive + os.sep
        parts += text.split(os.sep)[::-1]
    # Windows has several spellings of one path. Only its own answer can be compared with other paths.
    end = os.path.realpath(path) if os.name == "nt" else os.path.join(real, *reversed(parts))
    return ResolvedPath(end, tuple(links))


class PathResolver:
    """Resolves many paths for one listing: each folder around them is resolved once.

    Fast path: thousands of skills are in a handful of folders, and ``os.path.realpath`` asks the system about each
    folder in each path. Its slow path is ``resolve_path``; tests/files/test_paths.py compares them.
    """

    def __init__(self) -> None:
        self._folders: dict[str, ResolvedPath] = {}

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve every link of one path; the result is that of ``resolve_path``."""
        links: tuple[str, ...] = ()
        while len(links) <= _MAX_LINKS and os.name != "nt":
            folder, name = os.path.split(path)
            if name in {"", os.curdir, os.pardir}:
                break  # rare, and left to the slow path
            parent = self._folders.get(folder)
            if parent is None:
                parent = self._folders[folder] = resolve_path(folder)
            entry = os.path.join(parent.end, name)
            links += parent.links
            text = read_link(entry)
            if text is None:
                return ResolvedPath(entry, links)
            links = (*links, entry)
            path = os.path.join(parent.end, text)
        rest = resolve_path(path)
        return ResolvedPath(rest.end, (*links, *rest.links))


def is_owned_alone(info: os.stat_result) -> bool:
    """Return whether a file or folder belongs to this user and nobody else may write to it; always true on Windows."""
    return not hasattr(os, "geteuid") or (info.st_uid == os.geteuid() and not info.st_mode & _OTHERS_WRITE)


def find_shut_folder(path: str) -> tuple[str, str] | None:
    """Return the nearest folder that exists at a path or above it, and whose it is, if this user may not write there.

    Returns ``None`` when the user may write there, and on Windows.
    """
    if not hasattr(os, "geteuid"):
        return None
    folder = path
    while not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    if os.access(folder, os.W_OK | os.X_OK):
        return None
    owner = os.stat(folder).st_uid
    import pwd

    try:
        return folder, pwd.getpwuid(owner).pw_name
    except KeyError:  # a user of another machine or of a container
        return folder, f"the user {owner}"


def read_inode(path: str) -> int:
    """Return the inode number of an entry itself, or 0 without an entry. Renaming the entry keeps the number."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0


def shorten_path(path: str) -> str:
    """Return a path relative to the working folder if it is there, with ``~`` if it is in the home folder."""
    here, home = os.getcwd(), os.path.expanduser("~")
    for base, prefix in ((here, ""), (home, "~" + os.sep)):
        # Everything is below the root folder: a path relative to it would only lose its first slash.
        inner = path_inside(path, base) if base not in {os.sep, ""} else None
        if inner is not None:
            return prefix + inner if inner else ("." if base == here else "~")
    return path


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
        raise_bad_argument(argument, "must be a string or a path", given, remedy)
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
        raise_bad_argument(argument, "must be an existing folder", folder, "make it first")
    return folder

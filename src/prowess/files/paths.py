"""Questions about paths: whether one lies inside another, what is at its end, where it leads."""

from __future__ import annotations

import os
import stat

from prowess.files.directory import stat_folder
from prowess.records import NamedTuple

_MAX_LINKS = 40
"""What Linux follows in one path: a loop of links ends there."""


def path_inside(path: str, folder: str) -> str | None:
    """The path of ``path`` from ``folder``, ``""`` for the folder itself, or ``None`` when it lies elsewhere.

    Only the text of two absolute paths is compared: give paths without links (``os.path.realpath``) where it matters
    what is on the disk.
    """
    above = folder.rstrip(os.sep) + os.sep  # with the separator: "/a/bc" is not inside "/a/b"
    if path.startswith(above):
        return path[len(above) :]
    return "" if path == folder or path + os.sep == above else None


def is_inside(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it, by the text of two absolute paths."""
    return path_inside(path, folder) is not None


def is_really_inside(path: str, folder: str) -> bool:
    """Whether ``path`` leads to ``folder`` or below it on the disk, with every link in both resolved."""
    return is_inside(os.path.realpath(path), os.path.realpath(folder))


def is_link(path: str) -> bool:
    """Whether a path itself is a link, or a junction; ``False`` when there is nothing."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    reparse = getattr(info, "st_file_attributes", 0) & getattr(stat, "FILE_ATTRIBUTE_REPARSE_POINT", 0)
    return stat.S_ISLNK(info.st_mode) or bool(reparse)


def is_real_folder(path: str) -> bool:
    """Whether a path is a folder and no link to one."""
    return stat_folder(path) is not None and not is_link(path)


def is_same_folder(one: str, other: str) -> bool:
    """Whether two paths lead to one folder that is there."""
    try:
        first, second = os.stat(one), os.stat(other)
    except OSError:
        return False
    return first.st_ino == second.st_ino and first.st_dev == second.st_dev and stat.S_ISDIR(first.st_mode)


def read_link(path: str) -> str | None:
    """What a link says, or ``None`` when it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def is_link_to(path: str, folder: str) -> bool:
    """Whether there is a link that leads to a folder, be it there or not."""
    return is_link(path) and is_known_link_to(path, folder)


def is_known_link_to(link: str, folder: str) -> bool:
    """Whether something that is known to be a link leads to a folder, be it there or not."""
    return is_same_folder(link, folder) or _resolve_link(link) == os.path.realpath(folder)


def is_link_into(path: str, folder: str) -> bool:
    """Whether there is a link that leads to a folder or to something below it, be it there or not."""
    return is_link(path) and is_really_inside(_resolve_link(path), folder)


def _resolve_link(path: str) -> str:
    """The real path that a link leads to; nothing needs to be there."""
    text = read_link(path)
    return os.path.realpath(os.path.join(os.path.realpath(os.path.dirname(path)), text) if text is not None else path)


class ResolvedPath(NamedTuple):
    """Where a path ends on the disk, and every link that is followed on the way there, in order.

    More than the end (``os.path.realpath``) matters where it counts through which folders a path leads. Each link is
    named by its own path below real folders.
    """

    end: str
    links: tuple[str, ...] = ()


def resolve_path(path: str) -> ResolvedPath:
    """The trail of one path; nothing needs to be there. A loop of links is left after as many as Linux follows."""
    # A system that has ".." taken out of the text before it looks at the disk is Windows alone.
    lexical = os.name == "nt" or not os.path.isabs(path)
    drive, rest = os.path.splitdrive(os.path.abspath(path) if lexical else path)
    real, parts, links = drive + os.sep, rest.split(os.sep)[::-1], list[str]()
    while parts and len(links) <= _MAX_LINKS:
        part = parts.pop()
        if part in {"", os.curdir}:
            continue
        here = os.path.dirname(real) if part == os.pardir else os.path.join(real, part)
        text = read_link(here) if part != os.pardir else None
        if text is None:
            real = here
            continue
        links.append(here)
        if os.path.isabs(text):
            drive, text = os.path.splitdrive(text)
            real = drive + os.sep
        parts += text.split(os.sep)[::-1]
    # Windows has several spellings of one path, and only its own answer is the one that others are compared with.
    end = os.path.realpath(path) if os.name == "nt" else os.path.join(real, *reversed(parts))
    return ResolvedPath(end, tuple(links))


class PathResolver:
    """The trails of many paths, for as long as one listing takes: the folders around them are resolved once.

    Fast path: thousands of skills lie in a handful of folders, and ``os.path.realpath`` asks the system about each
    folder in each path. Its slow twin is ``resolve_path``; tests/files/test_paths.py compares them.
    """

    def __init__(self) -> None:
        self._folders: dict[str, ResolvedPath] = {}

    def resolve(self, path: str) -> ResolvedPath:
        """The trail of a path, as ``resolve_path`` gives it."""
        links: tuple[str, ...] = ()
        while len(links) <= _MAX_LINKS and os.name != "nt":
            folder, name = os.path.split(path)
            if name in {"", os.curdir, os.pardir}:
                break
            around = self._resolve_folder(folder)
            here = os.path.join(around.end, name)
            links += around.links
            text = read_link(here)
            if text is None:
                return ResolvedPath(here, links)
            links = (*links, here)
            path = os.path.join(around.end, text)
        rest = resolve_path(path)
        return ResolvedPath(rest.end, (*links, *rest.links))

    def _resolve_folder(self, folder: str) -> ResolvedPath:
        trail = self._folders.get(folder)
        if trail is None:
            trail = self._folders[folder] = resolve_path(folder)
        return trail


def read_inode(path: str) -> int:
    """The number of an entry itself, 0 when there is none: it stays the same when the entry is renamed."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0

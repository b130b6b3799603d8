"""Questions about paths: whether one lies inside another, what is at its end, where it leads."""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

from prowess.files.directory import folder_info

_MOST_LINKS = 40
"""What Linux follows in one path: a loop of links ends there."""


def inner_path(path: str, folder: str) -> str | None:
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
    return inner_path(path, folder) is not None


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
    return folder_info(path) is not None and not is_link(path)


def same_folder(one: str, other: str) -> bool:
    """Whether two paths lead to one folder that is there."""
    try:
        first, second = os.stat(one), os.stat(other)
    except OSError:
        return False
    return first.st_ino == second.st_ino and first.st_dev == second.st_dev and stat.S_ISDIR(first.st_mode)


def link_text(path: str) -> str | None:
    """What a link says, or ``None`` when it is no link."""
    try:
        return os.readlink(path)
    except OSError:
        return None


def leads_to(path: str, folder: str) -> bool:
    """Whether there is a link that leads to a folder, be it there or not."""
    return is_link(path) and link_ends_at(path, folder)


def link_ends_at(link: str, folder: str) -> bool:
    """Whether something that is known to be a link leads to a folder, be it there or not."""
    return same_folder(link, folder) or _aim(link) == os.path.realpath(folder)


def leads_into(path: str, folder: str) -> bool:
    """Whether there is a link that leads to a folder or to something below it, be it there or not."""
    return is_link(path) and is_really_inside(_aim(path), folder)


def _aim(path: str) -> str:
    """The real path that a link leads to; nothing needs to be there."""
    text = link_text(path)
    return os.path.realpath(os.path.join(os.path.realpath(os.path.dirname(path)), text) if text is not None else path)


class Trail(NamedTuple):
    """Where a path ends on the disk, and every link that is followed on the way there, in order.

    More than the end (``os.path.realpath``) matters where it counts through which folders a path leads. Each link is
    named by its own path below real folders.
    """

    end: str
    links: tuple[str, ...] = ()


def follow_path(path: str) -> Trail:
    """The trail of one path; nothing needs to be there. A loop of links is left after as many as Linux follows."""
    # A system that has ".." taken out of the text before it looks at the disk is Windows alone.
    lexical = os.name == "nt" or not os.path.isabs(path)
    drive, rest = os.path.splitdrive(os.path.abspath(path) if lexical else path)
    real, parts, links = drive + os.sep, rest.split(os.sep)[::-1], list[str]()
    while parts and len(links) <= _MOST_LINKS:
        part = parts.pop()
        if part in {"", os.curdir}:
            continue
        here = os.path.dirname(real) if part == os.pardir else os.path.join(real, part)
        text = link_text(here) if part != os.pardir else None
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
    return Trail(end, tuple(links))


class Trails:
    """The trails of many paths, for as long as one listing takes: the folders around them are resolved once.

    Fast path: thousands of skills lie in a handful of folders, and ``os.path.realpath`` asks the system about each
    folder in each path. Its slow twin is ``follow_path``; tests/files/test_paths.py compares them.
    """

    def __init__(self) -> None:
        self._folders: dict[str, Trail] = {}

    def follow(self, path: str) -> Trail:
        """The trail of a path, as ``follow_path`` gives it."""
        links: tuple[str, ...] = ()
        while len(links) <= _MOST_LINKS and os.name != "nt":
            folder, name = os.path.split(path)
            if name in {"", os.curdir, os.pardir}:
                break
            around = self._follow_folder(folder)
            here = os.path.join(around.end, name)
            links += around.links
            text = link_text(here)
            if text is None:
                return Trail(here, links)
            links = (*links, here)
            path = os.path.join(around.end, text)
        rest = follow_path(path)
        return Trail(rest.end, (*links, *rest.links))

    def _follow_folder(self, folder: str) -> Trail:
        trail = self._folders.get(folder)
        if trail is None:
            trail = self._folders[folder] = follow_path(folder)
        return trail


def inode(path: str) -> int:
    """The number of an entry itself, 0 when there is none: it stays the same when the entry is renamed."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0

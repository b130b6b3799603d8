"""Questions about paths: whether one lies inside another, what is at its end, where it leads."""

from __future__ import annotations

import os
import stat

from prowess.files.folders import folder_info

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
    return is_link(path) and (same_folder(path, folder) or _aim(path) == os.path.realpath(folder))


def leads_into(path: str, folder: str) -> bool:
    """Whether there is a link that leads to a folder or to something below it, be it there or not."""
    return is_link(path) and is_really_inside(_aim(path), folder)


def _aim(path: str) -> str:
    """The real path that a link leads to; nothing needs to be there."""
    text = link_text(path)
    return os.path.realpath(os.path.join(os.path.realpath(os.path.dirname(path)), text) if text is not None else path)


def followed_links(path: str) -> list[str]:
    """Every link that is followed on the way to the end of ``path``, by its own path below real folders, in order.

    More than the end (``os.path.realpath``) matters where it counts through which folders a path leads.
    """
    drive, rest = os.path.splitdrive(os.path.abspath(path))
    real, parts, links = drive + os.sep, rest.split(os.sep)[::-1], list[str]()
    while parts and len(links) <= _MOST_LINKS:
        part = parts.pop()
        here = os.path.dirname(real) if part == os.pardir else os.path.join(real, part)
        text = link_text(here) if part not in {"", os.curdir, os.pardir} else None
        if text is None:
            real = here
            continue
        links.append(here)
        if os.path.isabs(text):
            drive, text = os.path.splitdrive(text)
            real = drive + os.sep
        parts += text.split(os.sep)[::-1]
    return links


def inode(path: str) -> int:
    """The number of an entry itself, 0 when there is none: it stays the same when the entry is renamed."""
    try:
        return os.lstat(path).st_ino
    except OSError:
        return 0

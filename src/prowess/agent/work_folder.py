"""The working folder of the agent: files are read and written below it, and no path and no link leads out of it."""

from __future__ import annotations

import os
import stat
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from prowess.conversation.acting.sandbox.bwrap import places_in_bwrap
from prowess.errors import (
    PathTraversalError,
    ResourceChangedError,
    ResourceError,
    ResourceNotFoundError,
    ResourceTooLargeError,
    SkillError,
)
from prowess.files.directory import open_folder_beneath
from prowess.files.paths import is_link, path_inside
from prowess.files.read import OpenFile
from prowess.files.write import write_beneath
from prowess.install.file_diffs import ChangedLines, find_changed_lines
from prowess.limits import DEFAULT_LIMITS, Limits
from prowess.text.escapes import escape_line
from prowess.text.hidden_characters import escape_invisible
from prowess.text.quantities import format_count
from prowess.tools.file_ranges import detect_media_type, take_lines

if TYPE_CHECKING:
    from collections.abc import Iterable


_MAX_NAMES = 1_000
_NEW_FILE_MODE = 0o644
_PERMISSIONS = 0o777  # without the bits that give a program its owner's rights: the content is new


class ReadFile(NamedTuple):
    """What a path gave: text for the model, or the bytes of a picture or a PDF document with their media type."""

    text: str
    media: bytes = b""
    media_type: str = ""


class PlannedWrite(NamedTuple):
    """What a write would change, for a person, and a hash of the bytes that it would replace; ``""``: of no file."""

    preview: str
    before: str


class WorkFolder:
    """A folder that the agent works in; every path is relative to it, or absolute and below it."""

    def __init__(self, folder: str, limits: Limits = DEFAULT_LIMITS) -> None:
        self.folder = os.path.realpath(folder)
        self._limits = limits

    def resolve(self, path: str) -> str:
        """Return a path relative to the folder, with ``/``; ``""`` for the folder itself.

        Raises ``PathTraversalError`` for a path that leads out of it, by its text or through a link.
        """
        parts = self._split(path)
        self._refuse_links(parts, path)
        return "/".join(parts)

    def read(self, path: str, offset: int, limit: int) -> ReadFile:
        """Return ``limit`` lines of a text file from ``offset``, a picture, or the names in a folder.

        Raises ``ResourceError`` where that is not possible.
        """
        relative = self.resolve(path)
        parts = tuple(filter(None, relative.split("/")))
        if os.path.isdir(os.path.join(self.folder, *parts)):
            return ReadFile(self._list_names(parts, relative))
        with OpenFile(self.folder, tuple(relative.split("/"))) as file:
            content = file.read_all(self._limits.max_file_bytes)
        media_type = detect_media_type(content)
        if media_type:
            return ReadFile(f"{relative} is a file of the type {media_type}.", content, media_type)
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise ResourceError(f"{relative!r} is not text ({len(content)} bytes)", relative, "binary") from None
        return ReadFile(take_lines(text, relative, offset, limit, self._limits.max_resource_bytes)[0])

    def _list_names(self, parts: tuple[str, ...], relative: str) -> str:
        """Return the names in a folder, one a line, with ``/`` behind those of folders."""
        try:
            # Through handles: another process may put a link in the place of a folder after the check of the path.
            with open_folder_beneath(self.folder, parts) as folder, folder.scan_entries() as entries:
                found = list(islice(entries, self._limits.max_entries_per_folder))
        except OSError as error:
            raise ResourceError(f"cannot list {relative!r}: {error.strerror}", relative, "unreadable") from None
        # Escaped: a name may hold a line break, or bytes that are not UTF-8 and cannot be sent to a model.
        names = sorted(escape_line(f"{e.name}/" if e.is_dir(follow_symlinks=False) else e.name) for e in found)
        more = [f"[{len(names) - _MAX_NAMES} more]"] if len(names) > _MAX_NAMES else []
        return "\n".join([*names[:_MAX_NAMES], *more]) or "[the folder is empty]"

    def plan_write(self, path: str, content: str) -> PlannedWrite:
        """Return what a write would change; raise ``SkillError`` for one that is not possible."""
        relative = self._resolve_file(path)
        data = self._encode(content, relative)
        before = self._read_existing(relative)
        return PlannedWrite(_preview_write(relative, before, data, self._limits), _hash_content(before))

    def write(self, path: str, content: str, planned: PlannedWrite | None = None) -> str:
        """Create or replace a file, and the folders that are missing above it; return a sentence about it.

        ``planned``: what a person has seen. Raises ``ResourceChangedError`` where the file has changed since then, and
        ``SkillError`` where it is not possible.
        """
        relative = self._resolve_file(path)
        data = self._encode(content, relative)
        if planned is not None and _hash_content(self._read_existing(relative)) != planned.before:
            raise ResourceChangedError(f"{relative!r} has changed since a person was asked: nothing was done", relative)
        parts = tuple(relative.split("/"))
        try:
            mode = _find_mode(os.path.join(self.folder, *parts), relative)
            write_beneath(self.folder, parts, data, mode=mode or _NEW_FILE_MODE)
        except OSError as error:
            raise SkillError(f"cannot write {relative!r}: {error.strerror}", relative, "unwritable") from None
        return f"{'Replaced' if mode else 'Created'} {relative} ({format_count(len(data), 'byte')})."

    def _encode(self, content: str, relative: str) -> bytes:
        data = content.encode()
        if len(data) <= self._limits.max_file_bytes:
            return data
        message = f"{relative!r} would have {len(data)} bytes; at most {self._limits.max_file_bytes} are written"
        raise ResourceTooLargeError(message, relative)

    def _resolve_file(self, path: str) -> str:
        relative = self.resolve(path)
        if not relative:
            raise ResourceError("the working folder itself is not a file", relative, "not-a-regular-file")
        return relative

    def _split(self, path: str) -> tuple[str, ...]:
        # In one kind of sandbox the folder has another name, which a model may have seen in the output of a command.
        for folder in (self.folder, places_in_bwrap().work):
            inside = path_inside(os.path.normpath(path), folder) if os.path.isabs(path) else None
            if inside is not None:
                path = inside
                break
        parts = tuple(part for part in path.replace(os.sep, "/").split("/") if part not in {"", "."})
        if os.path.isabs(path) or path.startswith("~") or ".." in parts or "\0" in path:
            raise _outside_error(path)
        return parts

    def _refuse_links(self, parts: tuple[str, ...], path: str) -> None:
        place = self.folder
        for part in parts:
            place = os.path.join(place, part)
            if is_link(place):
                raise _outside_error(path, "leads through a link")

    def _read_existing(self, relative: str) -> bytes | None:
        try:
            with OpenFile(self.folder, tuple(relative.split("/"))) as file:
                return file.read_all(self._limits.max_file_bytes)
        except ResourceNotFoundError:
            return None


def _hash_content(content: bytes | None) -> str:
    return "" if content is None else sha256(content).hexdigest()


def _outside_error(path: str, why: str = "is not in the working folder") -> PathTraversalError:
    return PathTraversalError(f"{path[:200]!r} {why}", "", "outside-folder")


def _find_mode(place: str, relative: str) -> int:
    """Return the permissions of a file, 0 where there is none yet; raise ``ResourceError`` for anything but a file."""
    try:
        info = os.lstat(place)
    except FileNotFoundError:
        return 0
    if not stat.S_ISREG(info.st_mode):
        raise ResourceError(f"{relative!r} is not a regular file", relative, "not-a-regular-file")
    return info.st_mode & _PERMISSIONS


def _preview_write(path: str, before: bytes | None, after: bytes, limits: Limits) -> str:
    """Return what replacing ``before``, or creating a file, would change; ``""`` when nothing would.

    It is a unified diff with the size of each side. Characters that a person would not see are written out. Where too
    many lines change to compare them, it has all new lines, and says how many they replace.
    """
    if before == after:
        return ""
    shown = escape_invisible(path)
    old = "/dev/null" if before is None else f"a/{shown} ({_describe_size(before)})"
    new = f"b/{shown} ({_describe_size(after)})"
    changed = find_changed_lines(_split_lines(before or b""), _split_lines(after))
    rows = changed.list_rows(old, new) if changed.total <= limits.max_diff_lines else _list_new_lines(changed, old, new)
    return "\n".join(map(escape_invisible, "".join(rows).split("\n")))


def _list_new_lines(changed: ChangedLines, old: str, new: str) -> Iterable[str]:
    replaced = f"{format_count(len(changed.before), 'line')} from line {changed.skipped + 1:,} on"
    yield f"--- {old}\n+++ {new}\n[too many lines to compare: {replaced} would become these {len(changed.after):,}]\n"
    for line in changed.after:
        yield f"+{line}"


def _describe_size(data: bytes) -> str:
    return f"{format_count(len(data), 'byte')}, {format_count(len(_split_lines(data)), 'line')}"


def _split_lines(data: bytes) -> list[str]:
    # At line feeds alone, so that a row never ends within a line of the file; bytes that are not UTF-8 are kept apart.
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *filter(None, lines[-1:])]

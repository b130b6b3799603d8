"""Backups: what a change replaced or removed and no source could give back. Commands list them and never read them.

A backup is an entry in the folder ``.backup`` of an install base. Its name, ``<what>+<why>+<time>-<random>``, says all
that is known of it, so that one rename both moves and records it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.files import syscalls
from prowess.files.directory import Folder, folder_size, stat_folder
from prowess.files.write import make_folders
from prowess.names import is_safe_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.installed.scopes import InstallScope

BACKUP_FOLDER = ".backup"
REVOKED = "revoked"
REASONS = {
    "edited": "somebody had changed it by hand",
    "unknown": "it was in no lock file",
    "foreign": "it was where a link goes, and was not what Prowess put there",
    "sourceless": "no source could give it back",
    REVOKED: "it is revoked: do not put it back",
    "interrupted": "a change that was interrupted left it",
}
"""Why something is kept, in words, by the key that the name of a backup and a journal have."""
_NAME = re.compile(r"(?P<what>.+)\+(?P<why>[a-z]+)\+(?P<time>[0-9a-f]{11,14})-[0-9a-f]{12}", re.DOTALL)
_OLDER_NAME = re.compile(r"(?P<what>.+)-(?P<time>[0-9a-f]{11,14})-[0-9a-f]{12}", re.DOTALL)
"""The names that earlier versions gave, which have no reason."""


@dataclass(frozen=True, slots=True)
class Backup:
    """What a command kept: where it is, which skill it was, when and why it was kept, and how large it is.

    ``place`` is what is there now where it was: the install, the folder of a skill in it, or the folder where agents
    look. ``None`` when nothing is there.
    """

    path: Path
    skill: str
    """``org/name`` of an install, or the name of a skill that was where agents look."""
    when: datetime
    why: str
    bytes: int
    place: Path | None = None


def back_up(path: str, scope: InstallScope, what: str, why: str, token: str) -> Issue:
    """Move an entry to the backups of a scope; returns the issue that names its new path."""
    # The reason becomes a part of a path, and a journal, where it may come from, can hold any string.
    reason = why if why in REASONS else "edited"
    folder = os.path.join(scope.base, BACKUP_FOLDER)
    make_folders(folder, durable=True)
    target = os.path.join(folder, f"{what.lstrip('.').replace('/', '+')}+{reason}+{token}")
    syscalls.rename(path, target)
    return Issue("backed-up", what, f"{what} is kept at {target}: {REASONS[reason]}", target, 0, "info")


def list_backups(scope: InstallScope) -> Iterator[Backup]:
    """Yield the backups of a scope, the newest first; anything else in their folder is left out."""
    folder = os.path.join(scope.base, BACKUP_FOLDER)
    if stat_folder(folder) is None:
        return
    with Folder(folder) as opened:
        entries = opened.list_entries()
    found = [_read_name(scope, folder, name) for name in (*entries.folders, *entries.files)]
    yield from sorted(filter(None, found), key=lambda backup: (backup.when, backup.path), reverse=True)


def _read_name(scope: InstallScope, folder: str, name: str) -> Backup | None:
    """What the name of an entry in the folder of backups says; ``None`` for a name that no command gave."""
    match = _NAME.fullmatch(name) or _OLDER_NAME.fullmatch(name)
    when = _parse_time(match["time"]) if match is not None else None
    if match is None or when is None:
        return None
    path = Path(folder, name)
    why = REASONS.get(match.groupdict().get("why") or "", "not recorded")  # older names have no reason
    return Backup(path, _skill_of(match), when, why, folder_size(str(path)), _find_place(scope, match["what"]))


def _find_place(scope: InstallScope, what: str) -> Path | None:
    """What is there now where a backup was, by the first part of its name."""
    parts = what.split("+")
    if not all(map(is_safe_part, parts)):  # whoever made a clone chose the name
        return None
    places = (Path(scope.base, *parts), Path(scope.root, f".{parts[0]}", *parts[1:]), Path(scope.root, *parts))
    return next((place for place in places if place.is_dir()), None)


def _skill_of(match: re.Match[str]) -> str:
    """Return the skill that a backup was: ``org/name`` of an install, or the last part of a path where agents look."""
    what = match["what"].replace("+", "/")
    # "org/name" is an install; a path where agents look has more parts, or was recorded as foreign.
    is_path = what.count("/") > 1 or match.groupdict().get("why") == "foreign"  # the path of an edited copy
    return what.rpartition("/")[2] if is_path else what


def _parse_time(milliseconds: str) -> datetime | None:
    """Return the time in the name of a backup.

    ``None`` for a number that no command wrote, because no calendar has it.
    """
    try:
        return datetime.fromtimestamp(int(milliseconds, 16) / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None

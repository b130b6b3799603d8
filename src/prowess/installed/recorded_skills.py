"""Which installed skills the lock files record: only these are offered to a model. Nothing is hashed.

After a pulled removal the files of a skill are still on this disk. Nobody may see that skill any more, since it was
perhaps removed because it is malicious.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue
from prowess.files.paths import PathResolver, path_inside
from prowess.installed.journal_format import read_staged_lock
from prowess.lockfile.read import LOCK_FILE, parse_lock, parse_plain_toml, read_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.skills.skill import Skill

NOT_RECORDED = "not-in-lock"


class _InstalledFile(NamedTuple):
    """The SKILL.md of a skill in an install base."""

    number: int
    """The place of the skill among all skills."""
    path: str
    """Its path from the base: ``org/name/…/SKILL.md``."""


def drop_unrecorded(
    skills: Sequence[Skill], scopes: Sequence[InstallScope], limits: Limits
) -> tuple[list[Skill], list[Issue]]:
    """The skills without the installed ones that their lock file does not record, and an issue for each of these.

    Skills of a lock file that cannot be read stay, and one issue says so. A folder that somebody put into a base by
    hand, and that is not at ``org/name``, is not an install: it stays too.
    """
    resolver = PathResolver()
    folders = [resolver.resolve(skill.real_folder).end for skill in skills]
    dropped: dict[int, Issue] = {}
    unreadable: list[Issue] = []
    for scope in scopes:
        installed = _find_installed(skills, folders, os.path.realpath(scope.base))
        try:
            recorded = _read_recorded_files(scope, {file.path for file in installed}, limits)
        except InstallError as error:
            message = f"{error.message}; the skills that are installed here are used as they are"
            unreadable.append(Issue(error.code, "", message, error.path, 0, "warning"))
            continue
        for number, path in installed:
            if path not in recorded:
                name = "/".join(path.split("/")[:2])
                message = (
                    f"is installed and not in the lock file: models are not offered its skill {skills[number].name}"
                )
                dropped[number] = Issue(NOT_RECORDED, name, message, skills[number].location, 0, "warning")
    kept = [skill for number, skill in enumerate(skills) if number not in dropped]
    return kept, [*unreadable, *dropped.values()]


def _find_installed(skills: Sequence[Skill], folders: Sequence[str], base: str) -> list[_InstalledFile]:
    """Return the skills that are in an install below ``base``; ``folders`` are their real folders."""
    inner_paths = ((number, path_inside(folder, base)) for number, folder in enumerate(folders))
    files = (
        _InstalledFile(number, f"{inner.replace(os.sep, '/')}/{skills[number].file_name}")
        for number, inner in inner_paths
        if inner is not None
    )
    return [file for file in files if file.path.count("/") > 1]


def _read_recorded_files(scope: InstallScope, wanted: set[str], limits: Limits) -> set[str]:
    """Return the files among ``wanted`` that the lock file records, or that a change under way is about to record.

    Raises ``InstallError`` for a lock file that cannot be read.
    """
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    found: set[str] = set()
    # A change puts its files in place before it renames its lock file. So what waits is looked at after the lock file,
    # and the lock file once more, in case the change has ended meanwhile.
    for reads_pending in (False, True, False):
        if found == wanted:
            break
        text = _read_pending(scope, limits) if reads_pending else read_text(scope.lock_folder, LOCK_FILE, limits)
        found |= wanted & _list_files(text, path) if text is not None else set()
    return found


def _read_pending(scope: InstallScope, limits: Limits) -> str | None:
    with suppress(InstallError):  # a journal that is malformed says nothing
        return read_staged_lock(scope, limits)
    return None


def _list_files(text: str, path: str) -> set[str]:
    """Return every file that a lock file records, as ``org/name/file``."""
    data = parse_plain_toml(text)
    if data is None:  # somebody else wrote it
        return {f"{name}/{file}" for name, entry in parse_lock(text, path).items() for file in entry.files}
    # The names of files are all that counts here. To check each entry would take three times as long.
    rows = ((entry.get("name"), row) for entry in data["skill"] for row in entry.get("files", ()))
    return {f"{name}/{row.split(' ', 3)[-1]}" for name, row in rows}

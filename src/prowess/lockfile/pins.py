"""Installed skills that count only while they are what the lock file says."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue, ResourceError, SkillValidationError
from prowess.files.paths import PathResolver, is_inside, path_inside
from prowess.lockfile.compare import compare_folder
from prowess.lockfile.journal import read_staged_lock
from prowess.lockfile.read import parse_lock, read_lock
from prowess.names import split_resource_path
from prowess.skills.folder_files import FolderFiles
from prowess.skills.instructions import parse_body_offset
from prowess.skills.skill_files import SkillFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prowess.files.read import Identity
    from prowess.files.tree import FileHash
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.skills.instructions import LoadedSkill
    from prowess.skills.skill import Skill

_CHANGED_CODE = "changed-since-locked"
_MAX_TRIES = 100  # only as long as the lock file keeps changing under our eyes


class PinnedFiles(FolderFiles):
    """A folder whose files must be those that the lock file lists: each read is compared with that."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: Mapping[str, FileHash]) -> None:
        """``hashes``: what the lock file says of each file, by its path from the skill's folder."""
        self._hashes = hashes

    def find_difference(self, folder: str, limits: Limits) -> str:
        """The first thing in a folder that is not as the lock file says, in a few words; ``""`` where nothing is."""
        try:
            return next(map(str, compare_folder(self._hashes, folder, limits)), "")
        except OSError as error:
            return f"the folder cannot be read: {error.strerror}"

    def load(self, skill: Skill) -> LoadedSkill:
        """The skill, once its whole folder is what the lock file says; else raises ``SkillValidationError``."""
        difference = self.find_difference(skill.real_folder, skill.limits)
        if difference:
            raise SkillValidationError(difference, skill.location, _CHANGED_CODE)
        return super().load(skill)

    def _read_skill_file(self, skill: Skill, limit: int) -> tuple[bytes, Identity]:
        data, identity = super()._read_skill_file(skill, limit)
        if not self._is_listed(skill.file_name, data):
            message = f"{skill.file_name} is not what the lock file says"
            raise SkillValidationError(message, skill.location, _CHANGED_CODE)
        return data, identity

    def _read_body_bytes(self, skill: Skill, limit: int) -> tuple[bytes, int]:
        data, _ = self._read_skill_file(skill, limit)
        most = skill.limits.max_frontmatter_bytes
        offset = parse_body_offset(skill, data[:most], whole=len(data) <= most)
        return data[offset:], offset

    # A hash is of a whole file, so these read whole files, unlike those of a folder that is not locked.
    read_text = SkillFiles.read_text
    read_bytes = SkillFiles.read_bytes

    def _read_whole(self, skill: Skill, path: str) -> bytes:
        data = super().read_bytes(skill, path, skill.limits.max_install_bytes)
        if not self._is_listed("/".join(split_resource_path(path)), data):
            raise ResourceError(f"{path!r} is not what the lock file says", path, _CHANGED_CODE)
        return data

    def _is_listed(self, path: str, data: bytes) -> bool:
        listed = self._hashes.get(path)
        return listed is not None and listed.sha256 == hashlib.sha256(data).hexdigest()


def find_link_inside(skill: Skill, base: str, trails: PathResolver) -> str | None:
    """The first link on the way to a skill that lies in an install base, by its real path; ``None`` for none.

    Nothing that is installed holds a link, so such a link is not ours. What it leads to may lie anywhere, also where no
    lock file has a say, and would pass for installed.
    """
    links = (link for way in dict.fromkeys(skill.paths_followed) for link in trails.resolve(way).links)
    return next((link for link in links if is_inside(link, base)), None)


class LockVerifier:
    """The lock files of several scopes, and which of the skills found they vouch for."""

    def __init__(self, scopes: tuple[InstallScope, ...], limits: Limits) -> None:
        self._trails = PathResolver()
        self.records = tuple(LockRecords(scope, limits, self._trails) for scope in scopes)
        self._limits = limits

    def verify_skills(self, skills: list[Skill]) -> tuple[list[Skill], list[Issue]]:
        """The skills that count, those that are in a lock file pinned to it; and an issue for each of the others."""
        kept: list[Skill] = []
        issues: list[Issue] = []
        for skill in skills:
            judged = self.verify_skill(skill)
            if isinstance(judged, Issue):
                issues.append(judged)
            else:
                kept.append(skill if judged is None else skill.with_source(files=judged))
        return kept, issues

    def verify_skill(self, skill: Skill) -> PinnedFiles | Issue | None:
        """The pin of an installed skill that is what its lock file says, or the issue that says why it is not.

        ``None`` for a skill that is not installed: no lock file has a say in it.
        """
        folder = self._trails.resolve(skill.real_folder).end
        for records in self.records:
            link = find_link_inside(skill, records.base, self._trails)
            if link is not None:
                return Issue(_CHANGED_CODE, "", f"{link} is a link, not what was installed", skill.location)
            where = records.locate_folder(folder)
            if where is not None:
                return self._pin_skill(skill, folder, records, where)
        return None

    def find_entry(self, folder: str) -> tuple[LockEntry, str] | None:
        """The entry of a lock file that a skill's folder belongs to, and its path in the install; ``None`` for none."""
        real = self._trails.resolve(folder).end
        for records in self.records:
            where = records.locate_folder(real)
            entry = records.locked.get(where[0]) if where is not None else None
            if where is not None and entry is not None:
                return entry, where[1]
        return None

    def _pin_skill(
        self, skill: Skill, folder: str, records: LockRecords, where: tuple[str, str]
    ) -> PinnedFiles | Issue:
        wrong, code = "", "not-in-lock"
        for _ in range(_MAX_TRIES):
            for locked in (
                records.get_recorded,
                records.read_pending,
            ):  # in this order: what is pending is recorded next
                pin = _make_pin(locked(), where)
                wrong = pin.find_difference(folder, self._limits) if pin is not None else wrong
                if pin is not None and not wrong:
                    return pin
                code = code if pin is None else _CHANGED_CODE
            if not records.reread():
                break
        trouble = records.read_error
        if trouble is not None and not wrong:
            code, wrong = trouble.code if trouble.code == "lock-conflict" else code, trouble.message
        return Issue(code, "", wrong or "is in no lock file", skill.location)


def _make_pin(locked: LockEntries, where: tuple[str, str]) -> PinnedFiles | None:
    entry = locked.get(where[0])
    files = entry.files_below(where[1]) if entry is not None else None
    return PinnedFiles(files) if files else None


class LockRecords:
    """What the lock file of one scope says, and what is on its way there."""

    def __init__(self, scope: InstallScope, limits: Limits, trails: PathResolver) -> None:
        self.scope = scope
        self._limits = limits
        self._trails = trails
        self.base = os.path.realpath(scope.base)
        self.read_error: InstallError | None = None
        """What keeps the lock file from being read."""
        self.locked = self._read()
        self._copies: dict[str, tuple[str, str]] | None = None

    def _read(self) -> LockEntries:
        try:
            return read_lock(self.scope.lock_folder, limits=self._limits)
        except InstallError as error:
            self.read_error = error
            return {}

    def get_recorded(self) -> LockEntries:
        """What the lock file said when it was last read."""
        return self.locked

    def reread(self) -> bool:
        """Read the lock file again; whether it has changed meanwhile."""
        before, self.locked, self._copies = self.locked, self._read(), None
        return before != self.locked

    def read_pending(self) -> LockEntries:
        """What the lock file will say once the change that another process is making is done.

        Its text waits beside the lock file; nothing below the install base has a say in it.
        """
        with suppress(InstallError):
            text = read_staged_lock(self.scope, self._limits)
            return parse_lock(text) if text is not None else {}
        return {}

    def locate_folder(self, folder: str) -> tuple[str, str] | None:
        """The install that a folder belongs to and its path in there; ``None`` when this scope has not put it there."""
        inner = path_inside(folder, self.base)
        if inner is not None:
            parts = inner.split(os.sep)
            return "/".join(parts[:2]), "/".join(parts[2:])
        if self._copies is None:  # resolved once: each skill is looked up, and there may be thousands
            self._copies = dict(self._find_copies())
        return self._copies.get(folder)

    def _find_copies(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Each folder that is a copy in place of a link, with its install and the skill's path in there.

        A project's lock file may be somebody else's: it has no say in what lies outside of the project.
        """
        root = os.path.realpath(self.scope.root)
        for entry in self.locked.values():
            for link in entry.copies:
                place = entry.name, entry.folder_for_link(os.path.basename(link))
                folder = self._trails.resolve(os.path.join(self.scope.root, link)).end
                if self.scope.location == "user" or is_inside(folder, root):
                    yield folder, place

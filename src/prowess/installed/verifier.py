"""Installed skills that are pinned to the lock file: they load only while their files are those that it lists."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue, ResourceError, SkillValidationError
from prowess.files.paths import PathResolver, is_inside, path_inside
from prowess.installed.compare import NOT_SYNCED, compare_folder
from prowess.installed.journal_format import read_staged_lock
from prowess.installed.placed import PlacedTrees, digest_parts, name_copy
from prowess.lockfile.read import parse_lock, read_lock
from prowess.names import split_resource_path
from prowess.skills.skill_files import FolderFiles, SkillFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prowess.files.read import Identity
    from prowess.files.tree import FileHash
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.skills.skill import Skill
    from prowess.skills.skill_files import FolderPlace

_CHANGED_CODE = "changed-since-locked"
_MAX_TRIES = 100  # comparisons of one skill while other processes keep changing the lock file


class PinnedFiles(FolderFiles):
    """A folder whose files must be those that the lock file lists: each read is compared with that."""

    __slots__ = ("_hashes",)

    def __init__(self, hashes: Mapping[str, FileHash], place: FolderPlace) -> None:
        """``hashes``: what the lock file says of each file, by its path from the skill's folder."""
        super().__init__(place)
        self._hashes = hashes

    def renew(self) -> PinnedFiles:
        """Return itself; raises ``SkillValidationError`` unless the whole folder is what the lock file says."""
        # The whole folder before the instructions: they may make a model read, or run, any file of it.
        base, parts, _, location, limits = self._place
        difference = _find_difference(self._hashes, os.path.join(base, *parts), limits)
        if difference:
            raise SkillValidationError(difference, location, _CHANGED_CODE)
        return self

    def read_skill_file(self, limit: int) -> tuple[bytes, Identity | None]:
        data, identity = super().read_skill_file(limit)
        name = self._place.file
        if not self._has_listed_hash(name, data):
            raise SkillValidationError(f"{name} is not what the lock file says", self._place.location, _CHANGED_CODE)
        return data, identity

    # A hash is of a whole file, so these read whole files, unlike those of a folder that is not locked.
    read_text = SkillFiles.read_text
    read_bytes = SkillFiles.read_bytes

    def _read_whole(self, path: str) -> bytes:
        data = super().read_bytes(path, self._place.limits.max_install_bytes)
        if not self._has_listed_hash("/".join(split_resource_path(path)), data):
            raise ResourceError(f"{path!r} is not what the lock file says", path, _CHANGED_CODE)
        return data

    def _has_listed_hash(self, path: str, data: bytes) -> bool:
        listed = self._hashes.get(path)
        return listed is not None and listed.sha256 == hashlib.sha256(data).hexdigest()


def _find_difference(hashes: Mapping[str, FileHash], folder: str, limits: Limits) -> str:
    """Return the first thing in a folder that is not as the lock file says, in a few words, or ``""``."""
    try:
        return next(map(str, compare_folder(hashes, folder, limits)), "")
    except OSError as error:
        return f"the folder cannot be read: {error.strerror}"


class LockVerifier:
    """The lock files of several scopes, and the decision which skills are what these lock files say."""

    def __init__(self, scopes: tuple[InstallScope, ...], limits: Limits) -> None:
        self._resolver = PathResolver()
        self.records = tuple(LockRecords(scope, limits, self._resolver) for scope in scopes)
        self._limits = limits

    def verify_skills(self, skills: list[Skill]) -> tuple[list[Skill], list[Issue]]:
        """Return the skills that count, installed ones pinned to their lock file.

        And an issue for each of the others.
        """
        kept: list[Skill] = []
        issues: list[Issue] = []
        for skill in skills:
            verdict = self.verify_skill(skill)
            if isinstance(verdict, Issue):
                issues.append(verdict)
            else:
                kept.append(skill if verdict is None else skill.with_source(open_folder=partial(PinnedFiles, verdict)))
        return kept, issues

    def verify_skill(self, skill: Skill) -> Mapping[str, FileHash] | Issue | None:
        """Return the hashes that the lock file has for the files of an installed skill, or an issue where they differ.

        ``None`` for a skill that is not installed: it is in no lock file, and counts as it is.
        """
        folder = self._resolver.resolve(skill.real_folder).end
        for records in self.records:
            # No install holds a link, so somebody else made it. It may lead to a folder that no lock file covers, and
            # the skill in that folder would pass for an installed one.
            links = (
                link for path in dict.fromkeys(skill.paths_followed) for link in self._resolver.resolve(path).links
            )
            link = next((link for link in links if is_inside(link, records.base)), None)
            if link is not None:
                return Issue(_CHANGED_CODE, "", f"{link} is a link, not what was installed", skill.location)
            place = records.locate_folder(folder)
            if place is not None:
                return self._pin_skill(skill, folder, records, place)
        return None

    def find_entry(self, folder: str) -> tuple[LockEntry, str] | None:
        """Return the lock entry of the install that a skill's folder is in, and its path in there.

        ``None`` for any other.
        """
        found = self.find_record(folder)
        return found[1:] if found is not None else None

    def find_record(self, folder: str) -> tuple[InstallScope, LockEntry, str] | None:
        """``find_entry`` with the scope of the lock file that has the entry."""
        real = self._resolver.resolve(folder).end
        for records in self.records:
            place = records.locate_folder(real)
            entry = records.locked.get(place[0]) if place is not None else None
            if place is not None and entry is not None:
                return records.scope, entry, place[1]
        return None

    def _pin_skill(
        self, skill: Skill, folder: str, records: LockRecords, place: tuple[str, str]
    ) -> Mapping[str, FileHash] | Issue:
        difference, code = "", "not-in-lock"
        for _ in range(_MAX_TRIES):
            # In this order, and the second only after the first was compared: what is pending now is recorded next.
            for read_entries in (records.current_entries, records.read_pending):
                entry = read_entries().get(place[0])
                hashes = entry.files_below(place[1]) if entry is not None else None
                if not hashes:
                    continue
                difference, code = _find_difference(hashes, folder, self._limits), _CHANGED_CODE
                if not difference:
                    return hashes
            if not records.reread():
                break
        if difference and records.is_pristine(place, folder):
            code, difference = NOT_SYNCED, f"{place[0]} is another version than the lock file has"
        error = records.read_error
        if error is not None and not difference:
            is_about_file = error.code in {"lock-conflict", "newer-lock"}
            code, difference = error.code if is_about_file else code, error.message
        return Issue(code, "", difference or "is in no lock file", skill.location)


class LockRecords:
    """The lock file of one scope: its entries, and those that a change under way will put there."""

    def __init__(self, scope: InstallScope, limits: Limits, resolver: PathResolver) -> None:
        self.scope = scope
        self._limits = limits
        self._resolver = resolver
        self.base = os.path.realpath(scope.base)
        self.read_error: InstallError | None = None
        """The reason why the lock file cannot be read; ``None`` where it can."""
        self.locked = self._read()
        self._copies: dict[str, tuple[str, str]] | None = None
        self._links: dict[str, str] = {}
        """The link, as the lock file has it, in whose place each copy is."""
        self._placed = PlacedTrees(scope.base, limits)

    def _read(self) -> LockEntries:
        try:
            return read_lock(self.scope.lock_folder, limits=self._limits)
        except InstallError as error:
            self.read_error = error
            return {}

    def current_entries(self) -> LockEntries:
        """Return the entries of the lock file when it was last read."""
        return self.locked

    def reread(self) -> bool:
        """Read the lock file again, and return True when it has changed meanwhile."""
        before, self.locked, self._copies = self.locked, self._read(), None
        return before != self.locked

    def read_pending(self) -> LockEntries:
        """Return the entries that the lock file will have after the change that another process is making.

        Else none.
        """
        # Their text waits beside the lock file: a file below the install base could not add entries here.
        with suppress(InstallError):
            text = read_staged_lock(self.scope, self._limits)
            return parse_lock(text) if text is not None else {}
        return {}

    def is_pristine(self, place: tuple[str, str], folder: str) -> bool:
        """Return whether a skill of an install, or the copy at ``folder``, is exactly what Prowess put there."""
        if not is_inside(folder, self.base):
            return self._placed.is_pristine(name_copy(self._links.get(folder, "")), folder)
        name, inner = place
        return self._placed.is_skill_pristine(name, inner, self.scope.install_folder(name))

    def is_behind(self, entry: LockEntry) -> bool:
        """Return whether Prowess last put another version of an install here than its entry has."""
        placed = self._placed.parts_of(entry.name)
        return bool(placed) and placed != digest_parts(entry)

    def locate_folder(self, folder: str) -> tuple[str, str] | None:
        """Return the install that a folder is in, and its path in there.

        ``None`` for a folder that is not of this scope.
        """
        inner = path_inside(folder, self.base)
        if inner is not None:
            parts = inner.split(os.sep)
            return "/".join(parts[:2]), "/".join(parts[2:])
        if self._copies is None:  # resolved once for all skills: there may be thousands
            self._copies = dict(self._find_copies())
        return self._copies.get(folder)

    def _find_copies(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield each folder that is a copy in place of a link, with its install and the skill's path in there."""
        root, placed = os.path.realpath(self.scope.root), frozenset(self._placed.copies)
        for entry in self.locked.values():
            # What the lock file calls a link is a copy where the system makes no links.
            for link in (*entry.copies, *(link for link in entry.links if name_copy(link) in placed)):
                place = entry.name, entry.folder_for_link(os.path.basename(link))
                folder = self._resolver.resolve(os.path.join(self.scope.root, link)).end
                # A project's lock file may come from a stranger, so it decides nothing outside of the project.
                if self.scope.location == "user" or is_inside(folder, root):
                    self._links[folder] = link
                    yield folder, place

"""Installed skills that are pinned to the lock file: they load only while their files are those that it lists."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue, ResourceError, SkillValidationError
from prowess.files.paths import PathResolver, is_inside, path_inside
from prowess.installed.compare import NOT_SYNCED, compare_folder
from prowess.installed.journal_format import read_staged_lock
from prowess.installed.placed import PlacedTrees, digest_parts, name_copy
from prowess.lockfile.read import LOCK_FILE, parse_lock, parse_plain_toml, read_lock, read_text
from prowess.names import split_resource_path
from prowess.skills.skill_files import FolderFiles, SkillFiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


_NOT_RECORDED = "not-in-lock"


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
                dropped[number] = Issue(_NOT_RECORDED, name, message, skills[number].location, 0, "warning")
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

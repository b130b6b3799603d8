"""Whether installed skills are what their lock files say, for those who show many of them. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue
from prowess.installed.compare import NOT_SYNCED, compare_folder
from prowess.installed.journal_format import find_interrupted_change
from prowess.installed.policy_check import is_refused
from prowess.installed.scopes import find_copies, is_on_disk
from prowess.installed.verifier import LockVerifier
from prowess.names import link_name

if TYPE_CHECKING:
    from prowess.installed.compare import Difference
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.skills.skill import Skill

CHANGED = "changed since installed"
BEHIND = "not synced"
"""The state of an install that nobody changed, and that the lock file has in another version."""
VERIFIED = "verified"
_STATES = {"changed-since-locked": CHANGED, NOT_SYNCED: BEHIND, "not-in-lock": "not in the lock file"}


class LockStates:
    """The lock files of some scopes, read once. Only what they name is hashed."""

    def __init__(self, scopes: tuple[InstallScope, ...], limits: Limits) -> None:
        self._verifier = LockVerifier(scopes, limits)
        self._limits = limits
        self.lock_errors: list[InstallError] = [
            lock.read_error for lock in self._verifier.records if lock.read_error is not None
        ]
        """Why lock files could not be read."""
        self.interrupted_changes: list[Issue] = [
            issue for scope in scopes for issue in find_interrupted_change(scope, limits)
        ]
        """Changes that somebody interrupted, and that the next change finishes or undoes."""

    @property
    def has_entries(self) -> bool:
        """True when a lock file records an install."""
        return any(lock.locked for lock in self._verifier.records)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources of all installs, each once, in order."""
        return tuple(sorted({entry.source for lock in self._verifier.records for entry in lock.locked.values()}))

    def find_state(self, skill: Skill) -> str:
        """Return how an installed skill compares with its lock file, in words; ``""`` if it is not installed."""
        if not skill.is_local:
            return ""
        verdict = self._verifier.verify_skill(skill)
        if not isinstance(verdict, Issue):
            return "" if verdict is None else VERIFIED
        # A lock file that cannot be read says nothing about a skill: one warning about the file is enough.
        is_unknown = verdict.message in {error.message for error in self.lock_errors}
        return "" if is_unknown else _STATES.get(verdict.code, "")

    def find_entry(self, skill: Skill) -> tuple[LockEntry, str] | None:
        """Return the lock entry of a skill and its path in the install; ``None`` if it is not installed."""
        return self._verifier.find_entry(skill.folder) if skill.is_local else None

    def describe_source(self, skill: Skill) -> str:
        """Return where a skill was installed from, at which version or commit; ``""`` if it is not installed."""
        recorded = self.find_entry(skill)
        if recorded is None:
            return ""
        entry, _ = recorded
        version = entry.ref or entry.commit[:12]
        return f"{entry.source}{f' at {version}' if version else ''}"

    def is_changed_at(self, location: str) -> bool:
        """Return True when the SKILL.md at ``location`` is in an install, or its copy, that differs from its lock."""
        return bool(self.find_differences(os.path.dirname(location)))

    def find_differences(self, folder: str) -> list[Difference]:
        """Return how the folder of an installed skill differs from its lock entry; none if it is not installed.

        Raises ``OSError`` for an existing folder that cannot be listed.
        """
        recorded = self._verifier.find_entry(folder)
        if recorded is None:
            return []
        entry, inner = recorded
        return compare_folder(entry.files_below(inner), os.path.realpath(folder), self._limits)

    def find_behind(self, location: str) -> list[str]:
        """Return the installs that Prowess last put here in another version than the lock file has.

        Those that the policy refuses are left out. Nothing is hashed. ``location`` is ``"project"`` or ``"user"``.
        """
        return [
            entry.name
            for lock in self._verifier.records
            for entry in lock.locked.values()
            if lock.scope.location == location and lock.is_behind(entry) and not is_refused(lock.scope, entry)
        ]

    def find_missing(self, location: str) -> list[str]:
        """Return the skills that lock files of the ``"project"`` or the ``"user"`` record and that are not here.

        Those that the policy refuses are left out: no sync brings them.
        """
        return [
            skill
            for lock in self._verifier.records
            for entry in lock.locked.values()
            if lock.scope.location == location
            and not is_on_disk(entry, lock.scope)
            and not is_refused(lock.scope, entry)
            for skill in _list_absent_skills(entry, lock.scope)
        ]

    def find_refused(self, location: str) -> list[str]:
        """Return the skills that lock files of the ``"project"`` or the ``"user"`` record, and the policy keeps away.

        They are not here, and no sync brings them.
        """
        return [
            skill
            for lock in self._verifier.records
            for entry in lock.locked.values()
            if lock.scope.location == location and not is_on_disk(entry, lock.scope) and is_refused(lock.scope, entry)
            for skill in entry.skills
        ]


def _list_absent_skills(entry: LockEntry, scope: InstallScope) -> list[str]:
    """Return the skills of an install that is not on the disk; in copy mode, those that have no copy there."""
    if not entry.is_copied:
        return [*entry.skills]
    absent = {*map(os.path.basename, entry.copies)}.difference(map(os.path.basename, find_copies(entry, scope)))
    return [skill for skill in entry.skills if link_name(skill) in absent]

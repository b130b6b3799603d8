"""Whether installed skills are what their lock files say, for commands that show or use them. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.errors import Issue
from prowess.files.projects import config_home, project_folders
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import Iterable

    import prowess
    from prowess.errors import InstallError
    from prowess.lockfile.pins import LockVerifier

LOCK_FILE = "prowess.lock"
_JOURNAL = ".prowess.journal"
CHANGED = "changed since installed"
_STATES = {"changed-since-locked": CHANGED, "not-in-lock": "not in the lock file"}


class LockStates:
    """The lock files around the working folder and of the user, read once; only what they name is hashed."""

    def __init__(self) -> None:
        home = os.path.expanduser("~")
        own = os.path.join(config_home(home, os.environ), "prowess")
        self._pins: LockVerifier | None = None
        self.lock_errors: list[InstallError] = []
        """What keeps a lock file from being read."""
        self.interrupted_changes: list[Issue] = []
        """Changes that were interrupted."""
        folders = (*project_folders(os.getcwd(), home), own)
        if any(os.path.lexists(os.path.join(folder, name)) for folder in folders for name in (LOCK_FILE, _JOURNAL)):
            self._read_locks(home)

    def _read_locks(self, home: str) -> None:
        from prowess.lockfile.journal import find_interrupted_change  # noqa: PLC0415
        from prowess.lockfile.pins import LockVerifier  # noqa: PLC0415
        from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415 - only where there is a lock file

        scopes = standard_scopes(os.getcwd(), home, os.environ)
        self._pins = LockVerifier(scopes, DEFAULT_LIMITS)
        self.interrupted_changes = [
            issue for scope in scopes for issue in find_interrupted_change(scope, DEFAULT_LIMITS)
        ]
        self.lock_errors = [records.read_error for records in self._pins.records if records.read_error is not None]

    def find_state(self, skill: prowess.Skill) -> str:
        """``verified``, ``changed since installed``, ``not in the lock file``; ``""`` for what is not installed."""
        if self._pins is None or not skill.is_local:
            return ""
        judged = self._pins.verify_skill(skill)
        unread = {trouble.message for trouble in self.lock_errors}
        if judged is None or (isinstance(judged, Issue) and judged.message in unread):
            return ""  # not installed; or nobody knows, which is told once
        return _STATES.get(judged.code, "") if isinstance(judged, Issue) else "verified"

    def describe_source(self, skill: prowess.Skill) -> str:
        """From where a skill was installed, at which version or commit; ``""`` for what is not installed."""
        recorded = self._pins.find_entry(skill.folder) if self._pins and skill.is_local else None
        if recorded is None:
            return ""
        version = recorded[0].ref or recorded[0].commit[:12]
        return f"{recorded[0].source}{f' at {version}' if version else ''}"

    def is_changed_at(self, location: str) -> bool:
        """True when a skill's file lies in an install, or in a copy of one, that is not what its lock file says."""
        from prowess.lockfile.compare import compare_folder  # noqa: PLC0415 - only where there is a lock file

        folder = os.path.dirname(location)
        recorded = self._pins.find_entry(folder) if self._pins else None
        if recorded is None:
            return False
        entry, inner = recorded
        return bool(compare_folder(entry.files_below(inner), os.path.realpath(folder), DEFAULT_LIMITS))

    def find_missing(self, location: str) -> list[str]:
        """The skills that lock files of the ``"project"`` or the ``"user"`` record, and that are not here."""
        from prowess.lockfile.scopes import is_on_disk  # noqa: PLC0415 - only where there is a lock file

        return [
            skill
            for records in (self._pins.records if self._pins else ())
            for entry in records.locked.values()
            if records.scope.location == location and not is_on_disk(entry, records.scope)
            for skill in entry.skills
        ]


def warn_edited_skills(skills: Iterable[prowess.Skill], verified: LockStates | None = None) -> None:
    """Warn of each skill that somebody changed after it was installed, and is used all the same.

    Changes that were interrupted are told as well. ``verified``: what was read of the lock files already.
    """
    verified = verified or LockStates()
    warn_lock_problems(verified)
    for skill in skills:
        if verified.find_state(skill) == CHANGED:
            warn_edited_skill(skill)


def warn_lock_problems(verified: LockStates) -> None:
    """Warn of changes that were interrupted, and of lock files that cannot be read."""
    for issue in verified.interrupted_changes:
        printer.warn(f"[{issue.code}] {issue.path}: {issue.message}")
    for trouble in verified.lock_errors:
        printer.warn(f"[{trouble.code}] {trouble.message}; whether installed skills have changed is not known")
        if trouble.code == "lock-conflict":
            printer.note(f"  hint: {find_remedy(trouble.code)}")


def warn_edited_skill(skill: prowess.Skill) -> None:
    """Warn of one skill that somebody changed after it was installed, and is used all the same."""
    printer.warn(
        f"[changed-since-locked] {skill.name} is not what {LOCK_FILE} says ('prowess verify' names the files, "
        "'prowess sync' restores them, --verify refuses it)"
    )


def suggest_sync(name: str = "", *, project: bool = True, verified: LockStates | None = None) -> str:
    """What to do about skills that a lock file records and that are not here, or about that one; else ``""``."""
    verified = verified or LockStates()
    for location, command in (("project", "prowess sync --locked"), ("user", "prowess sync --locked --user")):
        names = verified.find_missing(location) if project or location == "user" else []
        if names and (not name or name in names):
            what = "1 skill that is" if len(names) == 1 else f"{len(names)} skills that are"
            return f"{LOCK_FILE} records {what} not here: {command}"
    return ""


def without_edited(catalog: prowess.Catalog) -> prowess.Catalog:
    """The catalogue without the installed skills that are not what their lock files say."""
    from prowess.lockfile.pins import LockVerifier  # noqa: PLC0415
    from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415
    from prowess.skills.catalog import Catalog  # noqa: PLC0415 - only for those who ask

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    kept, refused = LockVerifier(scopes, DEFAULT_LIMITS).verify_skills(list(catalog.skills))
    return Catalog(kept, issues=[*catalog.failures, *refused], places=catalog.places)

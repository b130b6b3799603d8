"""Whether installed skills are what their lock files say, for commands that show or use them. Nothing is changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.errors import InstallError, Issue
from prowess.files.projects import config_home, project_folders
from prowess.limits import DEFAULT_LIMITS
from prowess.skills.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    import prowess
    from prowess.lockfile.verifier import LockVerifier

# Two names that lockfile/ has as well: 'prowess list' without a lock file must not load that package to look for one.
LOCK_FILE = "prowess.lock"
_JOURNAL = ".prowess.journal"
CHANGED = "changed since installed"
_STATES = {"changed-since-locked": CHANGED, "not-in-lock": "not in the lock file"}


class LockStates:
    """The lock files around the working folder and of the user, read once. Only what they name is hashed."""

    def __init__(self) -> None:
        home = os.path.expanduser("~")
        user_folder = os.path.join(config_home(home, os.environ), "prowess")
        self._verifier: LockVerifier | None = None
        self.lock_errors: list[InstallError] = []
        """Why lock files could not be read."""
        self.interrupted_changes: list[Issue] = []
        """Changes that somebody interrupted, and that the next change finishes or undoes."""
        folders = (*project_folders(os.getcwd(), home), user_folder)
        # Fast path of 'prowess list': a few looks at the disk, and nothing is imported where nothing is installed.
        if any(os.path.lexists(os.path.join(folder, name)) for folder in folders for name in (LOCK_FILE, _JOURNAL)):
            self._read_locks(home)

    def _read_locks(self, home: str) -> None:
        from prowess.lockfile.journal_format import find_interrupted_change  # noqa: PLC0415 - 'list' needs it with a lock only
        from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415 - 'list' needs it with a lock only
        from prowess.lockfile.verifier import LockVerifier  # noqa: PLC0415 - 'list' needs it with a lock only

        scopes = standard_scopes(os.getcwd(), home, os.environ)
        self._verifier = LockVerifier(scopes, DEFAULT_LIMITS)
        self.interrupted_changes = [
            issue for scope in scopes for issue in find_interrupted_change(scope, DEFAULT_LIMITS)
        ]
        self.lock_errors = [lock.read_error for lock in self._verifier.records if lock.read_error is not None]

    def find_state(self, skill: prowess.Skill) -> str:
        """Return ``verified``, ``changed since installed`` or ``not in the lock file``; ``""`` if not installed."""
        if self._verifier is None or not skill.is_local:
            return ""
        verdict = self._verifier.verify_skill(skill)
        if not isinstance(verdict, Issue):
            return "" if verdict is None else "verified"
        # A lock file that cannot be read says nothing about a skill: one warning about the file is enough.
        is_unknown = verdict.message in {error.message for error in self.lock_errors}
        return "" if is_unknown else _STATES.get(verdict.code, "")

    def describe_source(self, skill: prowess.Skill) -> str:
        """Return where a skill was installed from, at which version or commit; ``""`` if it is not installed."""
        recorded = self._verifier.find_entry(skill.folder) if self._verifier and skill.is_local else None
        if recorded is None:
            return ""
        entry, _ = recorded
        version = entry.ref or entry.commit[:12]
        return f"{entry.source}{f' at {version}' if version else ''}"

    def is_changed_at(self, location: str) -> bool:
        """Return True when the SKILL.md at ``location`` is in an install, or its copy, that differs from its lock."""
        folder = os.path.dirname(location)
        recorded = self._verifier.find_entry(folder) if self._verifier else None
        if recorded is None:
            return False
        from prowess.lockfile.compare import compare_folder  # noqa: PLC0415 - 'list' needs it with a lock only

        entry, inner = recorded
        return bool(compare_folder(entry.files_below(inner), os.path.realpath(folder), DEFAULT_LIMITS))

    def find_missing(self, location: str) -> list[str]:
        """Return the skills that lock files of the ``"project"`` or the ``"user"`` record and that are not here."""
        if self._verifier is None:
            return []
        from prowess.lockfile.scopes import is_on_disk  # noqa: PLC0415 - 'list' needs it with a lock only

        return [
            skill
            for lock in self._verifier.records
            for entry in lock.locked.values()
            if lock.scope.location == location and not is_on_disk(entry, lock.scope)
            for skill in entry.skills
        ]


def warn_edited_skills(skills: Iterable[prowess.Skill], lock_states: LockStates | None = None) -> None:
    """Warn of lock files with problems, and of each skill that somebody changed after it was installed.

    ``lock_states`` are the lock files, if the caller has read them already.
    """
    lock_states = lock_states or LockStates()
    warn_lock_problems(lock_states)
    for skill in skills:
        if lock_states.find_state(skill) == CHANGED:
            warn_edited_skill(skill)


def warn_lock_problems(lock_states: LockStates) -> None:
    """Warn of changes that were interrupted, and of lock files that cannot be read."""
    for issue in lock_states.interrupted_changes:
        printer.warn(f"[{issue.code}] {issue.path}: {issue.message}")
    for error in lock_states.lock_errors:
        printer.warn(f"[{error.code}] {error.message}; whether installed skills have changed is not known")
        if error.code == "lock-conflict":
            printer.note(f"  hint: {find_remedy(error.code)}")


def warn_edited_skill(skill: prowess.Skill) -> None:
    """Warn that a skill differs from its lock file. It is used nevertheless; ``--verify`` refuses it."""
    printer.warn(
        f"[changed-since-locked] {skill.name} is not what {LOCK_FILE} says ('prowess verify' names the files, "
        "'prowess sync' restores them, --verify refuses it)"
    )


def suggest_sync(name: str = "", *, project: bool = True, lock_states: LockStates | None = None) -> str:
    """Return the command that brings skills which a lock file records and which are not here, or ``""``.

    With ``name``, only that skill counts. Without ``project``, only the user's lock file does.
    """
    lock_states = lock_states or LockStates()
    # The project comes first: after a clone it is the project's skills that are missing.
    for location, command in (("project", "prowess sync --locked"), ("user", "prowess sync --locked --user")):
        names = lock_states.find_missing(location) if project or location == "user" else []
        if names and (not name or name in names):
            what = "1 skill that is" if len(names) == 1 else f"{len(names)} skills that are"
            return f"{LOCK_FILE} records {what} not here: {command}"
    return ""


def without_edited_skills(catalog: prowess.Catalog) -> prowess.Catalog:
    """Return the catalogue without the installed skills that differ from their lock files."""
    from prowess.lockfile.scopes import standard_scopes  # noqa: PLC0415 - 'list' needs it with --verify only
    from prowess.lockfile.verifier import LockVerifier  # noqa: PLC0415 - 'list' needs it with --verify only

    scopes = standard_scopes(os.getcwd(), os.path.expanduser("~"), os.environ)
    unchanged, refused = LockVerifier(scopes, DEFAULT_LIMITS).verify_skills(list(catalog.skills))
    return Catalog(unchanged, issues=[*catalog.failures, *refused], places=catalog.places)

"""Sync: the lock file made to say what the manifest declares, and the disk made equal to the lock file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from prowess.changes.change import Change, list_scope_files, read_file_states
from prowess.errors import Issue, SkillError
from prowess.files.paths import shorten_path
from prowess.install.agent_links import LinkFolders
from prowess.install.sync import SURPLUS_CODES
from prowess.installed.placed import PlacedTrees, digest_parts
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.install.installer import Installer
    from prowess.installed.placed import Parts
    from prowess.installed.scopes import InstalledSkill, InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

_DIFFERENCES = "what differs from the lock file"


class SyncRun:
    """The sync of one scope, or of several: what it is going to do, and the lock files as they were before."""

    def __init__(
        self, installer: Installer, scopes: Sequence[InstallScope], limits: Limits, *, locked: bool = False
    ) -> None:
        self._installer, self._scopes, self._limits, self._is_locked = installer, scopes, limits, locked
        self.errors: dict[InstallScope, SkillError] = {}
        """What failed, where several scopes are synced: one that fails does not stop the others."""
        self._before: dict[InstallScope, LockEntries] = {}
        """The lock files before the sync: the report says what is new in them."""
        for scope in scopes:
            with self._going_on(scope):
                self._before[scope] = read_lock(scope.lock_folder, limits=limits)
        self._placed = {scope: dict(PlacedTrees(scope.base, limits).items()) for scope in self._before}
        """What Prowess had put on this disk before the sync."""
        self.steps: list[str] = []
        self._issues: list[Issue] = []
        """The issues of the last look or sync of each scope."""

    @contextmanager
    def _going_on(self, scope: InstallScope) -> Iterator[None]:
        """Keep an error for the end where there is another scope."""
        try:
            yield
        except SkillError as error:
            if len(self._scopes) == 1:
                raise
            self.errors[scope] = error

    def look(self, *, remove: bool) -> None:
        """Find out what is going to be done; nothing is changed."""
        for scope in self._before:
            with self._going_on(scope):
                self.steps += self._list_differences(scope, remove=remove)
                self._issues += self._installer.issues

    def _list_differences(self, scope: InstallScope, *, remove: bool) -> tuple[str, ...]:
        project = scope.location == "project"
        return self._installer.difference(project=project, locked=self._is_locked, remove=remove)

    def list_surplus(self) -> list[Issue]:
        """Return the installs that nothing asks for, one issue each."""
        return [issue for issue in self._issues if issue.code in SURPLUS_CODES]

    def prepare(self, *, remove: bool, watch: bool = False) -> Change[list[InstalledSkill]]:
        """Return the change that makes the disk equal the lock files; with ``remove``, what nothing asks for goes.

        With ``watch``, it has the states of all installs, and the steps are found out now.
        """

        def read_states() -> dict[str, str]:
            states = read_file_states(
                [path for scope in self._before for path in self._list_paths(scope)], self._limits
            )
            rows = [row for scope in self._before for row in self._list_differences(scope, remove=remove)]
            return {**states, _DIFFERENCES: "\n".join(rows)}

        states = read_states() if watch else {}
        if watch:
            self.steps = [step for step in states[_DIFFERENCES].split("\n") if step]
            self._issues = [*self._installer.issues]
        return Change(
            steps=self.steps,
            states=states,
            read_states=read_states,
            apply=lambda: self._sync(remove=remove),
            describe=self._describe,
            # What is removed now is said by what was done.
            issues=lambda: [
                issue
                for issue in self.list_issues()
                if issue.code != "removed-by-sync" and not (remove and issue.code in SURPLUS_CODES)
            ],
            idle_text="Nothing was changed." if self.list_surplus() and not remove else "Nothing to do.",
        )

    def list_issues(self) -> list[Issue]:
        """Return the issues, and what failed in one scope among them, so that it is reported beside what was done."""
        return [
            *dict.fromkeys(self._issues),
            *(Issue(error.code, scope.location, error.message, error.path) for scope, error in self.errors.items()),
        ]

    def _list_paths(self, scope: InstallScope) -> Iterator[str]:
        locked, folders = read_lock(scope.lock_folder, limits=self._limits), LinkFolders(scope)
        yield from list_scope_files(scope)
        yield from (scope.install_folder(name) for name in locked)
        yield from (folders.path_of_link(copy) for entry in locked.values() for copy in entry.copies)

    def _sync(self, *, remove: bool) -> list[InstalledSkill]:
        installs: list[InstalledSkill] = []
        self._issues = []
        self.errors = {scope: error for scope, error in self.errors.items() if scope not in self._before}
        for scope in self._before:
            with self._going_on(scope):
                project = scope.location == "project"
                try:
                    installs += self._installer.sync(locked=self._is_locked, project=project, remove=remove)
                finally:
                    self._issues += self._installer.issues
        return installs

    def _describe(self, installs: Sequence[InstalledSkill]) -> list[str]:
        """Return what was installed and removed. "Done." stands for a change of records or links alone."""
        rows: list[str] = []
        for scope, before in self._before.items():
            if scope in self.errors:
                continue
            after, placed = read_lock(scope.lock_folder, limits=self._limits), self._placed[scope]
            for install in installs:
                if install.location == scope.location:
                    name, path = install.full_name, shorten_path(str(install.path))
                    verb = _choose_verb(before.get(name), after.get(name), placed)
                    rows.append(f"{verb} {name} for the {install.location}: {path}")
            rows += [f"Removed {name}." for name in before if name not in after]
        rows += [f"Removed {issue.field}." for issue in self._issues if issue.code == "removed-by-sync"]
        if self.errors and not rows:
            return ["Nothing else was to be done."]
        return rows or (["Done."] if self.steps else [])


def _choose_verb(was: LockEntry | None, now: LockEntry | None, placed: Mapping[str, Parts]) -> str:
    """Return what happened to an install: ``was`` and ``now`` are its entries in the lock file."""
    here = placed.get(now.name) if was is not None and now is not None else None
    if not here or was is None or now is None:
        return "Installed"
    is_same = (here, was.declared, was.agents) == (digest_parts(now), now.declared, now.agents)
    return "Restored" if is_same else "Updated"

"""``prowess sync``: makes the disk equal the lock file, and the lock file the manifest."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import ChangeFlags, PlannedChange, ask_person, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    find_location,
    install_to_dict,
    install_to_line,
    list_scopes,
    network_options,
    note_nothing_recorded,
)
from prowess.cli.issues import issue_to_dict
from prowess.cli.main import FAILED
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.errors import Issue, SkillError
from prowess.files.paths import shorten_path
from prowess.install.sync import SURPLUS_CODES
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.placed import PlacedTrees, digest_parts
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import prowess
    from prowess.install.installer import Installer
    from prowess.lockfile.placed import Parts
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope


@new_command(
    "sync",
    ("prowess sync", "install what prowess.toml declares, restore what prowess.lock records"),
    ("prowess sync --remove", "and remove what it no longer declares"),
    ("prowess sync --locked", "for CI: install what prowess.lock records, fail on any difference from it"),
    ("prowess sync --locked --dry-run", "what that would restore, or why it would fail"),
)
@click.option(
    "--locked",
    is_flag=True,
    help="Do not change the lock file and do not ask; what somebody changed by hand is an error.",
)
@click.option(
    "--remove", is_flag=True, help="Remove skills that nothing asks for any more; backups keep what only you have."
)
@location_options
@network_options
@change_options
def command(*, locked: bool, remove: bool, asked: AskedLocation, installer: Installer, flags: ChangeFlags) -> int:
    """Bring prowess.lock up to date with prowess.toml, and the installed skills up to date with prowess.lock.

    After a pull, installs that nobody changed are replaced or removed as the new prowess.lock says, without a backup.

    Inside a project its installs are meant, and elsewhere your own. If the manifest names no agents, new skills are
    linked for those that 'prowess install' would link them for, and the lock file records that.

    Some skills may be installed although nothing asks for them: prowess.toml no longer declares them, or no lock file
    records them. They are named, and removed with --remove or after a yes on the terminal. Those that no lock file
    records go to the backups. Each backup is named.

    Exit status 1: you said no, or such skills stay; with --dry-run, something would change. With --locked, the skills
    become what prowess.lock records, and the exit status is 3 if somebody changed one by hand, or if prowess.lock is
    out of date.
    """
    if locked and remove:
        raise click.UsageError("--locked removes nothing: leave one of --locked and --remove out")
    location = find_location(installer, asked)
    run = _PlannedSync(installer, list_scopes(installer, location), locked=locked)
    if flags.dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with printer.show_progress("looking"):
            run.look(remove=remove)
    surplus = run.list_surplus()
    if surplus and flags.may_ask:
        # Asked apart from the plan: a person may want the rest of the sync without a removal.
        removals = [f"remove {shorten_path(issue.path)}: {issue.message}" for issue in surplus]
        remove = ask_person("Remove what nothing asks for any more?", plan_to_blocks(removals)) is True
    status = carry_out(run.plan_change(remove=remove), flags)
    for code in dict.fromkeys(issue.code for issue in surplus if not remove):
        printer.note(f"  hint: {find_remedy(code)}")
    if not run.has_plan:
        note_nothing_recorded(installer, location)
    return status


class _PlannedSync:
    """The sync of one scope or of both: what it is going to do, and the lock files as they were before."""

    def __init__(self, installer: Installer, scopes: Iterable[InstallScope], *, locked: bool) -> None:
        self._installer = installer
        self._locked = locked
        self._scopes = tuple(scopes)
        self._errors: dict[InstallScope, SkillError] = {}
        """What failed, where several scopes are synced: one that fails does not stop the others."""
        self._before: dict[InstallScope, LockEntries] = {}
        """The lock files before the sync: the report says what is new in them."""
        for scope in self._scopes:
            with self._going_on(scope):
                self._before[scope] = read_lock(scope.lock_folder)
        self._placed = {scope: dict(PlacedTrees(scope.base, DEFAULT_LIMITS).items()) for scope in self._before}
        """What Prowess had put on this disk before the sync."""
        self._steps: list[str] = []
        self._issues: list[prowess.Issue] = []
        """The issues of the last look or sync of each scope."""

    @contextmanager
    def _going_on(self, scope: InstallScope) -> Iterator[None]:
        """Keep an error for the end where there is another scope."""
        try:
            yield
        except SkillError as error:
            if len(self._scopes) == 1:
                raise
            self._errors[scope] = error

    def look(self, *, remove: bool) -> None:
        """Find out what is going to be done; nothing is changed."""
        for scope in self._before:
            with self._going_on(scope):
                self._steps += self._installer.difference(
                    project=scope.location == "project", locked=self._locked, remove=remove
                )
                self._issues += self._installer.issues

    @property
    def has_plan(self) -> bool:
        """Whether there is anything to do, as far as was looked."""
        return bool(self._steps)

    def list_surplus(self) -> list[prowess.Issue]:
        """Return the issues about installed skills that nothing asks for, as they were last met."""
        return [issue for issue in self._issues if issue.code in SURPLUS_CODES]

    def plan_change(self, *, remove: bool) -> PlannedChange[list[prowess.InstalledSkill]]:
        """Return the change that makes the disk equal the lock files; with ``remove``, what nothing asks for goes."""
        stays = bool(self.list_surplus()) and not remove
        return PlannedChange(
            plan=plan_to_blocks(self._steps),
            needs_consent=bool(self._steps),
            progress_text="syncing",
            apply=lambda: self._sync(remove=remove),
            to_dict=lambda installs: {
                "plan": self._steps,
                "installed": [install_to_dict(install) for install in installs or ()],
                "issues": [issue_to_dict(issue) for issue in self._list_issues()],
            },
            report=self._report_to_blocks,
            declined_text="Nothing was synced.",
            idle_text="Nothing was changed." if stays else "Nothing to do.",
            # What is removed now is in the report.
            issues=lambda: [
                issue
                for issue in self._list_issues()
                if issue.code != "removed-by-sync" and not (remove and issue.code in SURPLUS_CODES)
            ],
            status=lambda _: FAILED if self._errors else 1 if self.list_surplus() else 0,
            dry_status=FAILED if self._errors else 1 if self._steps or self.list_surplus() else 0,
        )

    def _list_issues(self) -> list[prowess.Issue]:
        """Return the issues, and what failed in one scope among them, so that it is reported beside what was done."""
        return [
            *self._issues,
            *(Issue(error.code, scope.location, error.message, error.path) for scope, error in self._errors.items()),
        ]

    def _sync(self, *, remove: bool) -> list[prowess.InstalledSkill]:
        installs: list[prowess.InstalledSkill] = []
        self._issues = []
        self._errors = {scope: error for scope, error in self._errors.items() if scope not in self._before}
        for scope in self._before:
            with self._going_on(scope):
                try:
                    installs += self._installer.sync(
                        locked=self._locked, project=scope.location == "project", remove=remove
                    )
                finally:
                    self._issues += self._installer.issues
        return installs

    def _report_to_blocks(self, installs: list[prowess.InstalledSkill]) -> list[Block]:
        """Return what was installed and removed. "Done." stands for a change of records or links alone."""
        blocks: list[Block] = []
        for scope, before in self._before.items():
            if scope in self._errors:
                continue
            after, placed = read_lock(scope.lock_folder), self._placed[scope]
            for install in installs:
                if install.location == scope.location:
                    name = install.full_name
                    blocks.append(install_to_line(_choose_verb(before.get(name), after.get(name), placed), install))
            blocks += [line("Removed ", (name, "name"), ".") for name in before if name not in after]
        gone = [issue.field for issue in self._issues if issue.code == "removed-by-sync"]
        blocks += [line("Removed ", (name, "name"), ".") for name in gone]
        if self._errors and not blocks:
            return [line("Nothing else was to be done.")]
        return blocks or ([line("Done.")] if self._steps else [])


def _choose_verb(was: LockEntry | None, now: LockEntry | None, placed: Mapping[str, Parts]) -> str:
    """Return what happened to an install: ``was`` and ``now`` are its entries in the lock file."""
    here = placed.get(now.name) if was is not None and now is not None else None
    if not here or was is None or now is None:
        return "Installed"
    is_same = (here, was.declared, was.agents) == (digest_parts(now), now.declared, now.agents)
    return "Restored" if is_same else "Updated"

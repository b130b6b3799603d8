"""``prowess sync``: makes the disk equal the lock file, and the lock file the manifest."""

from __future__ import annotations

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
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.files.paths import shorten_path
from prowess.install.sync import SURPLUS_CODES
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.placed import PlacedTrees
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterable

    import prowess
    from prowess.install.installer import Installer
    from prowess.lockfile.read import LockEntry
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
    if surplus and not remove:
        printer.note(f"  hint: {find_remedy(surplus[0].code)}")
    note_nothing_recorded(installer, location)
    return status


class _PlannedSync:
    """The sync of one scope or of both: what it is going to do, and the lock files as they were before."""

    def __init__(self, installer: Installer, scopes: Iterable[InstallScope], *, locked: bool) -> None:
        self._installer = installer
        self._locked = locked
        self._before = {scope: read_lock(scope.lock_folder) for scope in scopes}
        """The lock files before the sync: the report says what is new in them."""
        self._placed = {scope: PlacedTrees(scope.base, DEFAULT_LIMITS) for scope in self._before}
        """What Prowess had put on this disk before the sync."""
        self._steps: list[str] = []
        self._issues: list[prowess.Issue] = []
        """The issues of the last look or sync of each scope."""

    def look(self, *, remove: bool) -> None:
        """Find out what is going to be done; nothing is changed."""
        for scope in self._before:
            self._steps += self._installer.difference(
                project=scope.location == "project", locked=self._locked, remove=remove
            )
            self._issues += self._installer.issues

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
                "issues": [issue_to_dict(issue) for issue in self._issues],
            },
            report=self._report_to_blocks,
            declined_text="Nothing was synced.",
            idle_text="Nothing was changed." if stays else "Nothing to do.",
            # What is removed now is in the report.
            issues=lambda: [
                issue
                for issue in self._issues
                if issue.code != "removed-by-sync" and not (remove and issue.code in SURPLUS_CODES)
            ],
            status=lambda _: 1 if self.list_surplus() else 0,
            dry_status=1 if self._steps or self.list_surplus() else 0,
        )

    def _sync(self, *, remove: bool) -> list[prowess.InstalledSkill]:
        installs: list[prowess.InstalledSkill] = []
        self._issues = []
        for scope in self._before:
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
            after, placed = read_lock(scope.lock_folder), self._placed[scope]
            for install in installs:
                if install.location == scope.location:
                    name = install.full_name
                    blocks.append(install_to_line(_choose_verb(before.get(name), after.get(name), placed), install))
            blocks += [line("Removed ", (name, "name"), ".") for name in before if name not in after]
        gone = [issue.field for issue in self._issues if issue.code == "removed-by-sync"]
        blocks += [line("Removed ", (name, "name"), ".") for name in gone]
        return blocks or ([line("Done.")] if self._steps else [])


def _choose_verb(was: LockEntry | None, now: LockEntry | None, placed: PlacedTrees) -> str:
    """Return what happened to an install: ``was`` and ``now`` are its entries in the lock file."""
    here = placed.digest_of(now.name) if was is not None and now is not None else ""
    if not here or was is None or now is None:
        return "Installed"
    is_same = (here, was.declared, was.agents) == (now.placed_digest, now.declared, now.agents)
    return "Restored" if is_same else "Updated"

"""``prowess sync``: makes the disk equal the lock file, and the lock file the manifest."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.change_flow import ChangeFlags, PlannedChange, ask_person, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import install_to_dict, install_to_line, network_options, note_missing_lock
from prowess.cli.issues import issue_to_dict
from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.files.paths import shorten_path
from prowess.install.sync import SURPLUS_CODES
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.placed import PlacedTrees
from prowess.lockfile.read import LockEntries, read_lock

if TYPE_CHECKING:
    from collections.abc import Callable

    import prowess
    from prowess.install.installer import Installer


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
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@network_options
@change_options
def command(*, locked: bool, remove: bool, user: bool, installer: Installer, flags: ChangeFlags) -> int:
    """Bring prowess.lock up to date with prowess.toml, and the installed skills up to date with prowess.lock.

    After a pull, installs that nobody changed are replaced or removed as the new prowess.lock says, without a backup.

    Some skills may be installed although nothing asks for them: prowess.toml no longer declares them, or no lock file
    records them. They are named, and removed with --remove or after a yes on the terminal. Those that no lock file
    records go to the backups. Each backup is named.

    Exit status 1: you said no, or such skills stay; with --dry-run, something would change. With --locked, the skills
    become what prowess.lock records, and the exit status is 3 if somebody changed one by hand, or if prowess.lock is
    out of date.
    """
    if locked and remove:
        raise click.UsageError("--locked removes nothing: leave one of --locked and --remove out")
    steps: list[str] = []
    if flags.dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with printer.show_progress("looking"):
            steps += installer.difference(project=not user, locked=locked, remove=remove)
    surplus = _find_surplus(installer)
    if surplus and flags.may_ask:
        # Asked apart from the plan: a person may want the rest of the sync without a removal.
        removals = [f"remove {shorten_path(issue.path)}: {issue.message}" for issue in surplus]
        remove = ask_person("Remove what nothing asks for any more?", plan_to_blocks(removals)) is True
    scope = installer.user if user else installer.project
    folder = scope.lock_folder
    sync = partial(installer.sync, locked=locked, project=not user, remove=remove)
    placed = PlacedTrees(scope.base, DEFAULT_LIMITS)
    run = _PlannedSync(installer, steps, surplus, remove, folder, read_lock(folder), placed, sync)
    status = carry_out(run.plan_change(), flags)
    if surplus and not remove:
        printer.note(f"  hint: {find_remedy(surplus[0].code)}")
    if not user:
        note_missing_lock(installer)
    return status


class _PlannedSync(NamedTuple):
    """One sync: what it is going to do, and the lock file as it was before."""

    installer: Installer
    steps: list[str]
    surplus: list[prowess.Issue]
    """The skills that nothing asks for."""
    remove: bool
    """Whether these are removed."""
    lock_folder: str
    before: LockEntries
    """The lock file before the sync: the report says what is new in it."""
    placed: PlacedTrees
    """What Prowess had put on this disk before the sync."""
    sync: Callable[[], tuple[prowess.InstalledSkill, ...]]

    def plan_change(self) -> PlannedChange[tuple[prowess.InstalledSkill, ...]]:
        """Return the change that makes the disk equal the lock file."""
        return PlannedChange(
            plan=plan_to_blocks(self.steps),
            needs_consent=bool(self.steps),
            progress_text="syncing",
            apply=self.sync,
            to_dict=lambda installs: {
                "plan": self.steps,
                "installed": [install_to_dict(install) for install in installs or ()],
                "issues": [issue_to_dict(issue) for issue in self.installer.issues],
            },
            report=self._report_to_blocks,
            declined_text="Nothing was synced.",
            idle_text="Nothing was changed." if self.surplus and not self.remove else "Nothing to do.",
            issues=lambda: [issue for issue in self.installer.issues if self._is_news(issue)],
            status=lambda _: 1 if _find_surplus(self.installer) else 0,
            dry_status=1 if self.steps or self.surplus else 0,
        )

    def _is_news(self, issue: prowess.Issue) -> bool:
        """Return False for an issue about what is removed now, which the report says already."""
        return issue.code != "removed-by-sync" and not (self.remove and issue.code in SURPLUS_CODES)

    def _report_to_blocks(self, installs: tuple[prowess.InstalledSkill, ...]) -> list[Block]:
        """Return what was installed and removed. "Done." stands for a change of records or links alone."""
        after = read_lock(self.lock_folder)
        removed = [issue.field for issue in self.installer.issues if issue.code == "removed-by-sync"]
        names = dict.fromkeys([*(name for name in self.before if name not in after), *removed])
        gone = [line("Removed ", (name, "name"), ".") for name in names]
        changes = [install_to_line(self._choose_verb(install.full_name, after), install) for install in installs]
        return [*changes, *gone] or ([line("Done.")] if self.steps else [])

    def _choose_verb(self, name: str, after: LockEntries) -> str:
        was, now = self.before.get(name), after.get(name)
        if was is None or now is None:
            return "Installed"
        here = self.placed.digest_of(name)
        if not here:
            return "Installed"
        is_same = (here, was.declared, was.agents) == (now.digest, now.declared, now.agents)
        return "Restored" if is_same else "Updated"


def _find_surplus(installer: Installer) -> list[prowess.Issue]:
    """Return the issues about skills that are installed and that nothing asks for, as the installer last met them."""
    return [issue for issue in installer.issues if issue.code in SURPLUS_CODES]

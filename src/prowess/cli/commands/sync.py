"""``prowess sync``: makes the disk equal the lock file, and the lock file the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.changes.sync import SyncRun
from prowess.cli.change_flow import ChangeFlags, ChangeView, ask_person, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    find_location,
    install_to_dict,
    list_scopes,
    network_options,
    note_nothing_recorded,
)
from prowess.cli.issues import find_remedy, issue_to_dict
from prowess.cli.main import FAILED
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.recursive import recursive_option, run_in_projects
from prowess.cli.render import printer
from prowess.files.paths import shorten_path
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    import prowess
    from prowess.install.installer import Installer


@new_command(
    "sync",
    ("prowess sync", "install what prowess.toml declares, restore what prowess.lock records"),
    ("prowess sync --remove", "and remove what it no longer declares"),
    ("prowess sync --locked", "for CI: install what prowess.lock records, fail on any difference from it"),
    ("prowess sync --locked --dry-run", "what that would restore, or why it would fail"),
    ("prowess sync --locked --recursive", "in every project of a monorepo"),
)
@click.option(
    "--locked",
    is_flag=True,
    help="Do not change the lock file and do not ask; what somebody changed by hand is an error.",
)
@click.option(
    "--remove", is_flag=True, help="Remove skills that nothing asks for any more; backups keep what only you have."
)
@recursive_option
@location_options
@network_options
@change_options
def command(
    *,
    locked: bool,
    remove: bool,
    recursive: bool,
    asked: AskedLocation,
    installer: Installer,
    flags: ChangeFlags,
) -> int:
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
    if recursive:
        return run_in_projects(as_data=flags.as_data)
    location = find_location(installer, asked)
    run = SyncRun(installer, list_scopes(installer, location), DEFAULT_LIMITS, locked=locked)
    if flags.dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with printer.show_progress("looking"):
            run.look(remove=remove)
    surplus = run.list_surplus()
    if surplus and flags.may_ask:
        # Asked apart from the plan: a person may want the rest of the sync without a removal.
        removals = [f"remove {shorten_path(issue.path)}: {issue.message}" for issue in surplus]
        remove = ask_person("Remove what nothing asks for any more?", plan_to_blocks(removals)) is True
    change = run.prepare(remove=remove)
    view: ChangeView[list[prowess.InstalledSkill]] = ChangeView(
        progress_text="syncing",
        to_dict=lambda installs: {
            "plan": run.steps,
            "installed": [install_to_dict(install) for install in installs or ()],
            "issues": [issue_to_dict(issue) for issue in run.list_issues()],
        },
        declined_text="Nothing was synced.",
        status=lambda _: FAILED if run.errors else 1 if run.list_surplus() else 0,
        dry_status=FAILED if run.errors else 1 if run.steps or run.list_surplus() else 0,
    )
    status = carry_out(change, view, flags)
    for code in dict.fromkeys(issue.code for issue in surplus if not remove):
        printer.note(f"  hint: {find_remedy(code)}")
    if not run.steps:
        note_nothing_recorded(installer, location)
    return status

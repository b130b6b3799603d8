"""``prowess sync``: the disk made equal to the lock file, the lock file to the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import PlannedChange, ask_person, carry_out, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    dry_run_option,
    install_to_dict,
    install_to_line,
    issue_to_dict,
    network_options,
    note_missing_lock,
    yes_option,
)
from prowess.cli.options import json_option, shorten_path
from prowess.cli.remedies import find_remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.install.sync import SURPLUS_CODES
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    import prowess
    from prowess.cli.render.blocks import Block
    from prowess.install.installer import Installer
    from prowess.lockfile.read import LockEntries


@new_command(
    "sync",
    ("prowess sync", "install what prowess.toml declares, restore what prowess.lock records"),
    ("prowess sync --remove", "and take away what it declares no more"),
    ("prowess sync --locked", "for CI: install what prowess.lock records, fail on any difference from it"),
    ("prowess sync --locked --dry-run", "what that would restore, or why it would fail"),
)
@click.option(
    "--locked", is_flag=True, help="Do not change the lock file, do not ask; whatever differs from it is an error."
)
@click.option("--remove", is_flag=True, help="Take away what nothing asks for any more; what only you have is kept.")
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@network_options
@dry_run_option
@yes_option
@json_option
def command(
    *,
    locked: bool,
    remove: bool,
    user: bool,
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Make the disk equal prowess.lock, and prowess.lock what prowess.toml declares.

    A skill that prowess.toml declares no more, and one that is in no lock file, is named and stays, unless --remove, or
    a yes on a terminal, takes it away; the latter goes to the backups. Each backup that is made is named.
    Exit status 1: you said no, or something of that kind stays; with --dry-run: something would change. With --locked,
    what is missing is installed as prowess.lock records it, and 3 is the exit status when anything else differs.
    """
    if locked and remove:
        raise click.UsageError("--locked removes nothing: leave one of --locked and --remove out")
    scope = installer.user if user else installer.project
    rows: list[str] = []
    if dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with printer.show_progress("looking"):
            rows += installer.difference(project=not user, locked=locked, remove=remove)
    surplus = find_surplus(installer)
    if surplus and not (dry_run or yes):
        remove = _confirm_removal(surplus)
    before = read_lock(scope.lock_folder)
    status = carry_out(
        PlannedChange(
            plan=plan_to_blocks(rows),
            needs_consent=bool(rows),
            progress_text="syncing",
            apply=lambda: installer.sync(locked=locked, project=not user, remove=remove),
            to_dict=lambda done: {
                "plan": rows,
                "installed": [install_to_dict(one) for one in done or ()],
                "issues": [issue_to_dict(issue) for issue in installer.issues],
            },
            report=lambda done: _report_to_blocks(done, before, read_lock(scope.lock_folder), planned=bool(rows)),
            declined_text="Nothing was synced.",
            idle_text="Nothing was changed." if surplus and not remove else "Nothing to do.",
            issues=lambda: [issue for issue in installer.issues if not (remove and issue.code in SURPLUS_CODES)],
            status=lambda _: 1 if find_surplus(installer) else 0,
            dry_status=1 if rows or surplus else 0,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )
    if surplus and not remove:
        printer.note(f"  hint: {find_remedy(surplus[0].code)}")
    if not user:
        note_missing_lock(installer)
    return status


def find_surplus(installer: Installer) -> list[prowess.Issue]:
    """What the last command found installed and asked for by nothing."""
    return [issue for issue in installer.issues if issue.code in SURPLUS_CODES]


def _confirm_removal(surplus: Sequence[prowess.Issue]) -> bool:
    """Whether a person at the terminal says that what nothing asks for is to go; ``False`` where nobody is there."""
    rows = [f"remove {shorten_path(issue.path)}: {issue.message}" for issue in surplus]
    return ask_person("Remove what nothing asks for any more?", plan_to_blocks(rows)) is True


def _report_to_blocks(
    done: tuple[prowess.InstalledSkill, ...], before: LockEntries, after: LockEntries, *, planned: bool
) -> list[Block]:
    """What was installed and removed; a word where only records or links changed."""
    gone = [line("Removed ", (name, "name"), ".") for name in before if name not in after]
    return [*(_result_to_line(one, before, after) for one in done), *gone] or ([line("Done.")] if planned else [])


def _result_to_line(one: prowess.InstalledSkill, before: LockEntries, after: LockEntries) -> Block:
    was, now = before.get(one.full_name), after.get(one.full_name)
    if was is None or now is None:
        return install_to_line("Installed", one)
    return install_to_line("Restored" if was.digest == now.digest and was.declared == now.declared else "Updated", one)

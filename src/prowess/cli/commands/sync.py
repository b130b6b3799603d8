"""``prowess sync``: the disk made equal to the lock file, the lock file to the manifest."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import (
    dry_option,
    installed_data,
    installed_line,
    issue_data,
    notes,
    reach_options,
    show_plan,
    tell_unlocked,
    yes_option,
)
from prowess.cli.options import home_relative, json_option
from prowess.cli.remedies import remedy
from prowess.install.syncing import SURPLUS_CODES
from prowess.library.lock import read_lock

if TYPE_CHECKING:
    import prowess
    from prowess.cli.blocks import Block
    from prowess.install.installer import Installer
    from prowess.library.lock import Locked


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
@reach_options
@dry_option
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
    if locked and not dry_run:
        return _bring(installer, [], locked=True, remove=False, user=user, as_data=as_data)
    with output.busy("looking"):
        rows = list(installer.difference(project=not user, locked=locked, remove=remove))
    surplus = find_surplus(installer)
    if rows:
        show_plan(rows)
    if dry_run or (rows and not output.confirm("Do this?", yes=yes)):
        notes(installer.issues)
        output.answer(
            lambda: {"plan": rows, "installed": [], "issues": [issue_data(issue) for issue in installer.issues]},
            lambda: [] if rows or surplus else [line("Nothing to do.")],
            as_data=as_data,
        )
        return 1 if rows or surplus else 0
    if surplus and not yes and output.is_terminal(sys.stdin):
        show_plan(f"remove {home_relative(issue.path)}: {issue.message}" for issue in surplus)
        remove = output.confirm("Remove this as well?", yes=False)
    return _bring(installer, rows, locked=False, remove=remove, user=user, as_data=as_data)


def find_surplus(installer: Installer) -> list[prowess.Issue]:
    """What the last command found installed and asked for by nothing."""
    return [issue for issue in installer.issues if issue.code in SURPLUS_CODES]


def _said(one: prowess.InstalledSkill, before: Locked, after: Locked) -> Block:
    was, now = before.get(one.full_name), after.get(one.full_name)
    if was is None or now is None:
        return installed_line("Installed", one)
    return installed_line("Restored" if was.digest == now.digest and was.declared == now.declared else "Updated", one)


def _bring(installer: Installer, rows: list[str], *, locked: bool, remove: bool, user: bool, as_data: bool) -> int:
    """Sync, and say what was installed, removed, kept as a backup, and left."""
    records = (installer.user if user else installer.project).records
    known = read_lock(records)
    with output.busy("syncing"):
        done = installer.sync(locked=locked, project=not user, remove=remove)
    now = read_lock(records)
    surplus = find_surplus(installer)
    gone = [line("Removed ", (name, "name"), ".") for name in known if name not in now]
    output.answer(
        lambda: {
            "plan": rows,
            "installed": [installed_data(one) for one in done],
            "issues": [issue_data(issue) for issue in installer.issues],
        },
        lambda: (
            [*(_said(one, known, now) for one in done), *gone]
            or [line("Done." if rows else "Nothing to do." if not surplus else "Nothing was changed.")]
        ),
        as_data=as_data,
    )
    notes(installer.issues)
    if surplus:
        output.note(f"  hint: {remedy(surplus[0].code)}")
    if not user:
        tell_unlocked(installer)
    return 1 if surplus else 0

"""``prowess sync``: the disk made equal to the lock file, the lock file to the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import (
    dry_option,
    installed_data,
    installed_line,
    notes,
    reach_options,
    show_plan,
    tell_unlocked,
    yes_option,
)
from prowess.cli.options import json_option
from prowess.library.lock import read_lock

if TYPE_CHECKING:
    import prowess
    from prowess.cli.blocks import Block
    from prowess.install.installer import Installer
    from prowess.library.lock import Locked


@new_command(
    "sync",
    ("prowess sync", "install what prowess.toml declares, restore what prowess.lock records"),
    ("prowess sync --locked", "for CI: install what prowess.lock records, fail on any difference from it"),
    ("prowess sync --locked --dry-run", "what that would restore, or why it would fail"),
)
@click.option(
    "--locked", is_flag=True, help="Do not change the lock file, do not ask; whatever differs from it is an error."
)
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@reach_options
@dry_option
@yes_option
@json_option
def command(
    *,
    locked: bool,
    user: bool,
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Make the disk equal prowess.lock, and prowess.lock what prowess.toml declares.

    Exit status 1: you said no; with --dry-run: something would change. With --locked, what is missing is installed as
    prowess.lock records it, and 3 is the exit status when anything else differs.
    """
    if locked and not dry_run:
        return _bring(installer, [], locked=True, user=user, as_data=as_data)
    with output.busy("looking"):
        rows = list(installer.difference(project=not user, locked=locked))
    if rows:
        show_plan(rows)
    if dry_run or (rows and not output.confirm("Do this?", yes=yes)):
        notes(installer.issues)
        output.answer(
            lambda: {"plan": rows, "installed": []}, lambda: [] if rows else [line("Nothing to do.")], as_data=as_data
        )
        return 1 if rows else 0
    return _bring(installer, rows, locked=False, user=user, as_data=as_data)


def _said(one: prowess.InstalledSkill, before: Locked, after: Locked) -> Block:
    was, now = before.get(one.full_name), after.get(one.full_name)
    if was is None or now is None:
        return installed_line("Installed", one)
    return installed_line("Restored" if was.digest == now.digest and was.declared == now.declared else "Updated", one)


def _bring(installer: Installer, rows: list[str], *, locked: bool, user: bool, as_data: bool) -> int:
    """Sync, and say what was installed."""
    records = (installer.user if user else installer.project).records
    known = read_lock(records)
    with output.busy("syncing"):
        done = installer.sync(locked=locked, project=not user)
    now = read_lock(records)
    output.answer(
        lambda: {"plan": rows, "installed": [installed_data(one) for one in done]},
        lambda: [_said(one, known, now) for one in done] or [line("Nothing to do." if not rows else "Done.")],
        as_data=as_data,
    )
    notes(installer.issues)
    if not user:
        tell_unlocked(installer)
    return 0

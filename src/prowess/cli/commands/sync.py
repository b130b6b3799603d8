"""``prowess sync``: the disk made equal to the lock file, the lock file to the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.flow import Change, carry_out, plan_of
from prowess.cli.installing import (
    dry_option,
    installed_data,
    installed_line,
    reach_options,
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
    scope = installer.user if user else installer.project
    rows: list[str] = []
    if dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with output.busy("looking"):
            rows += installer.difference(project=not user, locked=locked)
    before = read_lock(scope.records)
    status = carry_out(
        Change(
            plan=plan_of(rows),
            needs_consent=bool(rows),
            doing="syncing",
            do=lambda: installer.sync(locked=locked, project=not user),
            data=lambda done: {"plan": rows, "installed": [installed_data(one) for one in done or ()]},
            report=lambda done: _report(done, before, read_lock(scope.records), planned=bool(rows)),
            declined="Nothing was synced.",
            issues=lambda: installer.issues,
            dry_status=1 if rows else 0,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )
    if not user:
        tell_unlocked(installer)
    return status


def _report(done: tuple[prowess.InstalledSkill, ...], before: Locked, after: Locked, *, planned: bool) -> list[Block]:
    """What was installed; a word where only records or links changed."""
    return [_said(one, before, after) for one in done] or ([line("Done.")] if planned else [])


def _said(one: prowess.InstalledSkill, before: Locked, after: Locked) -> Block:
    was, now = before.get(one.full_name), after.get(one.full_name)
    if was is None or now is None:
        return installed_line("Installed", one)
    return installed_line("Restored" if was.digest == now.digest and was.declared == now.declared else "Updated", one)

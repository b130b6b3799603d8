"""``prowess sync``: the disk made equal to the lock file, the lock file to the manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import Change, ask_person, carry_out, plan_of
from prowess.cli.command import command as new_command
from prowess.cli.installs import (
    dry_option,
    installed_data,
    installed_line,
    issue_data,
    reach_options,
    tell_unlocked,
    yes_option,
)
from prowess.cli.options import home_relative, json_option
from prowess.cli.remedies import remedy
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.install.sync import SURPLUS_CODES
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    import prowess
    from prowess.cli.render.blocks import Block
    from prowess.install.installer import Installer
    from prowess.lockfile.read import Locked


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
    scope = installer.user if user else installer.project
    rows: list[str] = []
    if dry_run or not locked:  # a locked sync asks nobody, so it needs no plan
        with printer.busy("looking"):
            rows += installer.difference(project=not user, locked=locked, remove=remove)
    surplus = find_surplus(installer)
    if surplus and not (dry_run or yes):
        remove = _agrees_to_remove(surplus)
    before = read_lock(scope.records)
    status = carry_out(
        Change(
            plan=plan_of(rows),
            needs_consent=bool(rows),
            doing="syncing",
            do=lambda: installer.sync(locked=locked, project=not user, remove=remove),
            data=lambda done: {
                "plan": rows,
                "installed": [installed_data(one) for one in done or ()],
                "issues": [issue_data(issue) for issue in installer.issues],
            },
            report=lambda done: _report(done, before, read_lock(scope.records), planned=bool(rows)),
            declined="Nothing was synced.",
            idle="Nothing was changed." if surplus and not remove else "Nothing to do.",
            issues=lambda: [issue for issue in installer.issues if not (remove and issue.code in SURPLUS_CODES)],
            status=lambda _: 1 if find_surplus(installer) else 0,
            dry_status=1 if rows or surplus else 0,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )
    if surplus and not remove:
        printer.note(f"  hint: {remedy(surplus[0].code)}")
    if not user:
        tell_unlocked(installer)
    return status


def find_surplus(installer: Installer) -> list[prowess.Issue]:
    """What the last command found installed and asked for by nothing."""
    return [issue for issue in installer.issues if issue.code in SURPLUS_CODES]


def _agrees_to_remove(surplus: Sequence[prowess.Issue]) -> bool:
    """Whether a person at the terminal says that what nothing asks for is to go; ``False`` where nobody is there."""
    rows = [f"remove {home_relative(issue.path)}: {issue.message}" for issue in surplus]
    return ask_person("Remove what nothing asks for any more?", plan_of(rows)) is True


def _report(done: tuple[prowess.InstalledSkill, ...], before: Locked, after: Locked, *, planned: bool) -> list[Block]:
    """What was installed and removed; a word where only records or links changed."""
    gone = [line("Removed ", (name, "name"), ".") for name in before if name not in after]
    return [*(_said(one, before, after) for one in done), *gone] or ([line("Done.")] if planned else [])


def _said(one: prowess.InstalledSkill, before: Locked, after: Locked) -> Block:
    was, now = before.get(one.full_name), after.get(one.full_name)
    if was is None or now is None:
        return installed_line("Installed", one)
    return installed_line("Restored" if was.digest == now.digest and was.declared == now.declared else "Updated", one)

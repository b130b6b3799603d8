"""``prowess adopt``: skills that lie here already, taken over as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import Change, carry_out, plan_of
from prowess.cli.command import command as new_command
from prowess.cli.installs import dry_option, installed_data, installed_line, issue_data, yes_option
from prowess.cli.options import complete_skill, home_relative, json_option
from prowess.cli.render import printer
from prowess.install.adopt import adoptable, is_left, is_own
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.lockfile.scopes import Scope

_TAKE = "take over"


@new_command(
    "adopt",
    ("prowess adopt", "everything in .agents/skills and .claude/skills"),
    ("prowess adopt pdf --yes", "one of them"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill)
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@dry_option
@yes_option
@json_option
def command(names: tuple[str, ...], *, user: bool, dry_run: bool, yes: bool, as_data: bool) -> int:
    """Take over skills that lie in .agents/skills or .claude/skills as they are, without fetching them.

    The folders become links to the install, what stood there is kept as a backup. A project's skill whose source
    nobody recorded stays where it is unless it is named: .prowess is not committed, so a clone could not get it.
    Exit status 1: you said no.
    """
    installer = Installer()
    with printer.busy("looking"):
        rows = list(_plan(installer.user if user else installer.project, names))
    return carry_out(
        Change(
            plan=plan_of(rows),
            needs_consent=any(row.startswith(_TAKE) for row in rows),
            doing="taking over",
            do=lambda: installer.adopt(*names, project=not user),
            data=lambda done: {
                "plan": rows,
                "adopted": [installed_data(one) for one in done or ()],
                "issues": [issue_data(i) for i in installer.issues],
            },
            report=lambda done: [installed_line("Adopted", one) for one in done],
            declined="Nothing was adopted.",
            idle="Nothing to adopt.",
            issues=lambda: installer.issues,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )


def _plan(scope: Scope, names: tuple[str, ...]) -> Iterator[str]:
    """What will be taken over, from where, as what; and what will not."""
    for found in adoptable(scope, read_lock(scope.records), DEFAULT_LIMITS, names):
        where, name = home_relative(found.folder), found.tree.name
        if is_left(found, scope, names):
            yield f"leave {where}, which has no recorded source: a clone could not get it; name it to take it over"
            continue
        yield f"{_TAKE} {where} as {name}, and record it in prowess.lock"
        if is_own(found, scope):
            yield f"{name} has no recorded source: commit {home_relative(scope.place(name))}, or clones cannot get it"

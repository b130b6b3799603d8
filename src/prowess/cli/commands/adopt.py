"""``prowess adopt``: skills that lie here already, taken over as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import PlannedChange, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.completions import complete_skill
from prowess.cli.install_options import install_to_dict, install_to_line, issue_to_dict
from prowess.cli.render import printer
from prowess.cli.shown_paths import shorten_path
from prowess.install.adopt import find_adoptable, is_left_in_place, is_project_own
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.cli.change_flow import ChangeFlags
    from prowess.lockfile.scopes import InstallScope

_TAKE_OVER = "take over"


@new_command(
    "adopt",
    ("prowess adopt", "everything in .agents/skills and .claude/skills"),
    ("prowess adopt pdf --yes", "one of them"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_skill)
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@change_options
def command(names: tuple[str, ...], *, user: bool, flags: ChangeFlags) -> int:
    """Take over skills that lie in .agents/skills or .claude/skills as they are, without fetching them.

    The folders become links to the install, what stood there is kept as a backup. A project's skill whose source
    nobody recorded stays where it is unless it is named: .prowess is not committed, so a clone could not get it.
    Exit status 1: you said no.
    """
    installer = Installer()
    with printer.show_progress("looking"):
        rows = list(_plan_adoption(installer.user if user else installer.project, names))
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(rows),
            needs_consent=any(row.startswith(_TAKE_OVER) for row in rows),
            progress_text="taking over",
            apply=lambda: installer.adopt(*names, project=not user),
            to_dict=lambda done: {
                "plan": rows,
                "adopted": [install_to_dict(one) for one in done or ()],
                "issues": [issue_to_dict(i) for i in installer.issues],
            },
            report=lambda done: [install_to_line("Adopted", one) for one in done],
            declined_text="Nothing was adopted.",
            idle_text="Nothing to adopt.",
            issues=lambda: installer.issues,
        ),
        flags,
    )


def _plan_adoption(scope: InstallScope, names: tuple[str, ...]) -> Iterator[str]:
    """What will be taken over, from where, as what; and what will not."""
    for found in find_adoptable(scope, read_lock(scope.lock_folder), DEFAULT_LIMITS, names):
        where, name = shorten_path(found.folder), found.tree.name
        if is_left_in_place(found, scope, names):
            yield f"leave {where}, which has no recorded source: a clone could not get it; name it to take it over"
            continue
        yield f"{_TAKE_OVER} {where} as {name}, and record it in prowess.lock"
        if is_project_own(found, scope):
            folder = shorten_path(scope.install_folder(name))
            yield f"{name} has no recorded source: commit {folder}, or clones cannot get it"

"""``prowess adopt``: records skills that are here already as installed, without fetching them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.completions import complete_skill
from prowess.cli.install_options import install_to_dict, install_to_line
from prowess.cli.issues import issue_to_dict
from prowess.cli.render import printer
from prowess.files.paths import shorten_path
from prowess.install.adopt import find_adoptable, is_left_in_place, is_project_own
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Take over the skills in .agents/skills or .claude/skills as they are, without fetching them.

    Each folder becomes a link to the install, and a backup keeps what was there. The source of a skill is what other
    tools recorded in skills-lock.json, in .agents/.skill-lock.json or in the github- fields of its metadata. A skill of
    the project whose source nobody recorded stays where it is unless you name it: .prowess is not committed, so a clone
    could not get it.
    Exit status 1: you said no.
    """
    installer = Installer()
    with printer.show_progress("looking"):
        steps = list(_plan_adoption(installer.user if user else installer.project, names))
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            # A plan that only leaves things where they are changes nothing.
            needs_consent=any(step.startswith(_TAKE_OVER) for step in steps),
            progress_text="taking over",
            apply=lambda: installer.adopt(*names, project=not user),
            to_dict=lambda done: {
                "plan": steps,
                "adopted": [install_to_dict(install) for install in done or ()],
                "issues": [issue_to_dict(i) for i in installer.issues],
            },
            report=lambda done: [install_to_line("Adopted", install) for install in done],
            declined_text="Nothing was adopted.",
            idle_text="Nothing to adopt.",
            issues=lambda: installer.issues,
        ),
        flags,
    )


def _plan_adoption(scope: InstallScope, names: tuple[str, ...]) -> Iterator[str]:
    """Return the steps: which folders are taken over, under which names, and which are left."""
    for candidate in find_adoptable(scope, read_lock(scope.lock_folder), DEFAULT_LIMITS, names):
        folder, name = shorten_path(candidate.folder), candidate.tree.name
        if is_left_in_place(candidate, scope, names):
            yield f"leave {folder}, which has no recorded source: a clone could not get it; name it to take it over"
            continue
        source = "" if candidate.spec.local else f" from {candidate.source}"
        yield f"{_TAKE_OVER} {folder} as {name}{source}, and record it in prowess.lock"
        if is_project_own(candidate, scope):
            install_folder = shorten_path(scope.install_folder(name))
            yield f"{name} has no recorded source: 'git add --force {install_folder}', or clones cannot get it"

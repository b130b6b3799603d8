"""``prowess adopt``: records skills that are here already as installed, without fetching them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.changes.adopt import prepare_adoption
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import install_to_dict, install_to_line
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import complete_skill
from prowess.cli.render import printer
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from prowess.installed.scopes import InstalledSkill


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
        change = prepare_adoption(installer, installer.user if user else installer.project, names, DEFAULT_LIMITS)
    view: ChangeView[tuple[InstalledSkill, ...]] = ChangeView(
        # A plan that only leaves things where they are changes nothing.
        needs_consent=bool(change.details),
        progress_text="taking over",
        to_dict=lambda done: {
            "plan": [*change.steps],
            "adopted": [install_to_dict(install) for install in done or ()],
            "issues": [issue_to_dict(issue) for issue in installer.issues],
        },
        report=lambda done: [install_to_line("Adopted", install) for install in done],
        declined_text="Nothing was adopted.",
    )
    return carry_out(change, view, flags)

"""``prowess adopt``: skills that lie here already, taken over as they are."""

from __future__ import annotations

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import dry_option, installed_data, installed_line, issue_data, notes, show_plan, yes_option
from prowess.cli.options import json_option
from prowess.install.installer import Installer


@new_command(
    "adopt",
    ("prowess adopt", "everything in .agents/skills and .claude/skills"),
    ("prowess adopt pdf --yes", "one of them"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--user", is_flag=True, help="Your own skills, not the project's.")
@dry_option
@yes_option
@json_option
def command(names: tuple[str, ...], *, user: bool, dry_run: bool, yes: bool, as_data: bool) -> int:
    """Take over skills that lie in .agents/skills or .claude/skills as they are, without fetching them.

    The folders become links to the install, what stood there is kept as a backup. Exit status 1: you said no.
    """
    whose = "your" if user else "the project's"
    rows = [
        f"take over {', '.join(names) or 'every skill'} in {whose} .agents/skills and .claude/skills",
        "record it in prowess.lock",
    ]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "adopted": [], "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    installer = Installer()
    with output.busy("taking over"):
        done = installer.adopt(*names, project=not user)
    output.answer(
        lambda: {
            "plan": rows,
            "adopted": [installed_data(one) for one in done],
            "issues": [issue_data(i) for i in installer.issues],
        },
        lambda: [installed_line("Adopted", one) for one in done] or [line("Nothing to adopt.")],
        as_data=as_data,
    )
    if not as_data:
        notes(installer.issues)
    return 0

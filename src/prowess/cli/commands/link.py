"""``prowess link``: an installed skill for further agents."""

from __future__ import annotations

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import dry_option, installed_argument, ref_of, show_plan, yes_option
from prowess.cli.options import complete_agent, json_option, known_agents
from prowess.install.installer import Installer


@new_command("link", ("prowess link pdf --agent claude-code", "by name"))
@installed_argument
@click.option(
    "--agent",
    "agents",
    multiple=True,
    required=True,
    metavar="ID",
    shell_complete=complete_agent,
    callback=known_agents,
    help="The agent ('prowess list --help' names all of them).",
)
@dry_option
@yes_option
@json_option
def command(name: str, *, agents: tuple[str, ...], dry_run: bool, yes: bool, as_data: bool) -> int:
    """Link an installed skill where further agents look. Exit status 1: you said no."""
    installer = Installer()
    ref = ref_of(installer, name)
    rows = [f"link {ref} for {agent}" for agent in agents]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "linked": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    with output.busy("linking"):
        links = installer.link(ref, agents)
    output.answer(
        lambda: {"plan": rows, "linked": list(links)},
        lambda: [line("Linked ", (link, "name")) for link in links] or [line("Nothing to do.")],
        as_data=as_data,
    )
    return 0

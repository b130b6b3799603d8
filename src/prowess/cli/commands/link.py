"""``prowess link``: an installed skill for further agents."""

from __future__ import annotations

import click

from prowess.cli.agent_links import relink
from prowess.cli.command import command as new_command
from prowess.cli.installs import dry_option, installed_arguments, yes_option
from prowess.cli.options import complete_agent, json_option, known_agents
from prowess.install.installer import Installer


@new_command(
    "link",
    ("prowess link pdf --agent claude-code", "by name"),
    ("prowess link pdf csv --agent claude-code --yes", "several, all or none"),
)
@installed_arguments
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
def command(names: tuple[str, ...], *, agents: tuple[str, ...], dry_run: bool, yes: bool, as_data: bool) -> int:
    """Link installed skills where further agents look: all that are named, or none. Exit status 1: you said no."""
    return relink("link", Installer.link, names, agents, dry_run=dry_run, yes=yes, as_data=as_data)

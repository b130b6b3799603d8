"""``prowess link``: an installed skill for further agents."""

from __future__ import annotations

import click

from prowess.cli.change_links import change_links
from prowess.cli.command_class import new_command
from prowess.cli.install_options import dry_run_option, installed_arguments, yes_option
from prowess.cli.options import check_agents, complete_agent, json_option
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
    callback=check_agents,
    help="The agent ('prowess list --help' names all of them).",
)
@dry_run_option
@yes_option
@json_option
def command(names: tuple[str, ...], *, agents: tuple[str, ...], dry_run: bool, yes: bool, as_data: bool) -> int:
    """Link installed skills where further agents look: all that are named, or none. Exit status 1: you said no."""
    return change_links("link", Installer.link, names, agents, dry_run=dry_run, yes=yes, as_data=as_data)

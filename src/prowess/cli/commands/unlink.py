"""``prowess unlink``: an installed skill's links taken away."""

from __future__ import annotations

import click

from prowess.cli.change_links import change_links
from prowess.cli.command_class import new_command
from prowess.cli.install_options import dry_run_option, installed_arguments, yes_option
from prowess.cli.options import complete_agent, json_option
from prowess.install.installer import Installer


@new_command(
    "unlink",
    ("prowess unlink pdf --agent claude-code", "by name"),
    ("prowess unlink pdf csv --agent claude-code --yes", "several, all or none"),
)
@installed_arguments
@click.option(
    "--agent", "agents", multiple=True, required=True, metavar="ID", shell_complete=complete_agent, help="The agent."
)
@dry_run_option
@yes_option
@json_option
def command(names: tuple[str, ...], *, agents: tuple[str, ...], dry_run: bool, yes: bool, as_data: bool) -> int:
    """Take links of installed skills for agents away; those in .agents/skills stay. Exit status 1: you said no."""
    return change_links("unlink", Installer.unlink, names, agents, dry_run=dry_run, yes=yes, as_data=as_data)

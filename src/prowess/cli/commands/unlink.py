"""``prowess unlink``: removes links of installed skills."""

from __future__ import annotations

import click

from prowess.cli.change_flow import ChangeFlags, change_options
from prowess.cli.change_links import change_links
from prowess.cli.command_class import new_command
from prowess.cli.install_options import installed_arguments
from prowess.cli.options import AskedLocation, complete_agent, location_options


@new_command(
    "unlink",
    ("prowess unlink pdf --agent claude-code", "by name"),
    ("prowess unlink pdf csv --agent claude-code --yes", "several, all or none"),
)
@installed_arguments
@click.option(
    "--agent", "agents", multiple=True, required=True, metavar="ID", shell_complete=complete_agent, help="The agent."
)
@location_options
@change_options
def command(names: tuple[str, ...], *, agents: tuple[str, ...], asked: AskedLocation, flags: ChangeFlags) -> int:
    """Remove links of installed skills for agents. Links in .agents/skills stay. Exit status 1: you said no.

    Inside a project its installs are meant, and elsewhere your own.
    """
    return change_links("unlink", names, agents, asked, flags)

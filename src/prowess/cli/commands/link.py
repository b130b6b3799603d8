"""``prowess link``: links installed skills where further agents look."""

from __future__ import annotations

from prowess.cli.change_flow import ChangeFlags, change_options
from prowess.cli.change_links import change_links
from prowess.cli.command_class import new_command
from prowess.cli.install_options import installed_arguments
from prowess.cli.options import AskedLocation, location_options, make_agents_option


@new_command(
    "link",
    ("prowess link pdf --agent claude-code", "by name"),
    ("prowess link pdf csv --agent claude-code --yes", "several, all or none"),
)
@installed_arguments
@make_agents_option("The agent ('prowess list --help' names all of them).", required=True)
@location_options
@change_options
def command(names: tuple[str, ...], *, agents: tuple[str, ...], asked: AskedLocation, flags: ChangeFlags) -> int:
    """Link installed skills where further agents look. Exit status 1: you said no.

    Inside a project its installs are meant, and elsewhere your own. Of one of these, all are linked or none.
    """
    return change_links("link", names, agents, asked, flags)

"""``prowess remove``: removes installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.changes.remove import prepare_removal
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_installs, find_location, installed_arguments
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render.blocks import line
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from pathlib import Path


@new_command(
    "remove",
    ("prowess remove pdf", "by name"),
    ("prowess remove pdf csv", "several"),
    ("prowess remove @acme/pdf --yes", "without being asked"),
    ("prowess remove pdf --user", "your own, although this folder is in a project"),
)
@installed_arguments
@location_options
@change_options
def command(names: tuple[str, ...], *, asked: AskedLocation, flags: ChangeFlags) -> int:
    """Remove installed skills, their links, their entries in the lock file and in prowess.toml.

    Inside a project its installs are meant, and elsewhere your own. A skill that somebody edited goes to the backups,
    and its backup is named.

    Every name is looked up before anything happens. Then all skills of the project are removed, or none of them; and
    all of your own, or none. Exit status 1: you said no.
    """
    installer = Installer()
    installs = find_installs(installer, names, find_location(installer, asked))
    change = prepare_removal(installer, {found.scope: found.refs for found in installs})
    view: ChangeView[list[Path]] = ChangeView(
        progress_text="removing",
        to_dict=lambda paths: {
            "plan": [*change.steps],
            "removed": str(paths[0]) if paths else None,
            "places": [str(place) for place in paths or ()],
            "issues": [issue_to_dict(issue) for issue in change.issues()],
        },
        report=lambda _: [line("Removed ", (ref, "name"), ".") for found in installs for ref in found.refs],
        declined_text="Nothing was removed.",
    )
    return carry_out(change, view, flags)

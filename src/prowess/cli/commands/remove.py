"""``prowess remove``: removes installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.remove import prepare_removal
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_installs, find_location, installed_arguments, split_version
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render.blocks import line
from prowess.errors import InstallError
from prowess.install.installer import Installer
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from pathlib import Path

    from prowess.cli.install_options import InstallRefs


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

    An install goes as a whole. A skill of one that has several is refused, unless you name all of them.

    Every name is looked up before anything happens. Then all skills of the project are removed, or none of them; and
    all of your own, or none. Exit status 1: you said no.
    """
    installer = Installer()
    installs = find_installs(installer, names, find_location(installer, asked))
    for found in installs:
        _refuse_parts(found, {split_version(name)[0] for name in names})
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


_MAX_NAMED = 5


def _refuse_parts(found: InstallRefs, names: set[str]) -> None:
    """Raise ``InstallError`` where somebody named one skill of an install, and others would go with it."""
    for full_name in (SkillRef.parse(ref).full_name for ref in found.refs):
        skills = set(found.entries[full_name].skills) if full_name in found.entries else set[str]()
        named = names & skills
        is_meant = full_name in names or (full_name.partition("/")[2] in names and not named)
        if len(skills) > 1 and not is_meant and named != skills:
            others = skills - named
            message = (
                f"{join_first(sorted(named), _MAX_NAMED)} is installed with {format_count(len(others), 'other skill')} "
                f"from one source ({join_first(sorted(others), _MAX_NAMED)}): '@{full_name}' removes all of them"
            )
            raise InstallError(message, code="part-of-install")

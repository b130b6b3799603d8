"""``prowess verify``: compares every installed file with the lock files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_location, list_scopes, note_nothing_recorded
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import AskedLocation, json_option, location_options
from prowess.cli.recursive import recursive_option, run_in_projects
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.lockfile.read import read_lock
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from prowess.installed.scopes import Location


@new_command(
    "verify",
    ("prowess verify", "every file hashed and compared"),
    ("prowess verify --all --json", "those of the project and your own, as data"),
)
@recursive_option
@location_options
@json_option
def command(*, recursive: bool, asked: AskedLocation, as_data: bool) -> int:
    """Hash every installed file, compare it with the lock file, and name each changed, missing or extra file.

    Inside a project its installs are meant, and elsewhere your own. What the manifest declares is compared with the
    lock file too. Exit status 1: something differs.
    """
    if recursive:
        return run_in_projects(as_data=as_data)
    installer = Installer()
    location = find_location(installer, asked)
    with printer.show_progress("hashing"):
        issues = installer.verify(location=location)
    count = len(installer.list(location=location))
    rows = [((i.code, "bad"), (shorten_path(i.path), "name"), i.message, (i.hint, "dim")) for i in issues]
    printer.print_answer(
        lambda: {"installed": count, "issues": [issue_to_dict(issue) for issue in issues]},
        lambda: (
            [Table(rows)]
            if rows
            else [line((f"{_describe_count(installer, location)} installed, all as the lock files say.", "good"))]
        ),
        as_data=as_data,
    )
    if not issues:
        note_nothing_recorded(installer, location)
    return 1 if issues else 0


def _describe_count(installer: Installer, location: Location) -> str:
    """Return how many skills the lock files record. An install may hold several, and ``list`` counts each."""
    locks = [read_lock(scope.lock_folder) for scope in list_scopes(installer, location)]
    return format_count(sum(len(entry.skills) for entries in locks for entry in entries.values()), "skill")

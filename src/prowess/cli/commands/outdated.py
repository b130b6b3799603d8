"""``prowess outdated``: lists installed skills whose source has something newer."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_location, network_options, note_nothing_recorded
from prowess.cli.issues import issue_to_dict
from prowess.cli.lock_states import change_to_blocks, suggest_sync_after_pull, update_to_dict, update_to_line
from prowess.cli.main import FAILED
from prowess.cli.options import AskedLocation, json_option, location_options
from prowess.cli.recursive import recursive_option, run_in_projects
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Table, line

_HEAD = ("skill", "asked for", "here", "there", "newer")

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.install.installer import Installer


@new_command(
    "outdated",
    ("prowess outdated", "what 'prowess update' would change, and later versions"),
    ("prowess outdated --verbose", "and what each new version adds, with the diff"),
)
@click.option("--verbose", is_flag=True, help="Fetch the new versions: say what they add, and show the diffs.")
@recursive_option
@location_options
@network_options
@json_option
def command(*, verbose: bool, recursive: bool, asked: AskedLocation, installer: Installer, as_data: bool) -> int:
    """List the installed skills whose source has something newer, and those whose source could not be asked.

    Inside a project its installs are meant, and elsewhere your own.

    The versions in the lock file are compared. If others are here, as after a pull, a warning says so.

    Exit status 1: there is something newer, or a source went back. 3: at least one source could not be asked.

    The column "newer" has the latest tag that is written like the version asked for, such as v1.2.0 for v1.0.0.
    'prowess update' stays with the version asked for, and 'prowess update NAME@v1.2.0' moves to another.

    For a range such as ^1.2, the column "there" has the latest tag in it, to which 'prowess update' leads, and the
    column "newer" the latest tag beyond it.

    With --verbose, new skills, scripts, commands and allowed tools come first, then the diff from what the lock file
    records. If the version asked for has nothing newer, they are those of the tag in the column "newer".
    """
    if recursive:
        return run_in_projects(as_data=as_data)
    location = find_location(installer, asked)
    with printer.show_progress("asking the sources"):
        entries = installer.outdated(updates=verbose, location=location)
    went_back = any(issue.code == "rolled-back" for issue in installer.issues)
    unknown = any(entry.status == "failed" for entry in entries)
    rows = [
        (
            (entry.name, "name"),
            entry.ref or "-",
            entry.current[:12],
            entry.wanted or entry.newest[:12] or "not known",
            entry.newer or "-",
        )
        for entry in entries
    ]
    printer.print_answer(
        lambda: {
            "outdated": [_entry_to_dict(entry) for entry in entries],
            "issues": [issue_to_dict(i) for i in installer.issues],
        },
        # With warnings, something newer may exist that could not be seen.
        lambda: (
            [Table(rows, head=_HEAD), *_updates_to_blocks(entries)]
            if rows
            else [line("Nothing newer was found; see the warnings." if installer.issues else "Everything is current.")]
        ),
        as_data=as_data,
    )
    printer.print_issues(installer.issues)
    if unsynced := suggest_sync_after_pull(location):
        printer.warn(unsynced)
    note_nothing_recorded(installer, location)
    # A source that was not asked may hide anything, so it outranks what the others said.
    return FAILED if unknown else 1 if entries or went_back else 0


def _entry_to_dict(entry: prowess.Outdated) -> dict[str, object]:
    row = asdict(replace(entry, update=None))
    del row["update"]
    return row if entry.update is None else {**row, "update": update_to_dict(entry.update)}


def _updates_to_blocks(entries: Sequence[prowess.Outdated]) -> Iterator[Block]:
    for entry in entries:
        if entry.update is not None:
            yield Line()
            yield update_to_line(entry.update)
            yield from change_to_blocks(entry.update, "in the lock file")

"""``prowess backups``: lists what commands replaced and kept, because no source could give it back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_location, note_empty
from prowess.cli.options import AskedLocation, json_option, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Table, line
from prowess.cli.shown_paths import quote_path
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess

_HEAD = ("skill", "since", "bytes", "where", "why")


@new_command("backups", ("prowess backups", "what was kept, where, since when and why"))
@location_options
@json_option
def command(*, asked: AskedLocation, as_data: bool) -> None:
    """List the backups: skills that a command replaced and that were edited, or not installed by Prowess.

    Inside a project its backups are meant, and elsewhere your own. A backup is an ordinary folder: look into it, copy
    it back, or delete it when nobody needs it. Only 'prowess cache --prune' deletes one, after half a year.
    """
    installer = Installer()
    location = find_location(installer, asked)
    backups = installer.backups(location=location)
    printer.print_answer(
        lambda: {"backups": [_to_dict(backup) for backup in backups]},
        lambda: _to_blocks(backups) if backups else [line("There are no backups.")],
        as_data=as_data,
    )
    if not backups:
        note_empty(installer, location, "there are no backups")


def _to_dict(backup: prowess.Backup) -> dict[str, object]:
    return {
        "path": str(backup.path),
        "skill": backup.skill,
        "when": backup.when.isoformat(timespec="seconds"),
        "why": backup.why,
        "bytes": backup.bytes,
    }


def _to_blocks(backups: Sequence[prowess.Backup]) -> Iterator[Block]:
    rows = [
        (
            (backup.skill, "name"),
            f"{backup.when:%Y-%m-%d %H:%M} UTC",
            str(backup.bytes),
            shorten_path(str(backup.path)),
            backup.why,
        )
        for backup in backups
    ]
    yield Table(rows, head=_HEAD, right=frozenset((2,)))
    yield Line()
    # Quoted: a backup may have a name that came with a clone, and people paste this into a shell.
    name = shlex.quote(f"./{backups[0].skill.rpartition('/')[2]}")
    yield line(f"To take one back, make it your own: cp -R {quote_path(str(backups[0].path))} {name}")
    yield line(f"then use it in place of what is installed: prowess install {name} --project --replace")

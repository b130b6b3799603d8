"""``prowess backups``: lists what commands replaced and kept, because no source could give it back."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_location, note_empty
from prowess.cli.options import AskedLocation, json_option, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Table, Verbatim, line
from prowess.cli.render.printer import quote_path
from prowess.files.paths import shorten_path
from prowess.files.tree import hash_tree
from prowess.install.backups import REASONS, REVOKED
from prowess.install.installer import Installer
from prowess.limits import DEFAULT_LIMITS
from prowess.text.escapes import escape_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import prowess

_HEAD = ("skill", "since", "bytes", "where", "why")


@new_command("backups", ("prowess backups", "what was kept, where, since when and why"))
@location_options
@json_option
def command(*, asked: AskedLocation, as_data: bool) -> None:
    """List the backups: skills that a command replaced and that were edited, or not installed by Prowess.

    Inside a project its backups are meant, and elsewhere your own. The newest is the first. A backup is an ordinary
    folder: compare it with what is installed, take over what you need, or delete it when nobody needs it. Only
    'prowess cache --prune' deletes one, after half a year.
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
        "place": str(backup.place) if backup.place is not None else None,
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
    yield from _explain_recovery(backups[0])


def _explain_recovery(backup: prowess.Backup) -> Iterator[Block]:
    """Return how to take over what is in a backup, without changing what prowess.lock says about the skill."""
    if backup.why == REASONS[REVOKED]:
        yield line("The newest one is revoked. Look at it if you have to, and do not put it back.")
        return
    edited = _find_last_edited(backup.path, backup.place) if backup.place is not None else ""
    if escape_line(f"{backup.path}{edited}") != f"{backup.path}{edited}":
        yield line("Its name has characters that a command cannot show: open its folder in a file manager.")
        return
    # Quoted: a backup may have a name that came with a clone, and people paste this into a shell.
    path = quote_path(str(backup.path))
    if backup.place is None:
        name = shlex.quote(f"./{backup.skill.rpartition('/')[2]}")
        yield line("Nothing is where the newest one was. To make it a skill of your own:")
        yield Verbatim(f"  cp -R {path} {name}\n  prowess install {name} --project\n")
        return
    yield line("To see how the newest one differs from the present one (lines with > are in the backup):")
    yield Verbatim(f"  diff -r {quote_path(str(backup.place))} {path}\n")
    if not edited:
        yield line("It has no file that differs.")
        return
    yield line(
        "If lines of the file that you edited differ and are not your edit, an update has changed them: a copy would "
        "undo the update, so take your lines over in an editor. If all are your edit, copy that file, and nothing else:"
    )
    copied = (quote_path(str(folder / edited)) for folder in (backup.path, backup.place))
    yield Verbatim(f"  cp {' '.join(copied)}\n")
    yield line("The next sync undoes the edit again, with a backup, unless the source of the skill has it by then.")


def _find_last_edited(backup: Path, place: Path) -> str:
    """Return the file of a backup that was written last, of those that are not installed as they are, or ``""``."""
    with suppress(OSError, ValueError):
        kept = hash_tree(str(backup), DEFAULT_LIMITS).files
        here = hash_tree(os.path.realpath(place), DEFAULT_LIMITS).files
        differing = [path for path in kept if kept[path] != here.get(path)]
        # Prowess wrote all files of a skill at once: what an update changed is as old as what nobody touched.
        return max(differing, key=lambda path: (backup / path).stat().st_mtime, default="")
    return ""

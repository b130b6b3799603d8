"""``prowess backups``: what commands kept, because no source could give it back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Table, line
from prowess.cli.shown_paths import quote_path, shorten_path
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.cli.render.blocks import Block

_HEAD = ("skill", "since", "bytes", "where", "why")


@new_command("backups", ("prowess backups", "what was kept, where, since when and why"))
@json_option
def command(*, as_data: bool) -> None:
    """List what commands kept because no source could give it back: skills that were edited, or not installed by us.

    A backup is a folder like any other: look into it, copy it back, or delete it when nobody needs it. No command reads
    or deletes one.
    """
    kept = Installer().backups()
    printer.print_answer(
        lambda: {"backups": [_to_dict(one) for one in kept]}, lambda: _to_blocks(kept), as_data=as_data
    )


def _to_dict(one: prowess.Backup) -> dict[str, object]:
    return {
        "path": str(one.path),
        "skill": one.skill,
        "when": one.when.isoformat(timespec="seconds"),
        "why": one.why,
        "bytes": one.bytes,
    }


def _to_blocks(kept: Sequence[prowess.Backup]) -> Iterator[Block]:
    if not kept:
        yield line("There are no backups.")
        return
    rows = [
        ((one.skill, "name"), f"{one.when:%Y-%m-%d %H:%M} UTC", str(one.bytes), shorten_path(str(one.path)), one.why)
        for one in kept
    ]
    yield Table(rows, head=_HEAD, right=frozenset((2,)))
    yield Line()
    name = shlex.quote(f"./{kept[0].skill.rpartition('/')[2]}")
    yield line(f"To take one back, make it your own: cp -R {quote_path(str(kept[0].path))} {name}")
    yield line(f"then use it in place of what is installed: prowess install {name} --project --replace")

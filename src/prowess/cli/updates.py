"""What comes of updates, for people and as data: what a new version adds, and the diff."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from prowess.cli.render.blocks import Block, Style, diff_to_lines, line
from prowess.text.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess

_STYLES: dict[str, Style] = {
    "updated": "good",
    "added": "good",
    "removed": "warn",
    "available": "good",
    "current": "dim",
    "edited": "warn",
    "failed": "bad",
}
_MAX_SHOWN = 20
"""How many additions of a kind are shown; ``--json`` has all of them."""


def update_to_dict(update: prowess.Update) -> dict[str, object]:
    """Return an update as data."""
    return {**asdict(update), "path": str(update.path) if update.path else None}


def update_to_line(update: prowess.Update, *, force: bool = False) -> Block:
    """Return the line about an update: its status, the install, the commits, and why it is so."""
    moved = f" {update.before[:12]} → {update.after[:12]}" if update.before != update.after and update.after else ""
    edited = (
        "changed by hand, which is overwritten: a backup is kept"
        if force
        else "changed by hand, and kept unless --force"
    )
    why = update.why or (edited if update.status == "edited" else "")
    return line((f"{update.status} ", _STYLES[update.status]), (update.name, "name"), moved, f": {why}" if why else "")


def change_to_blocks(update: prowess.Update, here: str) -> Iterator[Block]:
    """Return what an update adds, and then its diff; ``here`` is what its lines with a minus are."""
    for title, group in groupby(update.additions, lambda addition: addition.title):
        # Only the name of a skill says by itself which skill it is about.
        texts = [one.value if one.kind == "skill" else f"{one.value} ({one.skill})" for one in group]
        shown = join_first([" ".join(text.split()) for text in texts], _MAX_SHOWN)
        yield line((f"{title}{'s' if len(texts) > 1 else ''}: ", "warn"), shown, indent=2)
    if update.diff:
        yield line((f"lines with - are what is {here}; lines with + are what its source has", "dim"), indent=2)
    yield from diff_to_lines(update.diff, indent=2, cut=True)


def updates_to_blocks(updates: Sequence[prowess.Update], *, force: bool) -> Iterator[Block]:
    """Return what updates would change on this disk."""
    for update in updates:
        yield update_to_line(update, force=force)
        here = "here, with the changes made by hand" if update.status == "edited" else "here"
        yield from change_to_blocks(update, here)

"""``prowess update``: installed skills brought to what their sources have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import (
    complete_installed,
    dry_option,
    notes,
    reach_options,
    ref_of,
    yes_option,
)
from prowess.cli.options import json_option
from prowess.library.lock import read_lock
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.cli.blocks import Block, Style
    from prowess.install.installer import Installer

_STYLES: dict[str, Style] = {
    "updated": "good",
    "available": "good",
    "current": "dim",
    "edited": "warn",
    "failed": "bad",
}


@new_command(
    "update",
    ("prowess update", "everything, after a look at the differences"),
    ("prowess update pdf@v2.0.0", "one, to another version"),
    ("prowess update --dry-run", "only the differences"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_installed)
@click.option("--force", is_flag=True, help="Overwrite what was changed by hand; a backup is kept.")
@reach_options
@dry_option
@yes_option
@json_option
def command(
    names: tuple[str, ...],
    *,
    force: bool,
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Update installed skills, all of them or those named: show what changes, ask, and do it.

    What someone changed by hand is kept unless --force. Exit status 1: one could not be updated, or you said no.
    """
    for scope in (installer.project, installer.user):
        read_lock(scope.records)  # a lock file that cannot be read is told, not taken for none
    if not dry_run:
        installer.recover()  # before anything is compared
        notes(installer.issues)
    refs = [ref_of(installer, name) for name in names or tuple(f"@{one.full_name}" for one in installer.list())]
    with output.busy("looking"):
        looked = [_tried(installer, ref, force=force, dry_run=True) for ref in stepped(refs, str)]
    output.show(_blocks(looked), error=True)
    due = [ref for ref, found in zip(refs, looked, strict=True) if _is_due(found, force=force)]
    stuck = any(one.status == "failed" or (one.status == "edited" and not force) for one in looked)
    if dry_run or not due or not output.confirm(f"Update {len(due)}?", yes=yes):
        output.answer(lambda: {"updates": [_data(one) for one in looked]}, list, as_data=as_data)
        return 1 if (due and not dry_run) or stuck else 0
    with output.busy("updating"):
        done = [_tried(installer, ref, force=force, dry_run=False) for ref in stepped(due, str)]
    output.answer(lambda: {"updates": [_data(one) for one in done]}, lambda: map(_line, done), as_data=as_data)
    return 1 if stuck or any(one.status in {"failed", "edited"} for one in done) else 0


def _tried(installer: Installer, ref: str, *, force: bool, dry_run: bool) -> prowess.Update:
    """One update; what keeps it from being done is its status."""
    from prowess.errors import LocalEditsError, SkillError  # noqa: PLC0415
    from prowess.install.updates import Update  # noqa: PLC0415

    try:
        found = installer.update(ref, force=force, dry_run=dry_run)[0]
    except SkillError as error:
        return Update(ref, "edited" if isinstance(error, LocalEditsError) else "failed", "", why=error.message)
    notes(installer.issues)
    return found


def _is_due(found: prowess.Update, *, force: bool) -> bool:
    return found.status == "available" or (force and found.status == "edited")


def _data(one: prowess.Update) -> dict[str, object]:
    return {
        "name": one.name,
        "status": one.status,
        "before": one.before,
        "after": one.after,
        "diff": one.diff,
        "why": one.why,
        "path": str(one.path) if one.path else None,
    }


def _line(one: prowess.Update) -> Block:
    moved = f" {one.before[:12]} → {one.after[:12]}" if one.before != one.after and one.after else ""
    why = one.why or ("changed by hand, and kept unless --force" if one.status == "edited" else "")
    return line((f"{one.status} ", _STYLES[one.status]), (one.name, "name"), moved, f": {why}" if why else "")


def _blocks(found: list[prowess.Update]) -> Iterator[Block]:
    for one in found:
        yield _line(one)
        for row in one.diff.splitlines():
            style: Style = "added" if row.startswith("+") else "removed" if row.startswith("-") else "plain"
            yield line((row, style), indent=2, cut=True)
    if not found:
        yield line("Nothing is installed.")

"""``prowess update``: brings installed skills to what their sources have now."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import click

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    InstallRefs,
    complete_install,
    find_installs,
    find_location,
    list_scopes,
    network_options,
    note_nothing_recorded,
)
from prowess.cli.issues import issue_to_dict
from prowess.cli.lock_states import suggest_first_sync, suggest_sync
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, diff_to_lines, line
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.install.installer import Installer
    from prowess.lockfile.scopes import Location

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
    ("prowess update pdf csv", "only these"),
    ("prowess update pdf@v2.0.0", "one, to another version"),
    ("prowess update --dry-run", "only the differences"),
    ("prowess update --user", "your own, although this folder is in a project"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_install)
@click.option("--force", is_flag=True, help="Overwrite what was changed by hand, and keep a backup.")
@click.option("--allow-rollback", is_flag=True, help="Follow sources that went back to an older state.")
@location_options
@network_options
@change_options
def command(
    names: tuple[str, ...],
    *,
    force: bool,
    allow_rollback: bool,
    asked: AskedLocation,
    installer: Installer,
    flags: ChangeFlags,
) -> int:
    """Update installed skills, all of them or those that you name: show what changes, ask, and do it.

    Inside a project its installs are meant, and elsewhere your own. A skill that somebody changed by hand is kept
    unless --force. A source that went back is not followed unless --allow-rollback: its branch lacks the commit that is
    installed, or its site offers an older state. Exit status 1: a skill could not be updated, or is recorded and not
    here, a source could not be asked or went back, or you said no.
    """
    location = find_location(installer, asked)
    for scope in list_scopes(installer, location):
        read_lock(scope.lock_folder)  # raises for a lock file that cannot be read, which must not look like none
    if not flags.dry_run:
        installer.recover(location=location)  # before anything is compared with what an interrupted change left
        printer.print_issues(installer.issues)
    absent = _find_absent(location) if not names else ""
    if absent:
        printer.warn(absent)
    installs = find_installs(installer, names, location)
    # The plan and the update see the same commits: each source is asked once.
    click.get_current_context().with_resource(installer.asking_once())
    run = _UpdateRun(installer, force=force, allow_rollback=allow_rollback)
    with printer.show_progress("looking"):
        planned = [
            _PlannedUpdate(found, ref, update)
            for found in installs
            for ref, update in zip(found.refs, run.update(found, found.refs, dry_run=True), strict=True)
        ]
    status = carry_out(_plan_change(run, planned, absent=absent), flags)
    note_nothing_recorded(installer, location)
    # Looked for again: the update of a source brings those of its skills that were not here.
    return status or (1 if absent and _find_absent(location) else 0)


def _find_absent(location: Location) -> str:
    """Return the sentence that skills are recorded or declared and are not here, or ``""``."""
    return suggest_sync(location=location) or (suggest_first_sync() if location != "user" else "")


class _PlannedUpdate(NamedTuple):
    """What would come of one update."""

    found: InstallRefs
    """The installs of the same scope."""
    ref: str
    update: prowess.Update


class _UpdateRun:
    """The updates of one command line, and every issue that they met, each once."""

    def __init__(self, installer: Installer, *, force: bool, allow_rollback: bool) -> None:
        self._installer = installer
        self._allow_rollback = allow_rollback
        self.force = force
        self.issues: dict[prowess.Issue, None] = {}
        """A set that keeps the order in which the issues were met."""

    def update(self, found: InstallRefs, refs: Sequence[str], *, dry_run: bool) -> list[prowess.Update]:
        """Return the update of each install of a scope. One that cannot be updated has a status that says so."""
        updates = [
            *self._installer.update(
                refs,
                force=self.force,
                dry_run=dry_run,
                allow_rollback=self._allow_rollback,
                location=found.scope.location,
            )
        ]
        self.issues |= dict.fromkeys(self._installer.issues)
        return updates

    def apply(self, planned: Sequence[_PlannedUpdate]) -> list[prowess.Update]:
        """Make the planned updates, those of one scope together, and return what came of each."""
        refs: dict[int, tuple[InstallRefs, list[str]]] = {}
        for one in planned:
            refs.setdefault(id(one.found), (one.found, []))[1].append(one.ref)
        return [update for found, its in refs.values() for update in self.update(found, its, dry_run=False)]

    def is_due(self, update: prowess.Update) -> bool:
        """Return True when an update changes files, so that a person is asked."""
        return update.status == "available" or (self.force and update.status == "edited")

    def is_stuck(self, updates: list[prowess.Update]) -> bool:
        """Return True when a source went back, or an install cannot be updated."""
        went_back = any(issue.code == "rolled-back" for issue in self.issues)
        return went_back or any(one.status in {"failed", "edited"} and not self.is_due(one) for one in updates)

    def to_dict(self, updates: list[prowess.Update]) -> dict[str, object]:
        """Return the answer as data."""
        return {
            "updates": [
                {
                    "name": update.name,
                    "status": update.status,
                    "before": update.before,
                    "after": update.after,
                    "diff": update.diff,
                    "why": update.why,
                    "path": str(update.path) if update.path else None,
                }
                for update in updates
            ],
            "issues": [issue_to_dict(issue) for issue in self.issues],
        }


def _plan_change(run: _UpdateRun, planned: list[_PlannedUpdate], *, absent: str) -> PlannedChange[list[prowess.Update]]:
    """Return the change that makes the planned updates; ``absent`` says which skills are not here."""
    updates = [one.update for one in planned]
    due = [one for one in planned if run.is_due(one.update)]
    # A later commit with identical files is recorded without asking: otherwise 'outdated' would name it for ever.
    moved = [one for one in planned if _is_moved(one.update)]
    unchanged = [update for update in updates if not run.is_due(update) and not _is_moved(update)]
    stuck_status = 1 if run.is_stuck(updates) else 0
    return PlannedChange(
        plan=[*_to_blocks(updates, force=run.force, absent=absent), *([Line()] if due else [])],
        needs_consent=bool(due),
        progress_text="updating",
        apply=lambda: run.apply([*due, *moved]),
        to_dict=lambda done: run.to_dict(updates if done is None else [*unchanged, *done]),
        report=lambda done: map(_update_to_line, done),
        declined_text="Nothing was updated.",
        idle_text="",
        question=f"Update {len(due)}?",
        issues=lambda: run.issues,
        status=lambda done: 1 if any(update.status in {"failed", "edited"} for update in done) else stuck_status,
        dry_status=stuck_status,
    )


def _is_moved(update: prowess.Update) -> bool:
    """Return True for a source with a newer commit whose files are those that are installed."""
    return update.status == "current" and update.after not in {"", update.before} and not update.why


def _update_to_line(update: prowess.Update, *, force: bool = False) -> Block:
    moved = f" {update.before[:12]} → {update.after[:12]}" if update.before != update.after and update.after else ""
    edited = (
        "changed by hand, which is overwritten: a backup is kept"
        if force
        else "changed by hand, and kept unless --force"
    )
    why = update.why or (edited if update.status == "edited" else "")
    return line((f"{update.status} ", _STYLES[update.status]), (update.name, "name"), moved, f": {why}" if why else "")


def _to_blocks(updates: list[prowess.Update], *, force: bool, absent: str) -> Iterator[Block]:
    for update in updates:
        yield _update_to_line(update, force=force)
        if update.diff:
            here = "here, with the changes made by hand" if update.status == "edited" else "here"
            yield line((f"lines with - are what is {here}; lines with + are what its source has", "dim"), indent=2)
        yield from diff_to_lines(update.diff, indent=2, cut=True)
    if not updates:
        yield line("Nothing was updated: no skill that should be here is here." if absent else "Nothing is installed.")

"""``prowess update``: brings installed skills to what their sources have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import complete_install, find_install_refs, network_options
from prowess.cli.issues import issue_to_dict
from prowess.cli.lock_states import suggest_sync
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, Style, diff_to_lines, line
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
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
    ("prowess update pdf csv", "only these"),
    ("prowess update pdf@v2.0.0", "one, to another version"),
    ("prowess update --dry-run", "only the differences"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_install)
@click.option("--force", is_flag=True, help="Overwrite what was changed by hand, and keep a backup.")
@click.option("--allow-rollback", is_flag=True, help="Follow sources that went back to an older state.")
@network_options
@change_options
def command(
    names: tuple[str, ...], *, force: bool, allow_rollback: bool, installer: Installer, flags: ChangeFlags
) -> int:
    """Update installed skills, all of them or those that you name: show what changes, ask, and do it.

    A skill that somebody changed by hand is kept unless --force. A source that went back is not followed unless
    --allow-rollback: its branch lacks the commit that is installed, or its site offers an older state. Exit status 1: a
    skill could not be updated, a source could not be asked or went back, or you said no.
    """
    for scope in (installer.project, installer.user):
        read_lock(scope.lock_folder)  # raises for a lock file that cannot be read, which must not look like none
    if not flags.dry_run:
        installer.recover()  # before anything is compared with what an interrupted change left
        printer.print_issues(installer.issues)
    if not names and (absent := suggest_sync()):
        printer.warn(absent)
    refs = find_install_refs(installer, names or (f"@{install.full_name}" for install in installer.list()))
    # The plan and the update see the same commits: each source is asked once.
    click.get_current_context().with_resource(installer.asking_once())
    run = _UpdateRun(installer, force=force, allow_rollback=allow_rollback)
    with printer.show_progress("looking"):
        planned = run.update(refs, dry_run=True)
    return carry_out(_plan_change(run, refs, planned), flags)


class _UpdateRun:
    """The updates of one command line, and every issue that they met, each once."""

    def __init__(self, installer: Installer, *, force: bool, allow_rollback: bool) -> None:
        self._installer = installer
        self._allow_rollback = allow_rollback
        self.force = force
        self.issues: dict[prowess.Issue, None] = {}
        """A set that keeps the order in which the issues were met."""

    def update(self, refs: Sequence[str], *, dry_run: bool) -> list[prowess.Update]:
        """Return the update of each install. An install that cannot be updated has a status that says so."""
        options = {"force": self.force, "dry_run": dry_run, "allow_rollback": self._allow_rollback}
        updates = [*self._installer.update(refs, **options)] if refs else []
        self.issues |= dict.fromkeys(self._installer.issues if refs else ())
        return updates

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


def _plan_change(
    run: _UpdateRun, refs: list[str], planned: list[prowess.Update]
) -> PlannedChange[list[prowess.Update]]:
    """Return the change that makes the planned updates; ``refs`` names the install of each."""
    due = [ref for ref, update in zip(refs, planned, strict=True) if run.is_due(update)]
    # A later commit with identical files is recorded without asking: otherwise 'outdated' would name it for ever.
    moved = [one for one in planned if one.status == "current" and one.after not in {"", one.before} and not one.why]
    unchanged = [update for update in planned if not run.is_due(update) and update not in moved]
    stuck_status = 1 if run.is_stuck(planned) else 0
    return PlannedChange(
        plan=[*_to_blocks(planned, force=run.force), *([Line()] if due else [])],
        needs_consent=bool(due),
        progress_text="updating",
        apply=lambda: run.update([*due, *(f"@{update.name}" for update in moved)], dry_run=False),
        to_dict=lambda done: run.to_dict(planned if done is None else [*unchanged, *done]),
        report=lambda done: map(_update_to_line, done),
        declined_text="Nothing was updated.",
        idle_text="",
        question=f"Update {len(due)}?",
        issues=lambda: run.issues,
        status=lambda done: 1 if any(update.status in {"failed", "edited"} for update in done) else stuck_status,
        dry_status=stuck_status,
    )


def _update_to_line(update: prowess.Update, *, force: bool = False) -> Block:
    moved = f" {update.before[:12]} → {update.after[:12]}" if update.before != update.after and update.after else ""
    edited = (
        "changed by hand, which is overwritten: a backup is kept"
        if force
        else "changed by hand, and kept unless --force"
    )
    why = update.why or (edited if update.status == "edited" else "")
    return line((f"{update.status} ", _STYLES[update.status]), (update.name, "name"), moved, f": {why}" if why else "")


def _to_blocks(updates: list[prowess.Update], *, force: bool) -> Iterator[Block]:
    for update in updates:
        yield _update_to_line(update, force=force)
        if update.diff:
            here = "here, with the changes made by hand" if update.status == "edited" else "here"
            yield line((f"lines with - are what is {here}; lines with + are what its source has", "dim"), indent=2)
        yield from diff_to_lines(update.diff, indent=2, cut=True)
    if not updates:
        yield line("Nothing is installed.")

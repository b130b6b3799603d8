"""``prowess update``: installed skills brought to what their sources have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.change_flow import PlannedChange, carry_out
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    complete_install,
    dry_run_option,
    find_install_refs,
    issue_to_dict,
    network_options,
    yes_option,
)
from prowess.cli.lock_states import suggest_sync
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, line
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.cli.render.blocks import Block, Style
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
@click.option("--force", is_flag=True, help="Overwrite what was changed by hand; a backup is kept.")
@click.option("--allow-rollback", is_flag=True, help="Follow sources that went back behind what is installed.")
@network_options
@dry_run_option
@yes_option
@json_option
def command(
    names: tuple[str, ...],
    *,
    force: bool,
    allow_rollback: bool,
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Update installed skills, all of them or those named: show what changes, ask, and do it.

    What someone changed by hand is kept unless --force. A source that went back behind what is installed (a branch
    without the commit that is here, a site with what it had replaced) is not followed unless --allow-rollback. Exit
    status 1: one could not be updated, a source could not be asked or went back, or you said no.
    """
    for scope in (installer.project, installer.user):
        read_lock(scope.lock_folder)  # a lock file that cannot be read is told, not taken for none
    if not dry_run:
        installer.recover()  # before anything is compared
        printer.print_issues(installer.issues)
    if not names and (absent := suggest_sync()):
        printer.warn(absent)
    refs = find_install_refs(installer, names or (f"@{one.full_name}" for one in installer.list()))
    # What was shown is what is done: both see the same commits, which are asked for once.
    click.get_current_context().with_resource(installer.asking_once())
    run = _UpdateRun(installer, force=force, allow_rollback=allow_rollback)
    with printer.show_progress("looking"):
        looked = run.update(refs, dry_run=True)
    due = [ref for ref, found in zip(refs, looked, strict=True) if _is_due(found, force=force)]
    stuck = run.has_rollback or any(one.status == "failed" or (one.status == "edited" and not force) for one in looked)
    # The same files at a later commit are no news, and recorded without asking: 'outdated' would name them for ever.
    moved = [one for one in looked if one.status == "current" and one.after not in {"", one.before} and not one.why]
    rest = [one for one in looked if not _is_due(one, force=force) and one not in moved]
    return carry_out(
        PlannedChange(
            plan=[*_to_blocks(looked, force=force), *([Line()] if due else [])],
            needs_consent=bool(due),
            progress_text="updating",
            apply=lambda: run.update([*due, *(f"@{one.name}" for one in moved)], dry_run=False),
            to_dict=lambda done: run.to_dict(looked if done is None else [*rest, *done]),
            report=lambda done: map(_update_to_line, done),
            declined_text="Nothing was updated.",
            idle_text="",
            question=f"Update {len(due)}?",
            issues=lambda: run.issues,
            status=lambda done: 1 if stuck or any(one.status in {"failed", "edited"} for one in done) else 0,
            dry_status=1 if stuck else 0,
        ),
        yes=yes,
        as_data=as_data,
        dry_run=dry_run,
    )


class _UpdateRun:
    """The updates of one command line, and every issue that they met, each once."""

    def __init__(self, installer: Installer, *, force: bool, allow_rollback: bool) -> None:
        self._installer = installer
        self._force, self._allow_rollback = force, allow_rollback
        self.issues: dict[prowess.Issue, None] = {}
        """In the order in which they were met."""

    def update(self, refs: Sequence[str], *, dry_run: bool) -> list[prowess.Update]:
        """The update of each; what keeps one from being done is its status."""
        options = {"force": self._force, "dry_run": dry_run, "allow_rollback": self._allow_rollback}
        updates = [*self._installer.update(refs, **options)] if refs else []
        self.issues |= dict.fromkeys(self._installer.issues if refs else ())
        return updates

    @property
    def has_rollback(self) -> bool:
        """Whether a source went back."""
        return any(issue.code == "rolled-back" for issue in self.issues)

    def to_dict(self, updates: list[prowess.Update]) -> dict[str, object]:
        """The answer as data."""
        return {
            "updates": [_to_dict(one) for one in updates],
            "issues": [issue_to_dict(issue) for issue in self.issues],
        }


def _is_due(found: prowess.Update, *, force: bool) -> bool:
    return found.status == "available" or (force and found.status == "edited")


def _to_dict(one: prowess.Update) -> dict[str, object]:
    return {
        "name": one.name,
        "status": one.status,
        "before": one.before,
        "after": one.after,
        "diff": one.diff,
        "why": one.why,
        "path": str(one.path) if one.path else None,
    }


def _update_to_line(one: prowess.Update, *, force: bool = False) -> Block:
    moved = f" {one.before[:12]} → {one.after[:12]}" if one.before != one.after and one.after else ""
    edited = (
        "changed by hand, which is overwritten: a backup is kept"
        if force
        else "changed by hand, and kept unless --force"
    )
    why = one.why or (edited if one.status == "edited" else "")
    return line((f"{one.status} ", _STYLES[one.status]), (one.name, "name"), moved, f": {why}" if why else "")


def _to_blocks(found: list[prowess.Update], *, force: bool) -> Iterator[Block]:
    for one in found:
        yield _update_to_line(one, force=force)
        for row in one.diff.splitlines():
            style: Style = "added" if row.startswith("+") else "removed" if row.startswith("-") else "plain"
            yield line((row, style), indent=2, cut=True)
    if not found:
        yield line("Nothing is installed.")

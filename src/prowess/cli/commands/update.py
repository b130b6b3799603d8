"""``prowess update``: brings installed skills to what their sources have now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.changes.update import prepare_update
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    complete_install,
    find_installs,
    find_location,
    list_scopes,
    network_options,
    note_nothing_recorded,
)
from prowess.cli.issues import issue_to_dict
from prowess.cli.lock_states import suggest_first_sync, suggest_sync, update_to_dict, update_to_line, updates_to_blocks
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Line, line
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.changes.update import UpdatePlan
    from prowess.install.installer import Installer
    from prowess.installed.scopes import Location


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
@click.option(
    "--accept-signer", default="", metavar="KEY", help="The fingerprint of a new key that may have signed the update."
)
@location_options
@network_options
@change_options
def command(
    names: tuple[str, ...],
    *,
    force: bool,
    allow_rollback: bool,
    accept_signer: str,
    asked: AskedLocation,
    installer: Installer,
    flags: ChangeFlags,
) -> int:
    """Update installed skills, all of them or those that you name: show what they add and change, ask, and do it.

    Inside a project its installs are meant, and elsewhere your own. A skill that somebody changed by hand is kept
    unless --force. A source that went back is not followed unless --allow-rollback: its branch lacks the commit that is
    installed, or its site offers an older state. One that another key signed than the lock file pins is refused unless
    --accept-signer names the new key. Exit status 1: a skill could not be updated, or is recorded and not
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
    with printer.show_progress("looking"):
        refs = {found.scope.location: found.refs for found in installs}
        change = prepare_update(
            installer, refs, force=force, allow_rollback=allow_rollback, accept_signer=accept_signer
        )
    plan: UpdatePlan = change.details
    stuck_status = 1 if plan.is_stuck else 0

    def to_dict(done: list[prowess.Update] | None) -> dict[str, object]:
        updates = plan.updates if done is None else [*plan.kept, *done]
        issues = [issue_to_dict(issue) for issue in change.issues()]
        return {"updates": [update_to_dict(update) for update in updates], "issues": issues}

    view: ChangeView[list[prowess.Update]] = ChangeView(
        plan=[*_to_blocks(plan, absent=absent), *([Line()] if plan.due else [])],
        needs_consent=bool(plan.due),
        progress_text="updating",
        to_dict=to_dict,
        report=lambda done: map(update_to_line, done),
        declined_text="Nothing was updated.",
        idle_text="",
        question=f"Update {len(plan.due)}?",
        status=lambda done: 1 if any(update.status in {"failed", "edited"} for update in done) else stuck_status,
        dry_status=stuck_status,
    )
    status = carry_out(change, view, flags)
    note_nothing_recorded(installer, location)
    # Looked for again: the update of a source brings those of its skills that were not here.
    return status or (1 if absent and _find_absent(location) else 0)


def _find_absent(location: Location) -> str:
    """Return the sentence that skills are recorded or declared and are not here, or ``""``."""
    return suggest_sync(location=location) or (suggest_first_sync() if location != "user" else "")


def _to_blocks(plan: UpdatePlan, *, absent: str) -> Iterator[Block]:
    """Return what would be updated, for people; ``absent`` says which skills are not here."""
    yield from updates_to_blocks(plan.updates, force=plan.force)
    if not plan.updates:
        yield line("Nothing was updated: no skill that should be here is here." if absent else "Nothing is installed.")

"""``prowess diff``: compares an install with its lock file, and the lock file with its source."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.install_options import (
    complete_install,
    find_installs,
    find_location,
    network_options,
    note_nothing_recorded,
)
from prowess.cli.options import AskedLocation, json_option, location_options
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Title, diff_to_lines, line
from prowess.progress_steps import report_steps
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.install.installer import Installer

_SHORT_ID_LENGTH = 12


@new_command(
    "diff",
    ("prowess diff pdf", "what you changed, and what its source has changed since"),
    ("prowess diff pdf csv --json", "two of them, as data"),
    ("prowess diff --lock origin/main", "what a pull request changes, with the files of the skills"),
    ("prowess diff --lock origin/main HEAD --format markdown", "the same for people who review it"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_install)
@click.option("--lock", "is_lock", is_flag=True, help="Compare two versions of prowess.lock: BASE and HEAD.")
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "markdown", "github")),
    default="text",
    help="With --lock: for people, as data, for a pull request, or as annotations of GitHub.",
)
@location_options
@network_options
@json_option
def command(
    names: tuple[str, ...], *, is_lock: bool, form: str, asked: AskedLocation, installer: Installer, as_data: bool
) -> int:
    """Show what you changed in installed skills, and what their sources changed since. Without NAME: in all of them.

    Inside a project its installs are meant, and elsewhere your own. Both are compared with the lock file, and nothing
    is changed. Exit status 0: nothing differs. 1: something differs. 3: nothing differs here, and a source could not be
    asked.

    With --lock, the names are BASE and HEAD: versions of git, or paths of lock files. Without HEAD, the lock file here
    is meant. Shown are the files that change, new skills, and what could now run. Exit status 1: something changes. 3:
    something changes, and its files could not be fetched.
    """
    if is_lock and not names:
        raise click.UsageError("--lock takes BASE: a version of git, such as origin/main, or a lock file")
    if is_lock:
        return _compare_locks(names, installer, "json" if as_data else form)
    if form != "text":
        raise click.UsageError("--format goes with --lock")
    location = find_location(installer, asked)
    installs = find_installs(installer, names, location)
    refs = [(ref, found.scope.location) for found in installs for ref in found.refs]
    with printer.show_progress("comparing"):
        diffs = [installer.diff(ref, location=where) for ref, where in report_steps(refs, lambda pair: pair[0])]
    printer.print_answer(
        lambda: {"diffs": [{**asdict(diff), "path": str(diff.path), "differs": diff.differs} for diff in diffs]},
        lambda: (block for diff in diffs for block in _to_blocks(diff)),
        as_data=as_data,
    )
    printer.print_issues(installer.issues)
    if not installs:
        note_nothing_recorded(installer, location)
    for diff in diffs:
        if diff.why_unasked:
            printer.warn(f"{diff.name}: its source could not be asked: {diff.why_unasked}")
    # A difference that is known outranks a source that could not be asked.
    return 1 if any(diff.differs for diff in diffs) else 3 if any(diff.why_unasked for diff in diffs) else 0


def _compare_locks(places: tuple[str, ...], installer: Installer, form: str) -> int:
    if len(places) > 2:  # noqa: PLR2004 - a base and a head
        raise click.UsageError("--lock takes BASE and HEAD, and nothing more")
    from prowess.cli import lock_diffs

    with printer.show_progress("comparing"):
        changes = installer.compare_locks(*places)
    if form == "markdown":
        printer.print_own_text(lock_diffs.to_markdown(changes))
    elif form == "github":
        for row in lock_diffs.to_annotations(changes, installer.project.lock_folder):
            printer.print_line(row)
    else:
        printer.print_answer(
            lambda: {"changes": [lock_diffs.change_to_dict(change) for change in changes]},
            lambda: lock_diffs.changes_to_blocks(changes),
            as_data=form == "json",
        )
    return 3 if any(change.why_unknown for change in changes) else 1 if changes else 0


def _to_blocks(diff: prowess.SkillDiff) -> Iterator[Block]:
    if diff.edited_files:
        yield Title(f"What is here of {diff.name}", f"{format_count(len(diff.edited_files), 'file')} not as locked")
        yield from diff_to_lines(diff.edits, indent=2, cut=True)
    if diff.updated_files:
        moved = (
            ""
            if diff.locked == diff.newest
            else f", {diff.locked[:_SHORT_ID_LENGTH]} → {diff.newest[:_SHORT_ID_LENGTH]}"
        )
        yield Title(
            f"What its source has now of {diff.name}", f"{format_count(len(diff.updated_files), 'file')}{moved}"
        )
        yield from diff_to_lines(diff.updates, indent=2, cut=True)
    if not diff.differs:
        yield line((diff.name, "name"), f" is what prowess.lock says{_describe_source(diff)}")


def _describe_source(diff: prowess.SkillDiff) -> str:
    """Return the end of the sentence about an install without a known difference."""
    if diff.why_unasked:
        return "."
    return ", and what its source has now." if diff.has_source else "; it has no source to compare it with."

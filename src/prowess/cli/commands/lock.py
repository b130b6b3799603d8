"""``prowess lock``: brings a lock file up to date without installing, or merges the two sides of one in conflict."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import click

from prowess.changes.merge import OWNERS, MergeDetails, find_link_issues, prepare_merge
from prowess.cli.command_class import new_command
from prowess.cli.install_options import complete_install, find_installs, network_options, note_nothing_recorded
from prowess.cli.issues import find_remedy, issue_to_dict
from prowess.cli.lock_states import change_to_blocks, update_to_dict, update_to_line
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.cli.terminal import ask_choice, open_terminal
from prowess.errors import InstallError
from prowess.files.paths import shorten_path
from prowess.files.write import write_atomic
from prowess.install.installer import Installer
from prowess.install.lock_sides import describe_versions
from prowess.install.manifest import manifest_file_name
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.merge import LockMerge, Side, find_marker, merge_locks, wrap_in_markers
from prowess.lockfile.read import LOCK_FILE, parse_lock, read_lock, read_text
from prowess.lockfile.write import refuse_oversized

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.install.lock_sides import Owner
    from prowess.installed.scopes import InstallScope


_UNDECIDED_NOTE = (
    "both sides changed these; nothing was written. Say --take mine, --take theirs, or run it on a terminal"
)
_FILE_TYPE = click.Path(dir_okay=False)
_NAMES = ("HEAD", "the commits to merge")
"""What the sides of a merge driver are called, in a merge and in a rebase, where git does not give their names."""


@new_command(
    "lock",
    ("prowess lock", "record what prowess.toml declares; 'prowess sync' installs it"),
    ("prowess lock --update --json", "for bots: lock what the sources have now, and say what that adds"),
    ("prowess lock --merge", "after 'git merge', 'git rebase' or 'git stash pop' stopped at prowess.lock"),
    ("prowess lock --merge --take theirs", "the other side's where both changed one skill"),
    ("prowess lock --merge --base %O --ours %A --theirs %B", "as git's merge driver: see docs/how-to/team.md"),
)
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=complete_install)
@click.option("--update", is_flag=True, help="Also lock what the sources have now, of all installs or of those named.")
@click.option("--dry-run", is_flag=True, help="Show what would be locked, and change nothing.")
@click.option("--merge", is_flag=True, help="Merge the lock file that git left in conflict.")
@click.option("--take", type=click.Choice(OWNERS), help="Whose version to take if both sides changed a skill.")
@click.option("--user", is_flag=True, help="The lock file of your own skills, not the project's.")
@click.option("--base", type=_FILE_TYPE, metavar="FILE", help="The version that both sides began with.")
@click.option("--ours", type=_FILE_TYPE, metavar="FILE", help="Our version; the result is written to it.")
@click.option("--theirs", type=_FILE_TYPE, metavar="FILE", help="The other version.")
@click.option("--ours-name", default="", metavar="NAME", help="The branch or commit of --ours, as messages name it.")
@click.option("--theirs-name", default="", metavar="NAME", help="The branch or commit of --theirs.")
@network_options
@json_option
def command(
    names: tuple[str, ...],
    *,
    update: bool,
    dry_run: bool,
    installer: Installer,
    merge: bool,
    take: str | None,
    user: bool,
    base: str | None,
    ours: str | None,
    theirs: str | None,
    ours_name: str,
    theirs_name: str,
    as_data: bool,
) -> int:
    """Bring prowess.lock up to date with prowess.toml, and install nothing; with --merge, merge one in conflict.

    What is installed here does not count and stays as it is: 'prowess sync' installs what is locked. Skills that
    prowess.toml does not declare any more are removed from the lock file. Exit status 1: with --update, a source could
    not be asked or went back; with --dry-run, something would change.

    --merge merges a lock file that git left in conflict, skill by skill. A change that only one side made is taken. If
    both sides changed a skill differently, you are asked on the terminal which version to take. Without a terminal
    those skills are named, and the file stays as it is. In a rebase, "mine" is what you committed, which git calls
    "theirs"; the branch or the commit of each side is named where git says it. With --base, --ours and --theirs it
    merges three files, as a git merge driver does; these two are sides as git calls them. Exit status 1: both sides
    changed a skill, and nobody chose.
    """
    if not merge:
        if any((take, user, base, ours, theirs)):
            raise click.UsageError("--take, --user, --base, --ours and --theirs go with --merge")
        if names and not update:
            raise click.UsageError("names go with --update")
        return _lock_project(installer, names, update=update, dry_run=dry_run, as_data=as_data)
    if names or update or dry_run:
        raise click.UsageError("--merge goes without names, --update and --dry-run")
    if any(file is not None for file in (base, ours, theirs)):
        if ours is None or theirs is None or user:
            raise click.UsageError("--ours and --theirs go together, with --base, and without --user")
        sides = (_read_name(ours_name) or _NAMES[0], _read_name(theirs_name) or _NAMES[1])
        return _merge_files(base, ours, theirs, names=sides, take=take, as_data=as_data)
    return _merge_project(user=user, take=take, as_data=as_data)


# -- what is declared, and what sources have ---------------------------------------------------------------------------


def _lock_project(installer: Installer, names: Sequence[str], *, update: bool, dry_run: bool, as_data: bool) -> int:
    refs = [ref for found in find_installs(installer, names, "project") for ref in found.refs] if names else update
    with printer.show_progress("asking the sources"):
        updates = installer.lock(update=refs, dry_run=dry_run)
    changed = [one for one in updates if one.status in {"added", "removed", "updated"}]
    title = f"{LOCK_FILE} would change:" if dry_run else f"{LOCK_FILE} was changed; 'prowess sync' installs it:"
    if not changed:
        is_empty = not updates and not read_lock(installer.project.lock_folder)
        title = "Nothing is declared." if is_empty else f"{LOCK_FILE} records what is declared."
    printer.print_answer(
        lambda: {
            "changed": bool(changed),
            "updates": [update_to_dict(one) for one in updates],
            "issues": [issue_to_dict(issue) for issue in installer.issues],
        },
        lambda: [
            line(title),
            *(block for one in updates for block in (update_to_line(one), *change_to_blocks(one, "in the lock file"))),
        ],
        as_data=as_data,
    )
    printer.print_issues(installer.issues)
    if not updates:
        note_nothing_recorded(installer, "project")
    return 1 if (dry_run and changed) or len(changed) < len(updates) else 0


# -- the lock file of a project ----------------------------------------------------------------------------------------


def _merge_project(*, user: bool, take: str | None, as_data: bool) -> int:
    installer = Installer()
    scope = installer.user if user else installer.project
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    change = prepare_merge(scope, DEFAULT_LIMITS)
    if change.details is None:
        text = read_text(scope.lock_folder, LOCK_FILE)
        count = len(parse_lock(text, path)) if text is not None else 0
        message = f"There is no {LOCK_FILE} here." if text is None else f"{shorten_path(path)} is in no conflict."
        _print_answer(path, None, [line(message)], count=count, as_data=as_data)
        _warn_of_manifest(scope)
        return 0
    details: MergeDetails = change.details
    if change.choose is not None:
        words = [take] * len(details.conflicts) if take is not None else _ask_for_sides(details)
        if not words:
            return _report_conflicts(scope, details, as_data=as_data)
        names = [name for name, _, _ in details.conflicts]
        change = change.choose(cast("dict[str, Owner]", dict(zip(names, words, strict=True))))
    change.apply()
    merged = change.details.merged
    count = len(parse_lock(merged.text))
    rows = [line(("Merged ", "good"), (shorten_path(path), "name"), f": it records {count} installed.")]
    _print_answer(path, merged, rows, count=count, as_data=as_data)
    printer.print_issues(change.issues())
    _warn_of_manifest(scope)
    printer.note(f"next: 'git add {LOCK_FILE}', and 'prowess sync' once the merge is done")
    return 0


def _ask_for_sides(details: MergeDetails) -> list[str]:
    """Ask a person for ``mine`` or ``theirs`` for each conflict; return nothing without a terminal."""
    with open_terminal() as terminal:
        if terminal is None:
            return []
        first, second = details.sides.owners
        return [
            ask_choice(f"{name}: {first} has {mine}, {second} {theirs}. Take", OWNERS, terminal)
            for name, mine, theirs in details.conflicts
        ]


def _report_conflicts(scope: InstallScope, details: MergeDetails, *, as_data: bool) -> int:
    """Print the skills that both sides changed, and leave the file as it is."""
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    rows = [((name, "name"), mine, theirs) for name, mine, theirs in details.conflicts]
    table = Table(rows, head=("skill", *details.sides.owners))
    _print_answer(path, details.merged, [table], count=None, as_data=as_data)
    printer.note(_UNDECIDED_NOTE)
    _warn_of_manifest(scope)
    # Without markers git holds one whole side in the file, and 'git add' would quietly choose it.
    if not find_marker(details.sides.text):
        printer.note(f"{LOCK_FILE} is as one side has it: 'git add {LOCK_FILE}' keeps that")
    return 1


# -- three files, as git hands them to a merge driver ------------------------------------------------------------------


def _read_name(name: str) -> str:
    """Return the name of a side that git gave, or ``""``. A git before 2.44 gives the placeholder itself."""
    return "" if name.startswith("%") else " ".join(name.split())


def _merge_files(
    base: str | None, ours: str, theirs: str, *, names: tuple[str, str], take: str | None, as_data: bool
) -> int:
    """Merge three files into ``ours``. A conflict leaves both versions there, between markers with ``names``."""
    contents = [_read_file(file) if file is not None else "" for file in (base, ours, theirs)]
    try:
        merged = merge_locks(*contents, labels=names)
        if take is not None:
            side: Side = "ours" if take == "mine" else "theirs"
            choices = {conflict.name: side for conflict in merged.conflicts}
            merged = merge_locks(*contents, choices=choices, labels=names)
    except InstallError:
        # git takes this file for the result, and forgets the other side with the next 'git add'. So both are written.
        write_atomic(ours, wrap_in_markers(contents[1], contents[2], names).encode(), mode=0o644)
        raise
    refuse_oversized(merged.text, ours, DEFAULT_LIMITS)
    write_atomic(ours, merged.text.encode(), mode=0o644)
    _print_answer(ours, merged, [], count=None if merged.conflicts else len(parse_lock(merged.text)), as_data=as_data)
    if not merged.conflicts:
        printer.print_issues(find_link_issues(parse_lock(merged.text), ours))
    for conflict in merged.conflicts:
        shown = ", ".join(
            f"{name}: {version}" for name, version in zip(names, describe_versions(conflict), strict=True)
        )
        printer.warn(f"[lock-conflict] both sides changed {conflict.name} ({shown})")
    if merged.conflicts:
        printer.note(f"  hint: {find_remedy('lock-conflict')}")
    return 1 if merged.conflicts else 0


def _warn_of_manifest(scope: InstallScope) -> None:
    """Warn of a manifest that holds git's markers too: only a person can merge that."""
    file = manifest_file_name(scope.lock_folder)
    line_number = find_marker(read_text(scope.lock_folder, file) or "")
    if line_number:
        printer.warn(f"[manifest-conflict] {file} is in conflict too: it holds git's markers (line {line_number})")
        printer.note(f"  hint: {find_remedy('manifest-conflict')}")


def _read_file(path: str) -> str:
    folder, name = os.path.split(os.path.abspath(path))
    text = read_text(folder, name)
    if text is None:
        raise InstallError("there is no such file", path, "bad-lock")
    return text


def _print_answer(
    path: str, merged: LockMerge | None, blocks: Sequence[Block], *, count: int | None, as_data: bool
) -> None:
    conflicts = merged.conflicts if merged is not None else ()
    printer.print_answer(
        lambda: {
            "path": path,
            "installed": count,
            "conflicts": [{"name": one.name, "ours": one.ours, "theirs": one.theirs} for one in conflicts],
        },
        lambda: blocks,
        as_data=as_data,
    )

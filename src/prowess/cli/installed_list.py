"""What ``prowess list --installed`` shows: each install, from where it came, and which skills it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prowess.cli.install_options import find_location, list_scopes, note_empty
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Span, Table, Title, line
from prowess.files.paths import shorten_path
from prowess.install.agent_links import LinkFolders
from prowess.install.installed_files import compare_files
from prowess.install.installer import Installer
from prowess.installed.placed import PlacedTrees
from prowess.installed.scopes import is_on_disk, locate_install
from prowess.installed.states import BEHIND, CHANGED
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import read_lock
from prowess.progress_steps import report_steps
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.cli.options import AskedLocation
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntry

_MAX_SKILLS = 5
"""How many skills of an install are named."""


class _InstallRow(NamedTuple):
    name: str
    path: str
    entry: LockEntry | None
    """``None`` for an install that no lock file records."""
    state: str
    """How the install differs from its entry, in words; ``""`` when it does not."""


def show_installed(asked: AskedLocation, *, as_data: bool) -> None:
    """Print the installs that the command line means, each with how it differs from the lock file."""
    installer = Installer()
    location = find_location(installer, asked)
    with printer.show_progress("hashing"):
        rows = {scope: _list_rows(installer, scope) for scope in list_scopes(installer, location)}
    printer.print_answer(
        lambda: {"installed": [_to_dict(scope, row) for scope, its in rows.items() for row in its]},
        lambda: (
            [block for scope, its in rows.items() if its for block in _to_blocks(scope, its)]
            or [line("Nothing is installed.")]
        ),
        as_data=as_data,
    )
    if not any(rows.values()):
        note_empty(installer, location)


def _list_rows(installer: Installer, scope: InstallScope) -> list[_InstallRow]:
    entries = read_lock(scope.lock_folder)
    found = {install.full_name: str(install.path) for install in installer.list(location=scope.location)}
    link_folders, placed = LinkFolders(scope), PlacedTrees(scope.base, DEFAULT_LIMITS)

    def find_state(entry: LockEntry | None) -> str:
        if entry is None:
            return "not in the lock file"
        if not is_on_disk(entry, scope):
            return "missing"
        differences = compare_files(entry, link_folders, DEFAULT_LIMITS, placed)
        return CHANGED if any(one.is_edit for one in differences) else BEHIND if differences else ""

    return [
        _InstallRow(
            name,
            found.get(name) or locate_install(entries.get(name), scope, name),
            entries.get(name),
            find_state(entries.get(name)),
        )
        for name in report_steps(sorted({*found, *entries}), str)
    ]


def _to_dict(scope: InstallScope, row: _InstallRow) -> dict[str, object]:
    entry = row.entry
    return {
        "name": row.name,
        "location": scope.location,
        "path": row.path,
        "source": entry.source if entry else None,
        "ref": entry.ref if entry else None,
        "commit": entry.commit if entry else None,
        "skills": sorted(entry.skills) if entry else [],
        "agents": list(entry.agents) if entry else [],
        "state": row.state or "recorded",
    }


def _to_blocks(scope: InstallScope, rows: list[_InstallRow]) -> Iterator[Block]:
    owner = f"the project {shorten_path(scope.lock_folder)}" if scope.location == "project" else "you"
    yield Title(f"Installed for {owner}", format_count(len(rows), "install"))
    yield Table([_to_row(row) for row in rows], indent=2)


def _to_row(row: _InstallRow) -> tuple[Span, tuple[Span, ...], Span]:
    entry = row.entry
    mark: tuple[Span, ...] = ((f"[{row.state}] ", "warn"),) if row.state else ()
    if entry is None:
        return (row.name, "name"), mark, ""
    version = entry.ref or entry.commit[:12]
    source = f"{entry.source}{f' at {version}' if version else ''}"
    skills = "" if entry.select else join_first(sorted(entry.skills), _MAX_SKILLS)
    return (row.name, "name"), (*mark, source), (skills, "dim")

"""The tables of ``prowess list --installed`` and ``--agents``: installs, and which agent has which skill."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from prowess.cli.install_options import find_location, list_scopes, note_empty
from prowess.cli.lock_states import suggest_sync
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Line, Span, Style, Table, Title, line
from prowess.discovery.agents import AGENTS
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
    from collections.abc import Iterator, Sequence

    from prowess.cli.options import AskedLocation
    from prowess.install.agent_coverage import Coverage, SkillState
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


_MAX_WIDTH = 80
"""The width for a table of words. It does not depend on the terminal: a pipe gets the same answer."""
_MARKS: dict[SkillState, str] = {"linked": "L", "copied": "C", "edited": "E", "shadowed": "S", "missing": "-"}
_STYLES: dict[SkillState, Style] = {"linked": "good", "copied": "good", "edited": "bad", "shadowed": "warn"}


def show_matrix(agents: Sequence[str], *, project: bool, as_data: bool) -> None:
    """Print which agent has which skill; ``agents`` are shown besides those that are found here."""
    coverage = Installer().coverage(agents, project=project)
    printer.print_answer(
        lambda: _matrix_to_dict(coverage),
        lambda: _matrix_to_blocks(coverage, suggest_sync(location="all" if project else "user")),
        as_data=as_data,
    )


def _matrix_to_dict(coverage: Coverage) -> dict[str, object]:
    return {
        "agents": [{"id": agent, "title": AGENTS[agent].title} for agent in coverage.agents],
        "skills": [
            {
                "name": row.name,
                "location": row.location,
                "install": row.install,
                "states": [{"agent": agent, "state": state} for agent, state in row.states.items()],
            }
            for row in coverage.skills
        ],
    }


def _matrix_to_blocks(coverage: Coverage, absent: str) -> Iterator[Block]:
    """Return the matrix for people; ``absent`` is the command that brings skills which only a lock file has."""
    if not coverage.agents:
        yield line("No agent has a folder in the project or in the home folder, so none is shown.")
        if coverage.skills and not absent:
            yield line("Codex and many others find the skills in .agents/skills all the same.")
        yield line("To see what an agent has, name it: prowess list --agents --agent codex")
    elif not coverage.skills:
        yield line(f"There are no skills where {', '.join(coverage.agents)} look.")
    else:
        rows = [
            ((row.name, "name"), row.location, *(_style_state(state, state) for state in row.states.values()))
            for row in coverage.skills
        ]
        words = Table(rows, ("skill", "for", *coverage.agents))
        yield from [words] if _measure_table(words) <= _MAX_WIDTH else _to_compact_blocks(coverage)
        # Skills that are not here, as after a clone, cannot be linked yet.
        yield from [line((absent, "dim"))] if absent else _suggest_link(coverage)


def _suggest_link(coverage: Coverage) -> Iterator[Block]:
    """Return the command that gives an agent the first installed skill that it lacks; nothing if none is lacking."""
    lacking = ((row, agent) for row in coverage.skills for agent, state in row.states.items() if state == "missing")
    for row, agent in lacking:
        if row.install:  # only installed skills can be linked
            user = " --user" if row.location == "user" else ""
            command = f"prowess link {quote(row.name)} --agent {agent}{user}"
            yield line((f"To give an agent a skill that it lacks: {command}", "dim"))
            return


def _style_state(text: str, state: SkillState) -> Span:
    return text, _STYLES.get(state, "dim")


def _measure_table(table: Table) -> int:
    rows = [table.head, *(tuple(cell if isinstance(cell, str) else str(cell[0]) for cell in row) for row in table.rows)]
    # Two spaces follow each column.
    return sum(2 + max(map(len, column)) for column in zip(*rows, strict=True))


def _to_compact_blocks(coverage: Coverage) -> Iterator[Block]:
    """Return the table with a number for each agent and a letter for each state, and a legend below."""
    numbers = [str(number) for number, _ in enumerate(coverage.agents, 1)]
    rows: list[tuple[Cell, ...]] = [
        (
            *(_style_state(_MARKS[state], state) for state in row.states.values()),
            ((row.name, "name"), (f" ({row.location})", "dim")),
        )
        for row in coverage.skills
    ]
    yield Table(rows, (*numbers, "skill"), cut=True)
    yield Line()
    yield Table([(number, agent, AGENTS[agent].title) for number, agent in zip(numbers, coverage.agents, strict=True)])
    yield Line()
    used_states = {state for row in coverage.skills for state in row.states.values()}
    yield line(", ".join(f"{mark} {state}" for state, mark in _MARKS.items() if state in used_states))

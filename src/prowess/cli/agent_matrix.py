"""The table of skills and agents of ``list --agents``: words if they fit into a line, or letters with a legend."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from prowess.cli.lock_states import suggest_sync
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Cell, Line, Span, Style, Table, line
from prowess.discovery.agents import AGENTS
from prowess.install.installer import Installer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.agent_coverage import Coverage, SkillState

_MAX_WIDTH = 80
"""The width for a table of words. It does not depend on the terminal: a pipe gets the same answer."""
_MARKS: dict[SkillState, str] = {"linked": "L", "copied": "C", "edited": "E", "shadowed": "S", "missing": "-"}
_STYLES: dict[SkillState, Style] = {"linked": "good", "copied": "good", "edited": "bad", "shadowed": "warn"}


def show_matrix(agents: Sequence[str], *, project: bool, as_data: bool) -> None:
    """Print which agent has which skill; ``agents`` are shown besides those that are found here."""
    coverage = Installer().coverage(agents, project=project)
    printer.print_answer(
        lambda: _to_dict(coverage),
        lambda: _to_blocks(coverage, suggest_sync(location="all" if project else "user")),
        as_data=as_data,
    )


def _to_dict(coverage: Coverage) -> dict[str, object]:
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


def _to_blocks(coverage: Coverage, absent: str) -> Iterator[Block]:
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

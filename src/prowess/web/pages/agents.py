"""The page "Agents": which agent has which skill, and what can be done about it in each place of the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from prowess.discovery.agents import AGENTS
from prowess.web.pages.library import PAGE_SIZE, read_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.install.agent_coverage import SkillCoverage, SkillState
    from prowess.web.library import Library
    from prowess.web.library_state import LibraryState
    from prowess.web.skill_rows import SkillRow

_MAX_TEXT = 200
STATES: dict[str, str] = {
    "linked": "It has the skill by a link.",
    "copied": "It has the skill as files of its own.",
    "missing": "It does not have the skill.",
    "shadowed": "It has another skill of this name, which hides this one.",
    "edited": "It has the skill, and somebody changed its files since it was installed.",
}
"""What each state of a skill and an agent means."""


class CellAction(NamedTuple):
    """What a cell offers: the title of its button, the action that must be allowed, and the fields of the plan.

    Without fields it is a link to the page of the skill.
    """

    title: str
    action: str = ""
    fields: str = ""


class AgentCell(NamedTuple):
    """A skill and an agent: the state, and what can be done."""

    agent: str
    title: str
    state: SkillState
    action: CellAction


class AgentRow(NamedTuple):
    """A skill of one scope: the id of its page, the install that it belongs to, and a cell for each agent."""

    id: str
    name: str
    scope: str
    install: str
    cells: Sequence[AgentCell]
    why: str = ""
    """That it does not load, or that nobody installed it; ``""`` for an install that loads."""


@dataclass(frozen=True, slots=True)
class AgentsView:
    """What the page shows."""

    text: str
    """What the names of the skills must have in them."""
    state: str
    """The state that a skill must have for some agent; ``""`` for any."""
    page: int
    pages: int
    total: int
    agents: Sequence[tuple[str, str, str]]
    """The id and the title of each agent, and the fields of the plan that links what it misses of these rows."""
    rows: Sequence[AgentRow]
    counts: Sequence[tuple[str, str, int]]
    """Each state, what it means, and how many cells have it."""
    problems: Sequence[str] = ()

    def change(self, **changes: str | int) -> dict[str, str]:
        """Return the parameters of this page with other values, on its first page unless a page is given."""
        given = {"q": self.text, "state": self.state, "page": 1, **changes}
        return {name: "" if name == "page" and value == 1 else str(value) for name, value in given.items()}

    @property
    def first(self) -> int:
        """The number of the first row of the page, from 1; 0 without rows."""
        return (self.page - 1) * PAGE_SIZE + 1 if self.rows else 0


def make_agents_view(library: Library, parameters: Mapping[str, str]) -> AgentsView:
    """Return what the page shows for the parameters of its address."""
    text, wanted = parameters.get("q", "")[:_MAX_TEXT].strip(), parameters.get("state", "")
    wanted = wanted if wanted in STATES else ""
    state = library.state
    coverage = state.coverage
    if coverage is None:
        return AgentsView(text, wanted, 1, 1, 0, (), (), (), _explain_absence(library, state))
    matching = [
        row
        for row in coverage.skills
        if text.casefold() in row.name.casefold() and (not wanted or wanted in row.states.values())
    ]
    pages = max(1, -(-len(matching) // PAGE_SIZE))
    page = min(read_number(parameters.get("page", "")) or 1, pages)
    shown = matching[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]
    states = [one for row in coverage.skills for one in row.states.values()]
    return AgentsView(
        text,
        wanted,
        page,
        pages,
        len(matching),
        [(agent, AGENTS[agent].title, _link_missing(agent, shown)) for agent in coverage.agents],
        [_make_row(state, row) for row in shown],
        [(name, meaning, states.count(name)) for name, meaning in STATES.items() if name in states],
    )


def _explain_absence(library: Library, state: LibraryState) -> list[str]:
    if library.installer is None:
        return ["This library is not about the agents of this machine."]
    return [error.message for error in state.locks.lock_errors] or ["The lock files cannot be read."]


def _link_missing(agent: str, rows: Sequence[SkillCoverage]) -> str:
    """Return the fields of the plan that links all installs of some rows which an agent misses, or ``""``."""
    installs = dict.fromkeys(row.install for row in rows if row.install and row.states[agent] == "missing")
    return _write_fields("link", [("install", install) for install in installs], agent) if installs else ""


def _make_row(state: LibraryState, row: SkillCoverage) -> AgentRow:
    # Agents know a skill by the name of its folder, which is not its name where the author made a mistake.
    known = state.rows_by_name.get(row.name) or state.rows_by_folder.get(row.name)
    cells = [
        AgentCell(agent, AGENTS[agent].title, cell, _choose_action(state, row, agent, cell, known))
        for agent, cell in row.states.items()
    ]
    reasons = ("it does not load" if _is_broken(known) else "", "" if row.install else "in no lock file")
    why = ", ".join(filter(None, reasons))
    return AgentRow(known.id if known else "", row.name, row.location, row.install, cells, why)


def _is_broken(row: SkillRow | None) -> bool:
    return row is not None and row.kind == "broken"


def _choose_action(
    library: LibraryState, row: SkillCoverage, agent: str, state: SkillState, known: SkillRow | None
) -> CellAction:
    if state == "shadowed":
        return CellAction("Look at both")
    if _is_broken(known) and not row.install:  # only a skill that loads can be taken over
        return CellAction("Open")
    if not row.install:
        fields = urlencode({"kind": "adopt", "skill": row.name, "scope": row.location})
        return CellAction("Take over", "install", fields)
    if state == "edited":
        return CellAction(
            "Compare", "update", urlencode({"kind": "update", "install": row.install, "scope": row.location})
        )
    return _choose_link_action(row, agent, library.find_links(row, agent), is_missing=state == "missing")


def _choose_link_action(row: SkillCoverage, agent: str, links: tuple[bool, bool], *, is_missing: bool) -> CellAction:
    is_recorded, is_own = links
    scope = ("scope", row.location)
    if is_missing and is_recorded:
        return CellAction("Put back", "sync", urlencode({"kind": "sync", "scope": row.location}))
    if is_missing:
        return CellAction("Link", "link", _write_fields("link", [("install", row.install), scope], agent))
    if not is_own:
        return CellAction("Open")
    return CellAction("Unlink", "link", _write_fields("unlink", [("install", row.install), scope], agent))


def _write_fields(kind: str, fields: Sequence[tuple[str, str]], agent: str) -> str:
    return urlencode([("kind", kind), *fields, ("agent", agent)])

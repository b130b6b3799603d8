"""What the console knows about the skills of one moment, each thing found out when a page first asks for it."""

from __future__ import annotations

import os
import time
from functools import cached_property
from statistics import median
from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from prowess.authoring.similar import find_similar_pairs
from prowess.conversation.acting.trust import TrustStates
from prowess.errors import SkillError, UnknownSkillError
from prowess.installed.states import CHANGED, LockStates
from prowess.lockfile.read import read_lock
from prowess.names import link_name
from prowess.select.budget import listing_costs
from prowess.skills.explanation import Place
from prowess.skills.inventory import can_act
from prowess.skills.parse import read_metadata
from prowess.web.skill_rows import make_broken_rows, make_shadowed_rows, make_skill_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from prowess.authoring.evals import EvalReport
    from prowess.authoring.findings import Finding
    from prowess.install.agent_coverage import Coverage, SkillCoverage
    from prowess.install.agent_links import LinkFolders
    from prowess.install.outdated import Outdated
    from prowess.lockfile.read import LockEntries
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill
    from prowess.web.library import Library
    from prowess.web.skill_rows import SkillRow

_COVERAGE_FACTOR = 10
_COSTLY_FACTOR = 2
"""A skill is costly when its entry in the listing has at least this many times the tokens of the median entry."""


class StateMarks(NamedTuple):
    """What a state of the library depends on beside the catalogue."""

    records: tuple[object, ...]
    """The identities of the lock files, and the mark of the grants."""
    outdated: tuple[Outdated, ...] | None
    """What the sources of installs had at the last check."""
    is_followed: bool
    """Whether the catalogue is one that follows the files."""


class LibraryState:
    """What is known about one catalogue, with the lock files and grants of one moment. Each thing is found out once."""

    def __init__(self, library: Library, catalog: Catalog, marks: StateMarks) -> None:
        self.catalog = catalog
        self.marks = marks
        self._library = library
        self._lock = RLock()
        self._numbers: dict[str, int] = {}
        self._coverage: Coverage | None = None
        self._coverage_until = 0.0
        self._lock_states: dict[str, str] = {}
        self._trust_states: dict[str, str] = {}
        # The longest path first: places may lie inside each other, and a skill belongs to the innermost.
        paths = ((place.path.rstrip(os.sep) + os.sep, place) for place in catalog.places)
        self._places = sorted(paths, key=lambda pair: -len(pair[0]))

    def remember(self, key: str, find: Callable[[], int]) -> int:
        """Return the number that ``find`` returns, which is found out once for a key as long as this state holds."""
        if key not in self._numbers:
            self._numbers[key] = find()
        return self._numbers[key]

    # -- rows --------------------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> tuple[SkillRow, ...]:
        """The skills by name."""
        return make_skill_rows(self.catalog)

    @cached_property
    def shadowed(self) -> tuple[SkillRow, ...]:
        """The copies that lost to another skill of their name, by name."""
        return make_shadowed_rows(self.catalog)

    @cached_property
    def broken(self) -> tuple[SkillRow, ...]:
        """The files and places that do not load, by path; of several errors of one file the first is the reason."""
        return make_broken_rows(self.catalog)

    @cached_property
    def rows_by_name(self) -> dict[str, SkillRow]:
        """The rows of the skills, by name."""
        return {row.name: row for row in self.rows}

    @cached_property
    def rows_by_folder(self) -> dict[str, SkillRow]:
        """The rows of the skills and of the files that do not load, by the name of their folder, the skills first."""
        return {os.path.basename(os.path.dirname(row.location)): row for row in (*self.broken, *self.rows)}

    @cached_property
    def _rows_by_id(self) -> dict[str, SkillRow]:
        return {row.id: row for row in (*self.broken, *self.shadowed, *self.rows)}

    def find_row(self, skill_id: str) -> SkillRow:
        """Return the row of an id; raise ``UnknownSkillError`` when there is none."""
        row = self._rows_by_id.get(skill_id)
        if row is None:
            raise UnknownSkillError(skill_id, self.catalog.names)
        return row

    def read_skill(self, row: SkillRow) -> Skill | None:
        """Return the skill of a row; ``None`` where it does not load."""
        if row.kind == "skill":
            return self.catalog.get(row.name)
        if row.kind == "broken":
            return None
        try:
            return read_metadata(row.location, "lenient", limits=self._library.limits)
        except SkillError:
            return None

    def read_lines(self, row: SkillRow) -> list[str]:
        """Return the lines of the SKILL.md of a row, also of one that does not load; none where it cannot be read."""
        from prowess.authoring.findings import read_lines

        return read_lines(*os.path.split(row.location), self._library.limits)

    def find_findings(self, row: SkillRow) -> tuple[Finding, ...]:
        """Return what ``prowess check`` says of the SKILL.md of a row; none where nothing is at its location.

        Raises ``SkillError`` where that cannot be found out.
        """
        from prowess.authoring.check import check

        return check(row.location, limits=self._library.limits).findings if os.path.isfile(row.location) else ()

    def evaluate(self, skill: Skill) -> EvalReport | None:
        """Return how a description does against the author's own queries; ``None`` where the author wrote none.

        Raises ``SkillError`` for queries that cannot be read.
        """
        from prowess.authoring.evals import evaluate, load_evals

        try:
            cases = load_evals(skill.folder, limits=self._library.limits)
        except SkillError as error:
            if error.code == "no-evals":
                return None
            raise
        own = [case for case in cases if case.skill == skill.name]
        return evaluate(own, self.catalog) if own else None

    # -- where they come from ----------------------------------------------------------------------------------------

    @cached_property
    def locks(self) -> LockStates:
        """The lock files of the library's scopes."""
        return LockStates(self._library.scopes, self._library.limits)

    @cached_property
    def _trust(self) -> TrustStates | None:
        return None if self._library.trust is None else TrustStates(self._library.trust)

    def find_place(self, location: str) -> Place:
        """Return the place that a SKILL.md was found in."""
        return next((place for path, place in self._places if location.startswith(path)), Place("elsewhere"))

    def find_source(self, skill: Skill) -> str:
        """Return the source that a skill was installed from, or the path of the place that it is in."""
        entry = self.locks.find_entry(skill) if self.locks.has_entries else None
        return entry[0].source if entry is not None else self.find_place(skill.location).path

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """The sources of installs, and the places with skills."""
        return (*self.locks.sources, *(place.path for place in self.catalog.places if place.found))

    @cached_property
    def agents(self) -> tuple[str, ...]:
        """The ids of the agents that are used on this machine; none for a library without an installer."""
        return self._library.find_agents()

    @property
    def coverage(self) -> Coverage | None:
        """Which agent has which skill; ``None`` for a library without an installer, or with a lock file in conflict.

        Links and edits of files change without a change of the catalogue. So it is found out again once ten times as
        long has passed as it took: a small library is always up to date, and a large one keeps no processor busy.
        """
        with self._lock:
            begin = time.monotonic()
            if begin >= self._coverage_until:
                self._coverage = self._find_coverage()
                end = time.monotonic()
                self._coverage_until = end + _COVERAGE_FACTOR * (end - begin)
            return self._coverage

    def find_links(self, row: SkillCoverage, agent: str) -> tuple[bool, bool]:
        """Return whether a link of a skill is recorded where an agent looks, and whether one is that agent's alone."""
        folders, locked = self._link_records[row.location]
        entry = locked.get(row.install)
        links = entry.links if entry is not None else ()
        name = link_name(row.name)
        found = [
            folder
            for folder in folders.folders_of_agent(agent)
            if folders.to_lock_path(os.path.join(folder, name)) in links
        ]
        # Many agents look in the shared folder, so a link there is not one agent's to give up.
        return bool(found), any(folder != folders.shared for folder in found)

    @cached_property
    def _link_records(self) -> dict[str, tuple[LinkFolders, LockEntries]]:
        """The folders of agents and the lock file of each scope that the installer changes, by its name."""
        from prowess.install.agent_links import LinkFolders

        installer = self._library.installer
        scopes = (installer.project, installer.user) if installer is not None else ()
        return {
            scope.location: (LinkFolders(scope), read_lock(scope.lock_folder, limits=self._library.limits))
            for scope in scopes
        }

    def _find_coverage(self) -> Coverage | None:
        try:
            return self._library.installer.coverage() if self._library.installer is not None else None
        except SkillError:
            return None

    # -- states ------------------------------------------------------------------------------------------------------

    def knows(self, attribute: str) -> bool:
        """Return whether one of the sets below that take long is found out already, by its name."""
        return attribute in self.__dict__

    def forget_states(self, skill: Skill) -> None:
        """Forget the lock state and the trust state of a skill, which are found out again from the current files.

        The page of a skill must not call files trusted that changed since, also in a console that watches nothing.
        """
        with self._lock:
            self._lock_states.pop(skill.location, None)
            self._trust_states.pop(skill.location, None)

    def find_lock_state(self, skill: Skill) -> str:
        """Return how an installed skill compares with its lock file, in words; ``""`` if it is not installed."""
        if not self.locks.has_entries:
            return ""
        with self._lock:
            if skill.location not in self._lock_states:
                self._lock_states[skill.location] = self.locks.find_state(skill)
            return self._lock_states[skill.location]

    def list_needs(self, skill: Skill) -> list[tuple[str, str, str]]:
        """Return what a skill needs: its kind, its name, and of a variable whether it is set where the console runs."""
        needs = skill.requires
        rows = [("tool", name, "") for name in needs.tools] + [("MCP server", name, "") for name in needs.servers]
        for kind, names in (("variable", needs.variables), ("optional variable", needs.optional)):
            rows += [(kind, name, "set here" if os.environ.get(name) else "not set here") for name in names]
        return rows

    def find_trust_state(self, skill: Skill) -> str:
        """Return ``trusted``, ``changed since trusted`` if an earlier state has a grant, or ``""``."""
        if self._trust is None:
            return ""
        with self._lock:
            if skill.location not in self._trust_states:
                self._trust_states[skill.location] = self._trust.find_state(skill)
            return self._trust_states[skill.location]

    def find_marks(self, skill: Skill) -> tuple[str, ...]:
        """Return the marks of a skill, as ``prowess list`` shows them."""
        marks = (
            "" if skill.model_invocable else "hidden",
            "" if skill.user_invocable else "models only",
            "repaired" if skill.repairs else "",
            self.find_trust_state(skill),
            self.find_lock_state(skill),
            "outdated" if skill.name in self.outdated else "",
        )
        return tuple(filter(None, marks))

    @cached_property
    def outdated(self) -> frozenset[str]:
        """The names of the skills whose source had something newer at the last check."""
        found = self._library.outdated or ()
        installs = {one.name for one in found if one.status == "outdated"}
        if not installs:
            return frozenset()
        entries = ((skill.name, self.locks.find_entry(skill)) for skill in self.catalog.skills)
        return frozenset(name for name, entry in entries if entry is not None and entry[0].name in installs)

    @cached_property
    def repaired(self) -> frozenset[str]:
        """The names of the skills whose frontmatter had a mistake that was repaired."""
        return frozenset(skill.name for skill in self.catalog.skills if skill.repairs)

    @cached_property
    def untrusted(self) -> frozenset[str]:
        """The names of the skills that have something to run and may not run it."""
        return frozenset(
            skill.name for skill in self.catalog.skills if can_act(skill) and self.find_trust_state(skill) != "trusted"
        )

    @cached_property
    def changed(self) -> frozenset[str]:
        """The names of the installed skills that differ from their lock file."""
        return frozenset(skill.name for skill in self.catalog.skills if self.find_lock_state(skill) == CHANGED)

    @cached_property
    def is_indexed(self) -> bool:
        """True once every skill is indexed by its words, which is done when this is first asked for."""
        self.catalog.prepare_search(semantic=False)
        return True

    # -- resemblance and cost ----------------------------------------------------------------------------------------

    @cached_property
    def lookalikes(self) -> dict[str, tuple[str, ...]]:
        """What each skill is easily confused with, by its location; both skills of a pair are in it."""
        by_path: dict[str, tuple[str, ...]] = {}
        for pair in find_similar_pairs(self.catalog.skills, self._library.limits):
            field = f"{pair.field}: " if pair.field == "description" else ""
            for skill in (pair.earlier, pair.later):
                by_path[skill.location] = (*by_path.get(skill.location, ()), field + pair.describe(skill))
        return by_path

    @cached_property
    def costs(self) -> dict[str, int]:
        """About how many tokens each skill that models see adds to a listing, by name."""
        return listing_costs(skill for skill in self.catalog.skills if skill.model_invocable)

    @cached_property
    def total_cost(self) -> int:
        """About how many tokens a listing of all skills costs that models see."""
        return sum(self.costs.values())

    @cached_property
    def costly_from(self) -> int:
        """The tokens from which a skill counts as costly; 0 where no skill is listed."""
        return round(_COSTLY_FACTOR * median(self.costs.values())) if self.costs else 0

    @cached_property
    def costly(self) -> frozenset[str]:
        """The names of the skills whose entry in a listing has at least twice the tokens of the median entry."""
        return frozenset(name for name, cost in self.costs.items() if cost >= self.costly_from)

    @cached_property
    def cost_by_place(self) -> dict[str, int]:
        """About how many tokens of a listing the skills of each place cost, by the path of the place."""
        totals: dict[str, int] = {}
        for row in self.rows:
            path = self.find_place(row.location).path
            totals[path] = totals.get(path, 0) + self.costs.get(row.name, 0)
        return totals

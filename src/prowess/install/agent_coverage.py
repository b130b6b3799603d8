"""Which agent has which skill: a matrix of the skills on this machine and the agents that look for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.files.directory import Folder, exists, stat_folder
from prowess.files.paths import is_link, is_link_to
from prowess.files.tree import digest_tree, hash_tree
from prowess.install.agent_links import LinkFolders, skill_folder
from prowess.install.installed_files import compare_files
from prowess.installed.compare import is_exact_copy
from prowess.installed.placed import PlacedTrees
from prowess.lockfile.read import read_lock
from prowess.names import SKILL_FILE, is_safe_part, link_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.installed.scopes import InstallScope, ScopeName
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

SkillState = Literal["linked", "copied", "missing", "shadowed", "edited"]
"""How an agent has a skill: by a link, as real files, not at all, hidden by another with its name, or edited."""


@dataclass(frozen=True, slots=True)
class SkillCoverage:
    """One skill: its name, its scope, the install that it belongs to (``""`` for none), and how each agent has it."""

    name: str
    location: ScopeName
    install: str
    states: Mapping[str, SkillState]
    """By the agent's id."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The ids of the agents, and the skills by name; with the same name the project's is before the user's."""

    agents: tuple[str, ...]
    skills: tuple[SkillCoverage, ...]


def find_coverage(scopes: Sequence[InstallScope], agents: Sequence[str], limits: Limits) -> Coverage:
    """Return the matrix for some agents and for all that skills are installed for; of ``scopes`` the first one wins."""
    views = [_ScopeView(scope, read_lock(scope.lock_folder, limits=limits), limits) for scope in scopes]
    installed_for = {agent for view in views for entry in view.locked.values() for agent in entry.agents}
    columns = tuple(sorted({*agents, *(installed_for & AGENTS.keys())}))
    rows: list[SkillCoverage] = []
    for rank, view in enumerate(views):
        for skill in view.find_skills(columns):
            states = {agent: _state_for(skill, agent, views[: rank + 1]) for agent in columns}
            rows.append(SkillCoverage(skill.name, view.scope.location, skill.install, states))
    return Coverage(columns, tuple(sorted(rows, key=lambda row: (row.name, row.location))))


class _ScopeSkill(NamedTuple):
    """A skill of one scope, with its lock entry, or, when nobody installed it, with the first folder that has it."""

    name: str
    link: str
    """The name of its folder where agents look."""
    entry: LockEntry | None = None
    first_path: str = ""

    @property
    def install(self) -> str:
        return self.entry.name if self.entry is not None else ""


def _state_for(skill: _ScopeSkill, agent: str, views: Sequence[_ScopeView]) -> SkillState:
    """Return how an agent has a skill of the last scope; a skill with its name in an earlier scope shadows it."""
    *before, view = views
    path = view.find_path(agent, skill.link)
    state = view.state_at(path, skill) if path else "missing"
    if state == "missing":
        return state
    paths = (earlier.find_path(agent, skill.link) for earlier in before)
    winner = next((path for path in paths if path), "")
    # A copy of equal files hides nothing: the agent gets the skill.
    return "shadowed" if winner and not view.has_same_files(winner, path) else state


class _ScopeView:
    """What the agents see of one scope; every folder is read once."""

    def __init__(self, scope: InstallScope, locked: LockEntries, limits: Limits) -> None:
        self.scope, self.locked, self._limits = scope, locked, limits
        self._link_folders = LinkFolders(scope)
        self._digests: dict[str, str] = {}
        self._differing: dict[str, list[str]] = {}
        # Many agents look in one folder, so what is found out about a folder or a file is kept.
        self._states: dict[tuple[str, str], SkillState] = {}

    def find_skills(self, agents: Sequence[str]) -> Iterator[_ScopeSkill]:
        """Yield the skills of the lock file, then those where the agents look that are in no lock file."""
        recorded: set[str] = set()
        for entry in self.locked.values():
            recorded.update(os.path.basename(link) for link in entry.links)
            for name in entry.skills:
                if link := link_name(name):
                    yield _ScopeSkill(name, link, entry)
        unrecorded: dict[str, str] = {}
        homes = (folder for agent in agents for folder in self._link_folders.folders_of_agent(agent))
        for folder in dict.fromkeys((self._link_folders.shared, *homes)):
            for name in _skill_names_in(folder):
                unrecorded.setdefault(name, os.path.join(folder, name))
        for name, path in unrecorded.items():
            if name not in recorded:
                yield _ScopeSkill(name, name, first_path=path)

    def find_path(self, agent: str, link: str) -> str:
        """Return the path at which an agent finds a skill with that name in this scope; ``""`` when it finds none."""
        paths = (os.path.join(folder, link) for folder in self._link_folders.folders_of_agent(agent))
        return next((path for path in paths if exists(path)), "")

    def state_at(self, path: str, skill: _ScopeSkill) -> SkillState:
        """Return the state of a skill at a path where an entry is."""
        if (path, skill.install) not in self._states:
            self._states[path, skill.install] = self._compute_state(path, skill)
        return self._states[path, skill.install]

    def _compute_state(self, path: str, skill: _ScopeSkill) -> SkillState:
        if skill.entry is None:
            if stat_folder(path) is None:
                return "missing"  # the link leads nowhere
            if not self.has_same_files(path, skill.first_path):
                return "shadowed"
            return "linked" if is_link(path) else "copied"
        if is_link(path):
            return self._link_state(path, skill.entry)
        if is_exact_copy(skill.entry, path, self._limits):
            return "copied"
        return "edited" if self._link_folders.to_lock_path(path) in skill.entry.links else "shadowed"

    def _link_state(self, path: str, entry: LockEntry) -> SkillState:
        folder = entry.folder_for_link(os.path.basename(path))
        if stat_folder(path) is None:
            return "missing"
        # An install in copy mode has no folder to link to, so any link there is somebody else's.
        if entry.is_copied or not is_link_to(path, skill_folder(self.scope, entry.name, folder)):
            return "shadowed"
        # An edit of one skill of an install does not make its other skills edited.
        within = f"{folder}/" if folder else ""
        return "edited" if any(file.startswith(within) for file in self._find_edits(entry)) else "linked"

    def _find_edits(self, entry: LockEntry) -> list[str]:
        """Return the paths of the files of an install that somebody changed."""
        if entry.name not in self._differing:
            rows = compare_files(entry, self._link_folders, self._limits, PlacedTrees(self.scope.base, self._limits))
            self._differing[entry.name] = [row.path for row in rows if row.is_edit]
        return self._differing[entry.name]

    def has_same_files(self, first: str, second: str) -> bool:
        """Return whether two folders are one, or hold equal files."""
        is_one = os.path.realpath(first) == os.path.realpath(second)  # nothing has to be hashed then
        return is_one or self._digest_of(first) == self._digest_of(second)

    def _digest_of(self, path: str) -> str:
        real = os.path.realpath(path)
        if real not in self._digests:
            self._digests[real] = digest_tree(hash_tree(real, self._limits).files)
        return self._digests[real]


def _skill_names_in(folder: str) -> list[str]:
    """The names of the folders, and of the links to folders, that hold a SKILL.md in a folder where an agent looks."""
    if stat_folder(folder) is None:
        return []
    with Folder(folder) as opened:
        entries = opened.list_entries()
    names = (name for name in (*entries.folders, *entries.links) if is_safe_part(name) and not name.startswith("."))
    return sorted(name for name in names if os.path.isfile(os.path.join(folder, name, SKILL_FILE)))

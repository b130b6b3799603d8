"""The page "Changes", with the changes that the user can make and their plans, and the page of one plan."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from prowess.discovery.agents import AGENTS
from prowess.errors import SkillError
from prowess.files.paths import shorten_path
from prowess.web.plans import PLAN_KINDS
from prowess.web.skill_rows import make_skill_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.conversation.acting.trust import Grant
    from prowess.install.outdated import Outdated
    from prowess.web.change_feed import ChangeFeed, FeedEntry
    from prowess.web.library import Library
    from prowess.web.library_state import LibraryState
    from prowess.web.plans import ChangePlan, PlanBook


_MAX_NAMES = 20
"""Names of one change that the page shows."""
_MAX_INSTALLS = 500
"""Installs that the field for one of them suggests."""


class FeedLine(NamedTuple):
    """What happened to some skills at one time: the word for it, the first names with their ids, and how many more."""

    time: float
    what: str
    skills: Sequence[tuple[str, str]]
    """The id and the name of each; the id is ``""`` for a skill that has no page any more."""
    more: int = 0


class ScopeChoice(NamedTuple):
    """A scope that installs go to: its name, and where its lock file is."""

    name: str
    path: str
    is_in_conflict: bool


@dataclass(frozen=True, slots=True)
class ChangesView:
    """What the page shows."""

    feed: Sequence[FeedLine]
    is_live: bool
    """Whether the library follows the files."""
    plans: Sequence[ChangePlan]
    has_installer: bool
    scopes: Sequence[ScopeChoice] = ()
    default_scope: str = "project"
    """The scope that the command line would mean where the console runs."""
    agents: Sequence[tuple[str, str]] = ()
    """The agents on this machine, by id and title."""
    installs: Sequence[str] = ()
    outdated: Sequence[Outdated] | None = None
    """The installs whose source had something newer at the last check; ``None`` before the first one."""
    grants: Sequence[Grant] = ()
    problems: Sequence[str] = ()


def make_changes_view(
    library: Library,
    parameters: Mapping[str, str],  # noqa: ARG001 - as every page
    *,
    plans: PlanBook,
    feed: ChangeFeed,
) -> ChangesView:
    """Return what the page shows. ``plans`` and ``feed`` are those of the console."""
    entries = feed.refresh()
    state = library.state
    lines = [line for entry in entries for line in _make_lines(entry, state)]
    installer = library.installer
    made = plans.list_plans()
    problems = [*_list_problems(library, state), *filter(None, [plans.problem])]
    grants: Sequence[Grant] = ()
    try:
        grants = library.trust.grants() if library.trust is not None else ()
    except SkillError as error:
        problems.append(error.message)
    if installer is None:
        return ChangesView(lines, library.is_live, made, has_installer=False, grants=grants, problems=problems)
    torn = {os.path.dirname(error.path) for error in state.locks.lock_errors if error.code == "lock-conflict"}
    found = library.outdated
    return ChangesView(
        lines,
        library.is_live,
        made,
        has_installer=True,
        scopes=[
            ScopeChoice(scope.location, scope.lock_folder, scope.lock_folder in torn)
            for scope in (installer.project, installer.user)
        ],
        default_scope=installer.default_location,
        agents=[(agent, AGENTS[agent].title) for agent in state.agents],
        installs=[install.full_name for install in installer.list()[:_MAX_INSTALLS]],
        outdated=None if found is None else [one for one in found if one.status == "outdated"],
        grants=grants,
        problems=problems,
    )


def _list_problems(library: Library, state: LibraryState) -> Sequence[str]:
    if library.installer is None:
        return []
    errors = [f"{shorten_path(error.path)}: {error.message}" for error in state.locks.lock_errors]
    return errors + [f"{shorten_path(issue.path)}: {issue.message}" for issue in state.locks.interrupted_changes]


def _make_lines(entry: FeedEntry, state: LibraryState) -> list[FeedLine]:
    if not entry.has_names:
        what = "a lock file or a grant changed" if entry.is_about_records else "a file beside a SKILL.md changed"
        return [FeedLine(entry.time, what, ())]
    kinds = (("added", entry.added), ("changed", entry.changed), ("removed", entry.removed))
    return [
        FeedLine(
            entry.time,
            what,
            [(make_skill_id(name) if name in state.catalog else "", name) for name in names[:_MAX_NAMES]],
            max(0, len(names) - _MAX_NAMES),
        )
        for what, names in kinds
        if names
    ]


@dataclass(frozen=True, slots=True)
class _PlanView:
    """What the page shows: the plan, the action that its forms need, and the form that asks for it again."""

    plan: ChangePlan
    action: str
    again: Sequence[tuple[str, str]]
    """The fields of a form that makes the same plan anew."""

    @property
    def details(self) -> object:
        """What the kind of the plan shows beside its steps; ``None`` before it is prepared."""
        return self.plan.change.details if self.plan.change is not None else None

    @property
    def steps(self) -> Sequence[str]:
        """What would be done, a sentence each."""
        return self.plan.change.steps if self.plan.change is not None else ()


def make_plan_view(library: Library, parameters: Mapping[str, str], *, plans: PlanBook) -> _PlanView:  # noqa: ARG001 - as every page
    """Return what the page shows for the plan with the id in the address; raise ``UnknownPlanError`` for none."""
    plan = plans.get(parameters["id"])
    return _PlanView(plan, PLAN_KINDS[plan.kind].action, [("kind", plan.kind), *plan.fields.items()])

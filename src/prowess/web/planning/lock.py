"""A lock file that git left in conflict, merged entry by entry."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from prowess.errors import Issue, SkillError
from prowess.files.paths import shorten_path
from prowess.install.lock_sides import find_sides, write_merged_lock
from prowess.lockfile.merge import find_shared_links
from prowess.lockfile.read import LOCK_FILE, parse_lock
from prowess.web.planning.file_states import read_file_states
from prowess.web.planning.prepared import Fields, PreparedChange, choose_scope, require_installer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from prowess.install.lock_sides import LockSides, Owner
    from prowess.limits import Limits
    from prowess.lockfile.scopes import InstallScope
    from prowess.web.library import Library

_OWNERS = ("mine", "theirs")
_NO_BASE = "the markers do not say what both sides began with, so everything that either side has is kept"


@dataclass(frozen=True, slots=True)
class EntryConflict:
    """An entry that both sides changed: its name, the version of each side, and the field of the form that decides."""

    name: str
    mine: str
    theirs: str
    field: str


def prepare_merge(library: Library, fields: Fields) -> PreparedChange:
    """Return the merge of a scope's lock file; where both sides changed an entry, after a choice for each.

    Raises ``InstallError`` (``torn-conflict``) where the markers do not give two lock files.
    """
    scope = choose_scope(require_installer(library), fields)
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    states = read_file_states([path], library.limits)
    sides = find_sides(scope, library.limits)
    if sides is None:
        return PreparedChange(states={}, idle_text=f"Nothing to do: {LOCK_FILE} is in no conflict.")
    merge = _LockMergePlan(library.limits, scope, sides, path, states)
    conflicts = merge.list_conflicts()
    if not conflicts:
        return merge.make_change({})
    return PreparedChange(
        states={},
        choose=lambda chosen: merge.make_change(_read_choices(chosen, conflicts)),
        details=tuple(conflicts),
    )


def _read_choices(chosen: Fields, conflicts: Sequence[EntryConflict]) -> dict[str, Owner]:
    undecided = [conflict.name for conflict in conflicts if chosen.get(conflict.field) not in _OWNERS]
    if undecided:
        raise SkillError(f"choose a side for {', '.join(undecided)} as well", code="bad-argument")
    return {conflict.name: cast("Owner", chosen.get(conflict.field)) for conflict in conflicts}


@dataclass(frozen=True, slots=True)
class _LockMergePlan:
    limits: Limits
    scope: InstallScope
    sides: LockSides
    path: str
    states: Mapping[str, str]
    """The state of the lock file before its sides were read."""

    def list_conflicts(self) -> list[EntryConflict]:
        return [
            EntryConflict(conflict.name, *self.sides.order_versions(conflict), f"side-{number}")
            for number, conflict in enumerate(self.sides.merge().conflicts)
        ]

    def make_change(self, choices: dict[str, Owner]) -> PreparedChange:
        merged = self.sides.merge(choices)
        entries = parse_lock(merged.text)

        def write_lock() -> list[str]:
            write_merged_lock(self.scope, self.sides, merged.text, self.limits)
            done = f"Merged {shorten_path(self.path)}: it records {len(entries)} installed"
            return [done, f"Next: 'git add {LOCK_FILE}', and a sync once the merge is done"]

        issues = [
            Issue(
                "name-taken", "", f"{' and '.join(names)} both link {link}: keep one of them", self.path, 0, "warning"
            )
            for link, names in find_shared_links(entries).items()
        ]
        # Without a base, what one side removed looks like what the other side added.
        if not self.sides.is_base_known:
            issues.append(Issue("lock-conflict", "", _NO_BASE, self.path, 0, "warning"))
        return PreparedChange(
            steps=[
                *(f"take {'my' if owner == 'mine' else 'their'} version of {name}" for name, owner in choices.items()),
                f"write {shorten_path(self.path)} with {len(entries)} installed, and without conflict markers",
            ],
            read_states=lambda: read_file_states([self.path], self.limits),
            states=self.states,
            apply=write_lock,
            issues=lambda: issues,
        )

"""A lock file that git left in conflict, merged entry by entry."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prowess.changes.change import Change, idle_change, read_file_states
from prowess.errors import Issue
from prowess.files.paths import shorten_path
from prowess.install.lock_sides import find_sides, write_merged_lock
from prowess.lockfile.merge import find_shared_links
from prowess.lockfile.read import LOCK_FILE, parse_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from prowess.install.lock_sides import LockSides, Owner
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.merge import LockMerge
    from prowess.lockfile.read import LockEntries

OWNERS: tuple[Owner, Owner] = ("mine", "theirs")
_NO_BASE = "the markers do not say what both sides began with, so everything that either side has is kept"


@dataclass(frozen=True, slots=True)
class MergeDetails:
    """The two sides of a lock file, and what both of them changed."""

    sides: LockSides
    merged: LockMerge
    """The merge of both sides; its conflicts are what nobody has decided yet."""

    @property
    def conflicts(self) -> list[tuple[str, str, str]]:
        """The name of each entry that both sides changed, with the version of my side and of theirs."""
        return [(conflict.name, *self.sides.order_versions(conflict)) for conflict in self.merged.conflicts]


def prepare_merge(scope: InstallScope, limits: Limits) -> Change[Any]:
    """Return the merge of a scope's lock file; where both sides changed an entry, after a choice of an owner for each.

    Raises ``InstallError`` (``torn-conflict``) where the markers do not give two lock files.
    """
    path = os.path.join(scope.lock_folder, LOCK_FILE)
    # Before its sides are read, so that no change between the two goes unnoticed.
    states = read_file_states([path], limits)
    sides = find_sides(scope, limits)
    if sides is None:
        return idle_change(idle_text=f"Nothing to do: {LOCK_FILE} is in no conflict.")

    def choose(choices: Mapping[str, Owner]) -> Change[Sequence[str]]:
        merged = sides.merge(choices)
        entries = parse_lock(merged.text)

        def write_lock() -> list[str]:
            write_merged_lock(scope, sides, merged.text, limits)
            done = f"Merged {shorten_path(path)}: it records {len(entries)} installed"
            return [done, f"Next: 'git add {LOCK_FILE}', and a sync once the merge is done"]

        return Change(
            steps=[
                *(f"take {'my' if owner == 'mine' else 'their'} version of {name}" for name, owner in choices.items()),
                f"write {shorten_path(path)} with {len(entries)} installed, and without conflict markers",
            ],
            read_states=lambda: read_file_states([path], limits),
            states=states,
            apply=write_lock,
            describe=list,
            details=MergeDetails(sides, merged),
            issues=lambda: [*find_link_issues(entries, path), *_find_base_issue(sides, path)],
        )

    merged = sides.merge()
    return idle_change(choose=choose, details=MergeDetails(sides, merged)) if merged.conflicts else choose({})


def find_link_issues(entries: LockEntries, path: str) -> Iterator[Issue]:
    """Yield a warning for installs that link one path, where only a single link can be."""
    for link, names in find_shared_links(entries).items():
        message = f"{' and '.join(names)} both link {link}: keep one of them, with 'prowess remove NAME'"
        yield Issue("name-taken", "", message, path, 0, "warning")


def _find_base_issue(sides: LockSides, path: str) -> Iterator[Issue]:
    # Without a base, what one side removed looks like what the other side added.
    if not sides.is_base_known:
        yield Issue("lock-conflict", "", _NO_BASE, path, 0, "warning")

"""A lock file that git left in conflict, merged entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from prowess.changes.merge import OWNERS, prepare_merge
from prowess.errors import SkillError
from prowess.web.planning.fields import Fields, choose_scope, require_installer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.changes.change import Change
    from prowess.install.lock_sides import Owner
    from prowess.web.library import Library


@dataclass(frozen=True, slots=True)
class EntryConflict:
    """An entry that both sides changed: its name, the version of each side, and the field of the form that decides."""

    name: str
    mine: str
    theirs: str
    field: str


def prepare_lock_merge(library: Library, fields: Fields) -> Change[Any]:
    """Return the merge of a scope's lock file; where both sides changed an entry, after a choice for each."""
    change = prepare_merge(choose_scope(require_installer(library), fields), library.limits)
    choose = change.choose
    if choose is None:
        return replace(change, details=None)
    conflicts = [
        EntryConflict(name, mine, theirs, f"side-{number}")
        for number, (name, mine, theirs) in enumerate(change.details.conflicts)
    ]
    return replace(change, choose=lambda chosen: choose(_read_choices(chosen, conflicts)), details=tuple(conflicts))


def _read_choices(chosen: Fields, conflicts: Sequence[EntryConflict]) -> dict[str, Owner]:
    undecided = [conflict.name for conflict in conflicts if chosen.get(conflict.field) not in OWNERS]
    if undecided:
        raise SkillError(f"choose a side for {', '.join(undecided)} as well", code="bad-argument")
    return {conflict.name: cast("Owner", chosen.get(conflict.field)) for conflict in conflicts}

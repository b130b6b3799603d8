"""What a new catalogue changes for a conversation that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.library.catalog import Catalog
    from prowess.library.skill import Skill
    from prowess.runtime.activation import Active


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a new catalogue changed, by name; ``vanished`` are the active skills that it no longer has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


def difference(old: Catalog, new: Catalog, active: Mapping[str, Active]) -> Refreshed:
    """What differs between two catalogues, and between the new one and what is active."""
    before, after = set(old.names), set(new.names)
    changed = {name for name in before & after if has_changed(old[name], new[name])}
    changed |= {n for n in active.keys() & after if not active[n].gone and has_changed(active[n].loaded.skill, new[n])}
    return Refreshed(
        tuple(sorted(after - before)),
        tuple(sorted(before - after)),
        tuple(sorted(changed)),
        tuple(sorted(active.keys() - after)),
    )


def carried_over(active: Mapping[str, Active], new: Catalog, report: Refreshed) -> dict[str, Active]:
    """The active skills under a new catalogue: each with whether it is gone, or to be loaded again."""
    return {name: _carried(name, entry, new, report) for name, entry in active.items()}


def _carried(name: str, entry: Active, new: Catalog, report: Refreshed) -> Active:
    gone = name not in new
    stale = entry.stale or name in report.changed or (entry.gone and not gone)
    return entry._replace(gone=gone, stale=stale and not gone)


def has_changed(one: Skill, other: Skill) -> bool:
    """Whether two skills of one name may differ; files are compared by their state, not read."""
    if one is other:
        return False
    if one.is_inline and other.is_inline:
        return one.frontmatter != other.frontmatter or one.read_body() != other.read_body()
    return (one.location, one.state) != (other.location, other.state)

"""What a new catalogue changes for a conversation that goes on."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, ref

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.runtime.activation import ActiveSkill
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a new catalogue changed, by name; ``vanished`` are the active skills that it no longer has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


class _CatalogDifference(NamedTuple):
    """What differs between two catalogues, by name."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: frozenset[str]


_cache_lock = Lock()
_difference_cache: WeakKeyDictionary[Catalog, tuple[ref[Catalog], _CatalogDifference]] = WeakKeyDictionary()
"""The last difference to each new catalogue: a reload is compared once, not by each of 10,000 sessions."""


def compare_catalogs(old: Catalog, new: Catalog, active: Mapping[str, ActiveSkill]) -> Refreshed:
    """What differs between two catalogues, and between the new one and what is active."""
    between = _find_difference(old, new)
    edited = {
        name
        for name, entry in active.items()
        if name in new and not entry.gone and may_differ(entry.loaded.skill, new[name])
    }
    vanished = sorted(name for name in active if name not in new)
    return Refreshed(between.added, between.removed, tuple(sorted(between.changed | edited)), tuple(vanished))


def _find_difference(old: Catalog, new: Catalog) -> _CatalogDifference:
    with _cache_lock:
        known = _difference_cache.get(new)
        if known is not None and known[0]() is old:
            return known[1]
    before, after = set(old.names), set(new.names)
    changed = frozenset(name for name in before & after if may_differ(old[name], new[name]))
    between = _CatalogDifference(tuple(sorted(after - before)), tuple(sorted(before - after)), changed)
    with _cache_lock:
        _difference_cache[new] = (ref(old), between)
    return between


def update_entries(active: Mapping[str, ActiveSkill], new: Catalog, report: Refreshed) -> dict[str, ActiveSkill]:
    """The active skills under a new catalogue: each with whether it is gone, or to be loaded again."""
    return {name: _update_entry(name, entry, new, report) for name, entry in active.items()}


def _update_entry(name: str, entry: ActiveSkill, new: Catalog, report: Refreshed) -> ActiveSkill:
    gone = name not in new
    stale = entry.stale or name in report.changed or (entry.gone and not gone)
    return entry._replace(gone=gone, stale=stale and not gone)


def may_differ(one: Skill, other: Skill) -> bool:
    """Whether two skills of one name may differ; files are compared by their state, not read."""
    if one is other:
        return False
    if one.is_inline and other.is_inline:
        return one.frontmatter != other.frontmatter or one.read_body() != other.read_body()
    return (one.location, one.state) != (other.location, other.state)

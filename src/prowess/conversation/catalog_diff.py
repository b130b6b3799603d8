"""The differences between two catalogues, and between a catalogue and the active skills of a conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import ref

from prowess.conversation.moment import CatalogCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.conversation.activation import ActiveSkill
    from prowess.skills.catalog import Catalog
    from prowess.skills.skill import Skill


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a new catalogue changed, by name; ``vanished`` are the active skills that it no longer has."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()


# Every session of a server sees the same reload, so the last difference to each new catalogue is kept: it is computed
# once, not by each of 10,000 sessions.
_DIFFERENCES: CatalogCache[Refreshed] = CatalogCache()


def compare_catalogs(old: Catalog, new: Catalog, active: Mapping[str, ActiveSkill]) -> Refreshed:
    """Return what differs between two catalogues, and between the new one and the active skills."""
    # Weak, since the old catalogue may not live on because of this.
    between = _DIFFERENCES.find(new, key := ref(old))
    if between is None:
        before, after = set(old.names), set(new.names)
        changed = tuple(name for name in before & after if may_differ(old[name], new[name]))
        between = Refreshed(tuple(sorted(after - before)), tuple(sorted(before - after)), changed)
        _DIFFERENCES.store(new, key, between, limit=1)
    # An active skill may have been loaded from a catalogue before ``old``, or after its file was edited.
    edited = {
        name
        for name, entry in active.items()
        if name in new and not entry.gone and may_differ(entry.loaded.skill, new[name])
    }
    vanished = sorted(name for name in active if name not in new)
    return replace(between, changed=tuple(sorted(edited.union(between.changed))), vanished=tuple(vanished))


def update_entries(active: Mapping[str, ActiveSkill], new: Catalog, report: Refreshed) -> dict[str, ActiveSkill]:
    """Return the active skills, each with whether the new catalogue has lost it or has another state of it."""
    entries = {}
    for name, entry in active.items():
        gone = name not in new
        # A skill that comes back after it was gone is loaded again, since nothing was compared meanwhile.
        stale = entry.stale or name in report.changed or entry.gone
        entries[name] = entry._replace(gone=gone, stale=stale and not gone)
    return entries


def may_differ(old: Skill, new: Skill) -> bool:
    """Return whether two skills with the same name may differ; files are compared by their state, and not read."""
    if old is new:
        return False
    # An inline skill has no file whose state could be compared, but its text is in memory.
    if old.is_inline and new.is_inline:
        return old.frontmatter != new.frontmatter or old.read_body() != new.read_body()
    return (old.location, old.state) != (new.location, new.state)

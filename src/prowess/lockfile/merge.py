"""``merge_locks``: two versions of a lock file made one, entry by entry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from prowess.errors import InstallError
from prowess.lockfile.conflicts import split_conflict
from prowess.lockfile.read import parse_lock
from prowess.lockfile.write import EMPTY_LOCK_TEXT, lock_entry_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.lockfile.read import LockEntries, LockEntry

Side = Literal["ours", "theirs"]
_SHOWN_DIGITS = 12
_NO_LINKS: dict[str, Any] = {"agents": (), "links": (), "copies": ()}
"""The fields of an entry that say for whom it is linked, which is no part of what is installed."""
_AS_INSTALLED: dict[str, Any] = {**_NO_LINKS, "declared": ""}
"""These, and what declares it: an entry of the manifest with several skills changes when one of the others moves."""


@dataclass(frozen=True, slots=True)
class LockConflict:
    """One entry that both sides changed, each in its own way."""

    name: str
    """``org/name``, as the lock file has it."""
    ours: str
    """The version that our side has, for people; ``""`` where our side removed the entry."""
    theirs: str
    """The version that the other side has, for people; ``""`` where that side removed the entry."""


@dataclass(frozen=True, slots=True)
class LockMerge:
    """What came of merging two lock files."""

    text: str
    """The merged lock file. Where there are conflicts, both versions of such an entry stand in it between git's
    markers, so that no command takes it for a whole one."""
    conflicts: tuple[LockConflict, ...]
    """The entries that somebody has to choose a side for, by name."""


def merge_locks(base: str, ours: str, theirs: str, *, choices: Mapping[str, Side] | None = None) -> LockMerge:
    """Merge two texts of a lock file that both began as ``base``, entry by entry.

    An entry that one side alone changed, added or removed is taken as that side has it. Where both changed it
    differently, or one changed and the other removed it, that is a conflict, unless ``choices`` has its name and the
    side to take. Links that one side made or took away are no conflict with an update by the other, and neither is how
    the manifest declares an entry. A text may be
    empty: a lock file that was not there. Raises ``InstallError`` (``bad-lock``, ``lock-conflict``), which says which
    of the three texts it is, for one that is no lock file.
    """
    sides = [
        _entries_by_key(locked) for locked in (_read_base(base), _read_side(ours, "ours"), _read_side(theirs, "theirs"))
    ]
    chosen = {name.lower(): side for name, side in (choices or {}).items()}
    rows: list[tuple[str, str]] = []
    conflicts: list[LockConflict] = []
    for key in sides[0].keys() | sides[1].keys() | sides[2].keys():
        before, mine, other = (side.get(key) for side in sides)
        name = next(entry.name for entry in (mine, other, before) if entry is not None)
        if None in (mine, other) and before is not None:  # removed by one: how the other declares it does not matter
            mine, other = _ignoring_declaration(mine, before), _ignoring_declaration(other, before)
        if other in (mine, before) or chosen.get(key) == "ours":
            rows.append((name, _entry_text(mine)))
        elif mine == before or chosen.get(key) == "theirs":
            rows.append((name, _entry_text(other)))
        elif (linked := _merge_links(before, mine, other)) is not None:
            rows.append((name, _entry_text(linked)))
        else:
            conflicts.append(LockConflict(name, _describe_entry(mine, other), _describe_entry(other, mine)))
            rows.append((name, _with_conflict_markers(before, mine, other)))
    text = EMPTY_LOCK_TEXT + "".join(f"\n{row}" for _, row in sorted(rows) if row)
    return LockMerge(text, tuple(sorted(conflicts, key=lambda conflict: conflict.name)))


def _entries_by_key(locked: LockEntries) -> dict[str, LockEntry]:
    """Entries by name without its case: a lock file that has one name in two cases is refused when it is read."""
    return {name.lower(): entry for name, entry in locked.items()}


def _read_side(text: str, side: str) -> LockEntries:
    return parse_lock(text, side) if text.strip() else {}


def _read_base(text: str) -> LockEntries:
    """What both sides began with.

    Two branches with several common ancestors have a base that git made by merging these, and that may be in conflict
    itself: then only the entries count that both of its sides have alike, and the rest is told by our two sides.
    """
    try:
        return _read_side(text, "base")
    except InstallError as error:
        if error.code != "lock-conflict":
            raise
    inner = split_conflict(text)
    if inner is None:
        raise _torn_base_error("its markers do not pair")
    try:
        one, two = _read_side(inner.ours, "base"), _read_side(inner.theirs, "base")
    except InstallError as error:
        raise _torn_base_error(error.message) from None
    return {name: entry for name, entry in one.items() if two.get(name) == entry}


def _torn_base_error(why: str) -> InstallError:
    return InstallError(f"what both sides began with is in conflict itself: {why}", "base", "torn-conflict")


def _merge_links(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> LockEntry | None:
    """The entry that one side alone updated, or none, with the links as both sides together changed them.

    ``None`` where one side removed it, where both updated it, and where the update has other skills: which links these
    would have, nobody can tell.
    """
    if ours is None or theirs is None:
        return None
    before, mine, other = (None if entry is None else replace(entry, **_AS_INSTALLED) for entry in (base, ours, theirs))
    if mine != other and before not in (mine, other):
        return None
    newer, older = (theirs, ours) if mine == before else (ours, theirs)
    if newer.declared == (base.declared if base is not None else ""):
        newer = replace(newer, declared=older.declared)
    if ours.skills.keys() != theirs.skills.keys():
        return newer if _link_values(older) == _link_values(base) else None
    merged: dict[str, Any] = {
        key: _merge_sets(*(getattr(side, key, ()) for side in (base, ours, theirs))) for key in _NO_LINKS
    }
    return replace(newer, **merged)


def _ignoring_declaration(entry: LockEntry | None, base: LockEntry) -> LockEntry | None:
    """The base itself for an entry that only the manifest declares otherwise; any other entry as it is."""
    return base if entry is not None and replace(entry, declared=base.declared) == base else entry


def _link_values(entry: LockEntry | None) -> list[tuple[str, ...]]:
    return [getattr(entry, key, ()) for key in _NO_LINKS]


def _merge_sets(base: Iterable[str], ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """What both sides have, and what either added."""
    before, mine, other = set(base), set(ours), set(theirs)
    return tuple(sorted((mine & other) | (mine - before) | (other - before)))


def _entry_text(entry: LockEntry | None) -> str:
    return "" if entry is None else lock_entry_text(entry)


def _with_conflict_markers(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> str:
    """The versions of one entry between markers, in git's style ``diff3``."""
    first = f"<<<<<<< ours\n{_entry_text(ours)}||||||| base\n{_entry_text(base)}"
    return f"{first}=======\n{_entry_text(theirs)}>>>>>>> theirs\n"


def _describe_entry(entry: LockEntry | None, other: LockEntry | None) -> str:
    """The version of an entry for people, with its source and its place in the manifest where the other has another."""
    if entry is None:
        return ""
    source = f"{entry.source} at " if other is not None and other.source != entry.source else ""
    declared = f", in the manifest as {entry.declared}" if entry.declared else ", not in the manifest"
    differs = other is not None and other.declared != entry.declared
    return f"{source}{_describe_version(entry)}{declared if differs else ''}"


def _describe_version(entry: LockEntry) -> str:
    """What was asked for, and what it was then."""
    exact = f"commit {entry.commit[:_SHOWN_DIGITS]}" if entry.commit else f"digest {entry.digest[:_SHOWN_DIGITS]}"
    return f"{entry.ref}, {exact}" if entry.ref and entry.ref != entry.commit else exact


def find_shared_links(locked: LockEntries) -> dict[str, tuple[str, ...]]:
    """The places that more than one entry records as its link, each with the names of those entries.

    Two people who installed a skill of one name from two sources come to that: git and the merge see two entries.
    """
    names: dict[str, list[str]] = {}
    for name, entry in locked.items():
        for link in entry.links:
            names.setdefault(link, []).append(name)
    return {link: tuple(several) for link, several in names.items() if len(several) > 1}


def wrap_in_markers(ours: str, theirs: str) -> str:
    """Both texts as a whole between git's markers, for those that cannot be merged entry by entry."""
    first, second = (text if not text or text.endswith("\n") else f"{text}\n" for text in (ours, theirs))
    return f"<<<<<<< ours\n{first}=======\n{second}>>>>>>> theirs\n"

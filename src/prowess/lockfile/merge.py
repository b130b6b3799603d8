"""The merge of two versions of a lock file, entry by entry, and the conflict markers that git leaves in one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from prowess.errors import InstallError
from prowess.lockfile.read import LockFile, parse_lock_file
from prowess.lockfile.write import EMPTY_LOCK_TEXT, lock_entry_text, with_line_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from prowess.lockfile.read import LockEntries, LockEntry


Side = Literal["ours", "theirs"]
_SHOWN_DIGITS = 12
_NO_LINKS: dict[str, Any] = {"agents": (), "extra_agents": (), "links": (), "copies": ()}
"""The fields that say for which agents an entry is linked, emptied: they are not part of what is installed."""
_AS_INSTALLED: dict[str, Any] = {**_NO_LINKS, "declared": "", "unknown": ()}
"""The fields to ignore when two installs are compared: also how the manifest declares the entry, and what only another
version of Prowess knows about it."""
_OTHER_DECLARATION = "another declaration of its source"


@dataclass(frozen=True, slots=True)
class LockConflict:
    """One entry that both sides changed differently, so that a person has to choose."""

    name: str
    """``org/name``, as the lock file has it."""
    ours: str
    """The version that our side has, for people; ``""`` where our side removed the entry. Where our side never had it,
    but changed the declaration that it belongs to, this says so."""
    theirs: str
    """The same of the other side."""


@dataclass(frozen=True, slots=True)
class LockMerge:
    """The result of merging two lock files."""

    text: str
    """The merged lock file. Where there are conflicts, both versions of such an entry are in it between git's
    markers, so that no command takes it for a whole one."""
    conflicts: tuple[LockConflict, ...]
    """The entries for which somebody has to choose a side, by name."""


def merge_locks(
    base: str,
    ours: str,
    theirs: str,
    *,
    choices: Mapping[str, Side] | None = None,
    labels: tuple[str, str] = ("ours", "theirs"),
) -> LockMerge:
    """Merge two versions of a lock file that both began as ``base``, entry by entry.

    An entry that one side alone changed, added or removed is taken as that side has it. Where both changed it
    differently, or one changed and the other removed it, that is a conflict, unless ``choices`` has its name and the
    side to take. So is an entry that one side added to a declaration of the manifest that the other side changed: both
    changes of the manifest merge, and ask for something that neither side has installed. Links that one side made or
    took away do not conflict with an update by the other, and neither is how the manifest declares an entry. Nor are
    two commits with the same files: both sides updated, and the source had gone on between.

    ``labels`` name the two sides in the markers. A text may be empty: a lock file that was not there. Fields that this
    version does not know are merged like the others; where both sides changed one of the file itself, ours counts.
    Raises ``InstallError`` (``bad-lock``, ``newer-lock``, ``lock-conflict``) that names the side that is not a lock
    file.
    """
    files = (_read_base(base), _read_side(ours, "ours"), _read_side(theirs, "theirs"))
    # By lower-case name: two entries whose names differ only in case cannot be in one lock file.
    sides = [{name.lower(): entry for name, entry in file.entries.items()} for file in files]
    declarations = _Declarations(*({_declaration_of(entry) for entry in side.values()} for side in sides))
    chosen = {name.lower(): side for name, side in (choices or {}).items()}
    rows: list[tuple[str, str]] = []
    conflicts: list[LockConflict] = []
    for key in sides[0].keys() | sides[1].keys() | sides[2].keys():
        versions = _EntryVersions(*(side.get(key) for side in sides))
        row, conflict = _merge_entry(versions, chosen.get(key), declarations, labels)
        rows.append((versions.name, row))
        if conflict is not None:
            conflicts.append(conflict)
    unknown = _merge_fields(*(file.unknown for file in files))
    head = EMPTY_LOCK_TEXT + "".join(f"{row}\n" for row in (files[1].unknown if unknown is None else unknown))
    text = head + "".join(f"\n{row}" for _, row in sorted(rows) if row)
    merged = with_line_ends(text, ours or theirs)
    return LockMerge(merged, tuple(sorted(conflicts, key=lambda conflict: conflict.name)))


_Declaration = tuple[str, frozenset[str]]
"""How the manifest declares an entry, and for which agents."""


class _Declarations(NamedTuple):
    """The declarations of the entries in each of the three versions."""

    base: set[_Declaration]
    ours: set[_Declaration]
    theirs: set[_Declaration]


def _declaration_of(entry: LockEntry | None) -> _Declaration:
    if entry is None or not entry.declared:
        return "", frozenset()
    return entry.declared, frozenset(entry.agents).difference(entry.extra_agents)


class _EntryVersions(NamedTuple):
    """One entry in the three versions of a merge; ``None`` where one does not have it."""

    base: LockEntry | None
    ours: LockEntry | None
    theirs: LockEntry | None

    @property
    def name(self) -> str:
        """The name of the entry as our side writes it, or else the other side, or else the base."""
        return next(entry.name for entry in (self.ours, self.theirs, self.base) if entry is not None)


def _merge_entry(
    versions: _EntryVersions, choice: Side | None, declarations: _Declarations, labels: tuple[str, str]
) -> tuple[str, LockConflict | None]:
    """The lines of an entry in the merged lock file, ``""`` where it is removed, and the conflict if there is one."""
    before, mine, other = _with_one_commit(versions)
    # The order matters: an entry that needs no decision is taken as it is, before links are merged.
    if other in (mine, before) or mine == before:
        taken, is_decided = (other if mine == before else mine), True
    else:
        taken = _merge_links(before, mine, other)
        is_decided = taken is not None
    was, now = _declaration_of(before), _declaration_of(taken)
    # The side that the entry is taken from has this declaration, so it is the other side that changed it.
    is_outdated = now[0] != "" and now != was and now in declarations.base - (declarations.ours & declarations.theirs)
    if is_decided and not is_outdated:
        return _entry_text(taken), None
    if choice is not None:
        return _entry_text(mine if choice == "ours" else other), None
    first = f"<<<<<<< {labels[0]}\n{_entry_text(mine)}||||||| base\n{_entry_text(before)}"  # git's style ``diff3``
    row = f"{first}=======\n{_entry_text(other)}>>>>>>> {labels[1]}\n"
    ours, theirs = _describe_entry(mine, other), _describe_entry(other, mine)
    if is_outdated:
        ours, theirs = ours or _OTHER_DECLARATION, theirs or _OTHER_DECLARATION
    return row, LockConflict(versions.name, ours, theirs)


def _with_one_commit(versions: _EntryVersions) -> _EntryVersions:
    """The versions with one commit on both sides, where both took the same files from two commits of one source."""
    before, mine, other = versions
    if mine is None or other is None or mine.commit == other.commit:
        return versions
    if (mine.source, mine.ref, mine.digest) != (other.source, other.ref, other.digest):
        return versions
    # Nobody can know here which is the later one, so that it only has to be the same from both sides.
    moved = {mine.commit, other.commit}.difference(() if before is None else (before.commit,))
    commit = max(moved)
    return _EntryVersions(before, replace(mine, commit=commit), replace(other, commit=commit))


def _read_side(text: str, side: str) -> LockFile:
    return parse_lock_file(text, side) if text.strip() else LockFile({}, ())


def _read_base(text: str) -> LockFile:
    """What both sides began with."""
    try:
        return _read_side(text, "base")
    except InstallError as error:
        if error.code != "lock-conflict":
            raise
    # Two branches with several common ancestors have a base that git made by merging these, and it may be in conflict
    # itself. Then the entries that are equal on both of its sides count, and our two sides decide about the others.
    inner = split_conflict(text)
    if inner is None:
        raise _torn_base_error("its markers do not pair")
    try:
        first, second = _read_side(inner.ours, "base"), _read_side(inner.theirs, "base")
    except InstallError as error:
        raise _torn_base_error(error.message) from None
    entries = {name: entry for name, entry in first.entries.items() if second.entries.get(name) == entry}
    return LockFile(entries, tuple(row for row in first.unknown if row in second.unknown))


def _torn_base_error(why: str) -> InstallError:
    return InstallError(f"what both sides began with is in conflict itself: {why}", "base", "torn-conflict")


def _merge_links(base: LockEntry | None, ours: LockEntry | None, theirs: LockEntry | None) -> LockEntry | None:
    """Return the entry as the side has it that updated it, with the links that both sides together made and removed.

    ``None`` where one side removed the entry, where both updated it, and where the update has other skills and the
    other side changed links.
    """
    if ours is None or theirs is None:
        return None
    before, mine, other = (None if entry is None else replace(entry, **_AS_INSTALLED) for entry in (base, ours, theirs))
    if mine != other and before not in (mine, other):
        return None
    newer, older = (theirs, ours) if mine == before else (ours, theirs)
    if newer.declared == (base.declared if base is not None else ""):
        newer = replace(newer, declared=older.declared)
    if newer.digest == older.digest:  # what is said about other files says nothing about these
        unknown = _merge_fields(*(() if entry is None else entry.unknown for entry in (base, ours, theirs)))
        if unknown is None:
            return None
        newer = replace(newer, unknown=unknown)
    if ours.skills.keys() != theirs.skills.keys():  # nobody can know which links the new skills should have
        return newer if _link_values(older) == _link_values(base) else None
    merged: dict[str, Any] = {
        key: _merge_sets(*(getattr(side, key, ()) for side in (base, ours, theirs))) for key in _NO_LINKS
    }
    return replace(newer, **merged)


def _merge_fields(base: Iterable[str], ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...] | None:
    """Return the rows of fields that this version does not know; ``None`` where both sides changed one differently."""
    merged = _merge_sets(base, ours, theirs)
    return merged if len({row.partition(" = ")[0] for row in merged}) == len(merged) else None


def _link_values(entry: LockEntry | None) -> list[tuple[str, ...]]:
    return [getattr(entry, key, ()) for key in _NO_LINKS]


def _merge_sets(base: Iterable[str], ours: Iterable[str], theirs: Iterable[str]) -> tuple[str, ...]:
    """Return the values that both sides have, and those that either side added."""
    before, mine, other = set(base), set(ours), set(theirs)
    return tuple(sorted((mine & other) | (mine - before) | (other - before)))


def _entry_text(entry: LockEntry | None) -> str:
    return "" if entry is None else lock_entry_text(entry)


def _describe_entry(entry: LockEntry | None, other: LockEntry | None) -> str:
    """Return the version of an entry for people.

    With its source and its declaration where those of ``other`` differ.
    """
    if entry is None:
        return ""
    source = f"{entry.source} at " if other is not None and other.source != entry.source else ""
    declared = f", in the manifest as {entry.declared}" if entry.declared else ", not in the manifest"
    differs = other is not None and other.declared != entry.declared
    return f"{source}{_describe_version(entry)}{declared if differs else ''}"


def _describe_version(entry: LockEntry) -> str:
    """Return the ref that was asked for, and the commit or the digest that it was."""
    exact = f"commit {entry.commit[:_SHOWN_DIGITS]}" if entry.commit else f"digest {entry.digest[:_SHOWN_DIGITS]}"
    return f"{entry.ref}, {exact}" if entry.ref and entry.ref != entry.commit else exact


def find_shared_links(locked: LockEntries) -> dict[str, tuple[str, ...]]:
    """Return the links that more than one entry records, each with the names of those entries."""
    # Two people may install skills with the same name from two sources: two entries, which merge without a conflict.
    names: dict[str, list[str]] = {}
    for name, entry in locked.items():
        for link in entry.links:
            names.setdefault(link, []).append(name)
    return {link: tuple(entries) for link, entries in names.items() if len(entries) > 1}


def wrap_in_markers(ours: str, theirs: str, labels: tuple[str, str]) -> str:
    """Two whole files between git's markers, for files that cannot be merged entry by entry."""
    first, second = (text if not text or text.endswith("\n") else f"{text}\n" for text in (ours, theirs))
    return f"<<<<<<< {labels[0]}\n{first}=======\n{second}>>>>>>> {labels[1]}\n"


# A marker may be longer than seven characters: the attribute conflict-marker-size sets its length.
_MARKER = re.compile(r"^(<{7,}|\|{7,}|={7,}|>{7,})(?: (.*))?$")
_ANY_MARKER = re.compile(r"^(?:<{7}|>{7}|\|{7})(?:[ <>|]|\r?$)|^={7}\r?$", re.MULTILINE)
_ENTRY_HEADER = "[[skill]]"
_NEXT_STATES = {
    ("all", "<"): "ours",
    ("ours", "|"): "base",
    ("ours", "="): "theirs",
    ("base", "="): "theirs",
    ("theirs", ">"): "all",
}
"""Which side begins with a marker; "all" is the text outside of conflicts, which every side has."""
_LABELED_SIDES = {("all", "<"): "ours", ("theirs", ">"): "theirs"}
"""Which side the words behind a marker name."""
_NAME = re.compile(r'name = "([^"\\]{1,200})"')


class ConflictSides(NamedTuple):
    """The versions that a file in conflict was made from, as far as the markers show them."""

    base: str | None
    """The text that both sides began with; ``None`` where the markers do not show it (git's style ``merge``)."""
    ours: str
    """The text of our side."""
    theirs: str
    """The text of the other side."""
    ours_label: str = ""
    """The words behind git's first marker: mostly ``HEAD``."""
    theirs_label: str = ""
    """The words behind git's last marker: a branch, or a commit and its subject."""


def find_marker(text: str) -> int:
    """Return the number of the first line that is one of git's conflict markers; 0 when there is none."""
    match = _ANY_MARKER.search(text)
    return 0 if match is None else text.count("\n", 0, match.start()) + 1


def split_conflict(text: str) -> ConflictSides | None:
    """The sides of a file with git's conflict markers, in each of its styles; ``None`` where the markers do not pair.

    Lines outside of conflicts are in every side. So a side may be something that nobody has ever written as a file.
    """
    parts: dict[str, list[str]] = {"base": [], "ours": [], "theirs": []}
    labels = {"ours": "", "theirs": ""}
    state, has_base = "all", True
    for line in text.split("\n"):
        row = line.removesuffix("\r")
        match = _MARKER.fullmatch(row)
        # Outside of a conflict a row of "=" is ordinary text, such as the underline of a heading.
        if match is None or (state == "all" and match[1][0] == "="):
            for side in parts if state == "all" else (state,):
                parts[side].append(row)
            continue
        step = (state, match[1][0])
        if step not in _NEXT_STATES:
            return None  # a conflict within a conflict, or somebody deleted one of its markers
        if step in _LABELED_SIDES:
            side = _LABELED_SIDES[step]
            labels[side] = labels[side] or match[2] or ""
        has_base = has_base and step != ("ours", "=")
        state = _NEXT_STATES[step]
    if state != "all":
        return None
    base, ours, theirs = ("\n".join(parts[side]) for side in ("base", "ours", "theirs"))
    return ConflictSides(base if has_base else None, ours, theirs, labels["ours"], labels["theirs"])


def find_differing_entries(sides: ConflictSides) -> tuple[str, ...]:
    """Return the names of the entries whose text differs between the two sides, sorted."""
    # Texts are compared and not parsed entries: a side need not be a lock file that can be parsed.
    ours, theirs = _split_entries(sides.ours), _split_entries(sides.theirs)
    return tuple(sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)))


def _split_entries(text: str) -> dict[str, str]:
    """Return the text of each entry, by the name of the entry."""
    entries: dict[str, str] = {}
    for part in f"\n{text}".split(f"\n{_ENTRY_HEADER}")[1:]:
        match = _NAME.search(part)
        if match is not None:
            entries[match[1]] = part.strip()
    return entries

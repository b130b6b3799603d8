"""A lock file or a manifest that git left in conflict: how its markers are found and its two sides separated."""

from __future__ import annotations

import re
from typing import NamedTuple

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

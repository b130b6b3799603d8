"""An install side by side: mine, as the lock file has it, and upstream, made from the two diffs of ``SkillDiff``.

Both diffs begin at the locked files. So the lines of the lock file are the rows, and each side says for a row whether
it keeps, changes or removes the line, and which lines it adds behind it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.install.compare_source import SkillDiff

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_FILE = "/dev/null"
MAX_ROWS = 2_000
"""Rows of one install that a page shows."""


class SideCell(NamedTuple):
    """A line of one side; ``change`` is ``""``, ``changed``, ``added`` or ``removed``, and ``text`` without its end."""

    text: str = ""
    change: str = ""


class SideRow(NamedTuple):
    """A line of the three sides; ``number`` is that of the locked line, 0 for a line that the lock file has not."""

    number: int
    mine: SideCell
    locked: str
    upstream: SideCell

    @property
    def is_conflict(self) -> bool:
        """True when my files and upstream both changed the line, and the two results differ."""
        return bool(self.mine.change and self.upstream.change) and self.mine != self.upstream


@dataclass(frozen=True, slots=True)
class FileSides:
    """A file that differs: its path, the parts of it around each change, and what cannot be shown line by line."""

    path: str
    parts: Sequence[Sequence[SideRow]] = ()
    notes: Sequence[str] = ()
    """Sentences about a side: it has no such file, another mode, or a content that is not text."""


def make_sides(diff: SkillDiff) -> list[FileSides]:
    """Return the files of an install that differ, by path, with at most ``MAX_ROWS`` rows in all."""
    mine, upstream = _parse_diff(diff.edits, diff.edited_files), _parse_diff(diff.updates, diff.updated_files)
    files: list[FileSides] = []
    left = MAX_ROWS
    for path in sorted(mine.keys() | upstream.keys()):
        here, there = mine.get(path, _FileDiff()), upstream.get(path, _FileDiff())
        parts = _join_sides(here, there)
        notes = [f"mine: {note}" for note in here.notes] + [f"upstream: {note}" for note in there.notes]
        count = sum(map(len, parts))
        if count > left:
            parts, notes = [], [*notes, f"{count:,} lines, too many for this page: see 'prowess diff {diff.name}'"]
        else:
            left -= count
        files.append(FileSides(path, parts, notes))
    return files


# -- reading a unified diff --------------------------------------------------------------------------------------------


class _Hunk(NamedTuple):
    """A part of a diff: the number of its first locked line, and its rows, each with its sign."""

    begin: int
    rows: list[str]


@dataclass(slots=True)
class _FileDiff:
    hunks: list[_Hunk] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _parse_diff(text: str, paths: Sequence[str]) -> dict[str, _FileDiff]:
    """Return the diff of each file; ``paths`` are the files in their order, and lines outside of hunks are notes."""
    files = {path: _FileDiff() for path in paths}
    if not paths:
        return files
    current = paths[0]
    lines = iter(text.split("\n"))
    for line in lines:
        match = _HUNK.match(line)
        if match is not None:
            files[current].hunks.append(_read_hunk(match, lines))
        elif line.startswith("--- "):
            old, new = line[4:], next(lines, "")[4:]
            current = (new if old == _NO_FILE else old)[2:]
            files.setdefault(current, _FileDiff())
            files[current].notes += ["the file is new"] if old == _NO_FILE else []
            files[current].notes += ["the file is gone"] if new == _NO_FILE else []
        elif line:
            # A note names its file somewhere in it, and of two names the longer one says more.
            current = max((path for path in paths if path in line), key=len, default=current)
            files[current].notes.append(line)
    return files


def _read_hunk(match: re.Match[str], lines: Iterator[str]) -> _Hunk:
    """Return a hunk; as many lines belong to it as its head says, whatever they look like."""
    begin, old = int(match[1]), int(match[2] or 1)
    new = int(match[4] or 1)
    rows: list[str] = []
    while (old > 0 or new > 0) and (line := next(lines, None)) is not None:
        if line[:1] == "\\":  # "no newline at the end" is not a line of the file
            continue
        rows.append(line)
        old -= line[:1] in {" ", "-"}
        new -= line[:1] in {" ", "+"}
    # Without locked lines, the head names the line before which nothing is.
    return _Hunk(begin if int(match[2] or 1) else begin + 1, rows)


# -- joining two sides -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Side:
    """One side of a part, by the numbers of locked lines: what became of each, and what was added behind it."""

    locked: dict[int, str] = field(default_factory=dict)
    cells: dict[int, SideCell] = field(default_factory=dict)
    added: dict[int, list[str]] = field(default_factory=dict)


def _read_side(hunks: Sequence[_Hunk]) -> _Side:
    side = _Side()
    for hunk in hunks:
        number = hunk.begin
        removed: list[int] = []
        for row in hunk.rows:
            sign, text = row[:1], row[1:]
            if sign == "+":
                if removed:  # a line that stands for one that was removed is a change of it
                    side.cells[removed.pop(0)] = SideCell(text, "changed")
                else:
                    side.added.setdefault(number - 1, []).append(text)
                continue
            side.locked[number] = text
            if sign == "-":
                side.cells[number] = SideCell("", "removed")
                removed.append(number)
            else:
                removed = []
            number += 1
    return side


def _join_sides(mine: _FileDiff, upstream: _FileDiff) -> list[list[SideRow]]:
    """Return the parts of a file where either side differs from the lock file."""
    here, there = _read_side(mine.hunks), _read_side(upstream.hunks)
    locked = here.locked | there.locked
    numbers = sorted(locked.keys() | here.added.keys() | there.added.keys())
    parts: list[list[SideRow]] = []
    before = -1
    for number in numbers:
        # Lines that no hunk has are between two parts, and are equal on all sides.
        if not parts or number > before + 1:
            parts.append([])
        before = number
        if number in locked:
            text = locked[number]
            kept = SideCell(text)
            parts[-1].append(SideRow(number, here.cells.get(number, kept), text, there.cells.get(number, kept)))
        parts[-1] += _join_added_lines(here.added.get(number, []), there.added.get(number, []))
    return [part for part in parts if part]


def _join_added_lines(mine: Sequence[str], upstream: Sequence[str]) -> Iterator[SideRow]:
    for index in range(max(len(mine), len(upstream))):
        left, right = (SideCell(side[index], "added") if index < len(side) else SideCell() for side in (mine, upstream))
        yield SideRow(0, left, "", right)

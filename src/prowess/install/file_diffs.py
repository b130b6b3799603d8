"""Unified diffs of files, within limits; large and binary files are only named."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.files.write import NewFile
    from prowess.limits import Limits

_CONTEXT_LINES = 3
_HUNK_NUMBER = re.compile(r"([-+])(\d+)")


def diff_files(before: Sequence[NewFile], files: Sequence[NewFile], limits: Limits) -> str:
    """Return the unified diff of two sets of files; ``""`` when they are equal. Large and binary files are only named.

    A file with too many lines to compare is described by their number.
    """
    old = {file.path: (file.content, file.executable) for file in before}
    new = {file.path: (file.content, file.executable) for file in files}
    diffs = FileDiffs(limits)
    rows: list[str] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            rows += diffs.diff_file(path, old.get(path), new.get(path))
    return "".join(rows)


class FileDiffs:
    """Diffs of several files, which share one limit on the lines that are compared."""

    def __init__(self, limits: Limits) -> None:
        self._max_bytes = limits.max_resource_bytes
        self._lines_left = limits.max_diff_lines

    def diff_file(self, path: str, old: tuple[bytes, bool] | None, new: tuple[bytes, bool] | None) -> Iterator[str]:
        """Yield the diff of one file; a side is its bytes and whether it is executable, or ``None`` without a file."""
        names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
        before, after = (side[0] if side else b"" for side in (old, new))
        if old and new and old[1] != new[1]:
            yield f"mode of {path}: {'executable' if new[1] else 'not executable'}\n"
        if max(len(before), len(after)) > self._max_bytes or not (_is_text(before) and _is_text(after)):
            yield f"binary or large files {names[0]} and {names[1]} differ\n"
            return
        yield from self._diff_text(path, names, *(side.decode().splitlines(keepends=True) for side in (before, after)))

    def _diff_text(self, path: str, names: tuple[str, str], before: list[str], after: list[str]) -> Iterator[str]:
        changed = find_changed_lines(before, after)
        if changed.total > self._lines_left:
            yield f"{len(before)} lines of {path} become {len(after)} lines, too many to compare\n"
            return
        self._lines_left -= changed.total
        yield from changed.list_rows(*names)


class ChangedLines(NamedTuple):
    """The lines of two strings between those that are equal at both ends, and how many are equal before them."""

    before: list[str]
    after: list[str]
    skipped: int

    @property
    def total(self) -> int:
        """How many lines there are to compare."""
        return len(self.before) + len(self.after)

    def list_rows(self, old: str, new: str) -> Iterator[str]:
        """Yield the rows of a unified diff, each with its line break; ``old`` and ``new`` name the two sides."""
        from difflib import unified_diff

        for row in unified_diff(self.before, self.after, old, new, n=_CONTEXT_LINES):
            moved = (
                _HUNK_NUMBER.sub(lambda number: f"{number[1]}{int(number[2]) + self.skipped}", row)
                if row[:2] == "@@"
                else row
            )
            yield moved if moved.endswith("\n") else f"{moved}\n\\ no newline at the end\n"


def find_changed_lines(before: list[str], after: list[str]) -> ChangedLines:
    """Return the lines that a diff has to compare; the lines of context around them stay."""
    # Fast path: equal lines at both ends are not compared, so that a small change in a long file costs little.
    skipped, left_out = _count_common_lines(before, after)
    return ChangedLines(before[skipped : len(before) - left_out], after[skipped : len(after) - left_out], skipped)


def _count_common_lines(before: list[str], after: list[str]) -> tuple[int, int]:
    """Return how many lines are equal at the beginning and at the end, without those that are shown as context."""
    limit = min(len(before), len(after))
    first = next((index for index in range(limit) if before[index] != after[index]), limit)
    last = next((index for index in range(limit - first) if before[-1 - index] != after[-1 - index]), limit - first)
    return max(0, first - _CONTEXT_LINES), max(0, last - _CONTEXT_LINES)


def _is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and data.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False

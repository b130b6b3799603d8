"""What differs between files, as unified diffs: bounded, with large and binary files told by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.files.tree import read_tree
from prowess.files.write import NewFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits

_CONTEXT_LINES = 3
_HUNK_NUMBER = re.compile(r"([-+])(\d+)")


def diff_folder(folder: str, files: Sequence[NewFile], limits: Limits) -> str:
    """What changes when ``files`` take the place of a folder, as a unified diff; large and binary files by name."""
    return diff_files([NewFile(*row) for row in read_tree(folder, limits).files], files, limits)


def diff_files(before: Sequence[NewFile], files: Sequence[NewFile], limits: Limits) -> str:
    """What changes when ``files`` take the place of those ``before``, as a unified diff; large and binary ones by name.

    What has too many lines to be compared one by one is told by their number.
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
    """The differences of several files, within one bound on the lines that are compared."""

    def __init__(self, limits: Limits) -> None:
        self._max_bytes = limits.max_resource_bytes
        self._lines_left = limits.max_diff_lines

    def diff_file(self, path: str, old: tuple[bytes, bool] | None, new: tuple[bytes, bool] | None) -> Iterator[str]:
        """The rows of one file, of which each side is its bytes and whether it is executable; ``None``: not there."""
        names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
        before, after = (side[0] if side else b"" for side in (old, new))
        if old and new and old[1] != new[1]:
            yield f"mode of {path}: {'executable' if new[1] else 'not executable'}\n"
        if max(len(before), len(after)) > self._max_bytes or not (_is_text(before) and _is_text(after)):
            yield f"binary or large files {names[0]} and {names[1]} differ\n"
            return
        yield from self._diff_text(path, names, *(side.decode().splitlines(keepends=True) for side in (before, after)))

    def _diff_text(self, path: str, names: tuple[str, str], before: list[str], after: list[str]) -> Iterator[str]:
        # What is alike at both ends needs no comparison, so that a small change in a long file costs little. The lines
        # of context stay, and the numbers of the lines are put right again.
        skipped, left_out = _count_common_lines(before, after)
        inner = [side[skipped : len(side) - left_out] for side in (before, after)]
        count = sum(map(len, inner))
        if count > self._lines_left:
            yield f"{len(before)} lines of {path} become {len(after)} lines, too many to compare\n"
            return
        self._lines_left -= count
        from difflib import unified_diff  # noqa: PLC0415 - only where something differs

        for row in unified_diff(inner[0], inner[1], *names, n=_CONTEXT_LINES):
            moved = (
                _HUNK_NUMBER.sub(lambda found: f"{found[1]}{int(found[2]) + skipped}", row) if row[:2] == "@@" else row
            )
            yield moved if moved.endswith("\n") else f"{moved}\n\\ no newline at the end\n"


def _count_common_lines(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines both have alike at the beginning, and at the end, but for those that are shown as context."""
    most = min(len(before), len(after))
    first = next((at for at in range(most) if before[at] != after[at]), most)
    last = next((at for at in range(most - first) if before[-1 - at] != after[-1 - at]), most - first)
    return max(0, first - _CONTEXT_LINES), max(0, last - _CONTEXT_LINES)


def _is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and data.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False

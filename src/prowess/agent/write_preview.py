"""What a write would change, as a person sees it before deciding: nothing is left out without saying how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.install.file_diffs import ChangedLines, find_changed_lines
from prowess.text.hidden_characters import escape_invisible
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.limits import Limits


def preview_write(path: str, before: bytes | None, after: bytes, limits: Limits) -> str:
    """Return what replacing ``before``, or creating a file, would change; ``""`` when nothing would.

    It is a unified diff with the size of each side. Characters that a person would not see are written out. Where too
    many lines change to compare them, it has all new lines, and says how many they replace.
    """
    if before == after:
        return ""
    shown = escape_invisible(path)
    old = "/dev/null" if before is None else f"a/{shown} ({_describe_size(before)})"
    new = f"b/{shown} ({_describe_size(after)})"
    changed = find_changed_lines(_split_lines(before or b""), _split_lines(after))
    rows = changed.list_rows(old, new) if changed.total <= limits.max_diff_lines else _list_new_lines(changed, old, new)
    return "\n".join(map(escape_invisible, "".join(rows).split("\n")))


def _list_new_lines(changed: ChangedLines, old: str, new: str) -> Iterable[str]:
    replaced = f"{format_count(len(changed.before), 'line')} from line {changed.skipped + 1:,} on"
    yield f"--- {old}\n+++ {new}\n[too many lines to compare: {replaced} would become these {len(changed.after):,}]\n"
    for line in changed.after:
        yield f"+{line}"


def _describe_size(data: bytes) -> str:
    return f"{format_count(len(data), 'byte')}, {format_count(len(_split_lines(data)), 'line')}"


def _split_lines(data: bytes) -> list[str]:
    # At line feeds alone, so that a row never ends within a line of the file; bytes that are no text are kept apart.
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    return [*(f"{line}\n" for line in lines[:-1]), *filter(None, lines[-1:])]

"""What a lock file changes, for whoever reviews it: on the terminal, as data, as Markdown, and as annotations."""

from __future__ import annotations

import os
import re
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING

from prowess.cli.issues import to_github_annotation
from prowess.cli.render.blocks import Block, Line, Style, Title, diff_to_lines, line
from prowess.errors import Issue
from prowess.lockfile.read import LOCK_FILE, read_text
from prowess.text.escapes import escape_line, escape_text
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.install.lock_diff import LockChange

_STYLES: Mapping[str, Style] = {"added": "good", "removed": "warn", "changed": "name"}


def change_to_dict(change: LockChange) -> dict[str, object]:
    """Return a change as data."""
    return {**asdict(change), "additions": [asdict(one) for one in change.additions], "refusals": [*change.refusals]}


def changes_to_blocks(changes: Sequence[LockChange]) -> Iterator[Block]:
    """Return what changes, for a terminal."""
    if not changes:
        yield line((f"Both versions of {LOCK_FILE} have the same skills.", "good"))
        return
    for change in changes:
        yield Title(change.name, _describe_move(change))
        yield line((change.status, _STYLES[change.status]), f": {change.source or change.source_before}", indent=2)
        for refusal in change.refusals:
            yield line(("refused: ", "bad"), refusal, indent=2)
        for title, values in _group_additions(change):
            yield line((f"{title}: ", "warn"), ", ".join(values), indent=2)
        if change.why_unknown:
            yield line(("its files are not known: ", "warn"), change.why_unknown, indent=2)
        yield from diff_to_lines(change.diff, indent=2)
        yield Line()


def to_markdown(changes: Sequence[LockChange]) -> str:
    """Return what changes as Markdown, for a pull request; nothing in it is rendered but what is written here."""
    if not changes:
        return f"The skills in `{LOCK_FILE}` do not change.\n"
    rows = [f"## {_summarize(changes)}", ""]
    rows += ["| install | what | version | could now run |", "|---|---|---|---|"]
    for change in changes:
        acts = [f"{len(values)} {title}" for title, values in _group_additions(change) if title != "new skill"]
        cells = (_code(change.name), change.status, _code(_describe_move(change)), "; ".join(acts) or "nothing new")
        rows.append(f"| {' | '.join(cells)} |")
    for change in changes:
        rows += ["", f"### {_code(change.name)}: {change.status}", ""]
        rows += [f"- **refused by the policy**: {_code(refusal)}" for refusal in change.refusals]
        if change.source_before and change.source and change.source_before != change.source:
            rows.append(f"- **another source**: {_code(change.source_before)} → {_code(change.source)}")
        else:
            rows.append(f"- source: {_code(change.source or change.source_before)}")
        for title, values in _group_additions(change):
            rows.append(f"- **{title}**: {', '.join(map(_code, values))}")
        rows += [f"- digest of {_code(skill)}: {_code(digest)}" for skill, digest in change.digests.items()]
        if change.why_unknown:
            rows.append(f"- **its files are not known**: {_code(change.why_unknown)}")
        if change.diff:
            rows += ["", "<details><summary>files</summary>", "", *_fence(change.diff), "", "</details>"]
    return "\n".join(rows) + "\n"


def to_annotations(changes: Sequence[LockChange], folder: str) -> Iterator[str]:
    """Yield what changes as annotations of GitHub at the lines of the lock file in a folder."""
    path = os.path.join(folder, LOCK_FILE)
    rows = (read_text(folder, LOCK_FILE) or "").splitlines()
    for change in changes:
        number = next((index for index, row in enumerate(rows, 1) if f'"{change.name}"' in row), 1)
        for refusal in change.refusals:
            yield to_github_annotation(Issue("policy", change.name, refusal, path, number))
        if change.why_unknown:
            unknown = f"its files are not known: {change.why_unknown}"
            yield to_github_annotation(Issue("unknown-content", change.name, unknown, path, number, "warning"))
        for title, values in _group_additions(change):
            message = f"{title}: {', '.join(values)}"
            yield to_github_annotation(Issue("new-ability", change.name, message, path, number, "warning"))
        moved = f"{change.status}: {_describe_move(change)}"
        yield to_github_annotation(Issue("lock-change", change.name, moved, path, number, "info"))


def _summarize(changes: Sequence[LockChange]) -> str:
    counts = {status: sum(change.status == status for change in changes) for status in ("added", "changed", "removed")}
    parts = [f"{count} {status}" for status, count in counts.items() if count]
    return f"{format_count(len(changes), 'install')} of skills: {', '.join(parts)}"


def _describe_move(change: LockChange) -> str:
    if change.version_before and change.version:
        return f"{change.version_before} → {change.version}"
    return change.version or change.version_before


def _group_additions(change: LockChange) -> list[tuple[str, list[str]]]:
    return [
        # Only the name of a skill says by itself which skill it is about.
        (title, [one.value if one.kind == "skill" else f"{one.value} ({one.skill})" for one in group])
        for title, group in groupby(change.additions, lambda addition: addition.title)
    ]


def _code(text: str) -> str:
    """Return a string as code in a line or a cell of Markdown: neither links nor HTML in it count."""
    shown = escape_line(text).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall("`+", shown)), default=0) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def _fence(diff: str) -> list[str]:
    """Return a diff as a block of code that nothing in it can end."""
    shown = escape_text(diff).rstrip("\n")
    ticks = "`" * max(3, max(map(len, re.findall("`+", shown)), default=0) + 1)
    return [f"{ticks}diff", shown, ticks]

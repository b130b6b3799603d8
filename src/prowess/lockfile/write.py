"""``prowess.lock``, written: sorted, one line a file, the same text for the same installs, so that changes merge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from prowess.files.tree import digest_of
from prowess.lockfile.read import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.files.tree import FileHash
    from prowess.lockfile.read import Locked, LockedSkill

EMPTY_TEXT = (
    "# What is installed, byte for byte. Prowess writes this file; keep it under version control.\n"
    f"version = {VERSION}\n"
)
"""A lock file that records nothing, which every entry follows."""
_OPTIONAL = ("ref", "commit", "subpath", "select", "declared", "mode")


def lock_text(locked: Locked) -> str | None:
    """The text of the lock file; ``None`` when there is nothing to record."""
    if not locked:
        return None
    return EMPTY_TEXT + "".join(f"\n{entry_text(locked[name])}" for name in sorted(locked))


def entry_text(entry: LockedSkill) -> str:
    """The text of one entry of the lock file."""
    rows = [
        "[[skill]]",
        f"name = {_text(entry.name)}",
        f"source = {_text(entry.source)}",
        f"kind = {_text(entry.kind)}",
    ]
    rows += [f"{key} = {_text(getattr(entry, key))}" for key in _OPTIONAL if getattr(entry, key)]
    rows.append(f"digest = {_text(digest_of(dict(entry.files)))}")
    rows += _list("agents", sorted(entry.agents))
    rows += _list("links", sorted(entry.links))
    rows += _list("copies", sorted(entry.copies))
    rows += ["files = [", *(f"  {_text(row)}," for row in _files(entry.files)), "]"]
    rows += ["[skill.skills]", *(f"{_text(name)} = {_text(entry.skills[name])}" for name in sorted(entry.skills))]
    return "\n".join(rows) + "\n"


def _list(key: str, values: list[str]) -> list[str]:
    return [f"{key} = [{', '.join(_text(value) for value in values)}]"] if values else []


def _files(files: Mapping[str, FileHash]) -> list[str]:
    ordered = sorted(files, key=lambda path: path.encode())
    return [f"{files[p].sha256} {'x' if files[p].executable else '-'} {files[p].size} {p}" for p in ordered]


def _text(value: str) -> str:
    """A TOML string; JSON's escapes are TOML's for whatever may stand here."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

"""The text of ``prowess.lock``: sorted, one line for each file, equal for equal installs, so that changes merge."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from prowess.files.tree import digest_tree
from prowess.lockfile.read import VERSION

if TYPE_CHECKING:
    from prowess.lockfile.read import LockEntries, LockEntry

EMPTY_LOCK_TEXT = (
    "# What is installed, byte for byte. Prowess writes this file; keep it under version control.\n"
    f"version = {VERSION}\n"
)
"""The text at the beginning of every lock file, before the first entry."""
_OPTIONAL_KEYS = ("ref", "commit", "subpath", "select", "declared", "mode")


def lock_text(locked: LockEntries) -> str | None:
    """The text of the lock file; ``None`` when there is nothing to record."""
    if not locked:
        return None
    return EMPTY_LOCK_TEXT + "".join(f"\n{lock_entry_text(locked[name])}" for name in sorted(locked))


def lock_entry_text(entry: LockEntry) -> str:
    """The text of one entry of the lock file."""
    rows = [
        "[[skill]]",
        f"name = {toml_value(entry.name)}",
        f"source = {toml_value(entry.source)}",
        f"kind = {toml_value(entry.kind)}",
    ]
    rows += [f"{key} = {toml_value(getattr(entry, key))}" for key in _OPTIONAL_KEYS if getattr(entry, key)]
    # The digest is computed from the rows of files, so that the two can never disagree in a file that we write.
    rows.append(f"digest = {toml_value(digest_tree(dict(entry.files)))}")
    rows += _list_rows("agents", sorted(entry.agents))
    rows += _list_rows("links", sorted(entry.links))
    rows += _list_rows("copies", sorted(entry.copies))
    # By bytes, as everywhere where a tree is hashed: the order is then that of every platform.
    files = sorted(entry.files.items(), key=lambda item: item[0].encode())
    file_rows = (f"{file.sha256} {'x' if file.executable else '-'} {file.size} {path}" for path, file in files)
    rows += ["files = [", *(f"  {toml_value(row)}," for row in file_rows), "]"]
    rows += [
        "[skill.skills]",
        *(f"{toml_value(name)} = {toml_value(entry.skills[name])}" for name in sorted(entry.skills)),
    ]
    return "\n".join(rows) + "\n"


def _list_rows(key: str, values: list[str]) -> list[str]:
    return [f"{key} = {toml_value(values)}"] if values else []


def toml_value(value: object) -> str:
    """A text, or a list of texts, as a value in TOML."""
    # Every escape that JSON writes means the same in TOML. Only DEL must be escaped in TOML and is not in JSON.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

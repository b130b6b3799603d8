"""The text of ``prowess.lock``: sorted, one line for each file, equal for equal installs, so that changes merge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue
from prowess.files.tree import digest_tree
from prowess.lockfile.read import VERSION, toml_value
from prowess.text.quantities import join_first

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry

EMPTY_LOCK_TEXT = (
    "# What is installed, byte for byte. Prowess writes this file; keep it under version control.\n"
    f"version = {VERSION}\n"
)
"""The text at the beginning of every lock file, before the first entry."""
_MAX_SHOWN, _MAX_SHOWN_CHARS = 5, 40
"""How many fields a message names, and how much of each."""
_OPTIONAL_KEYS = ("ref", "commit", "signer", "subpath", "declared", "mode")


def lock_text(locked: LockEntries, unknown: Sequence[str] = ()) -> str | None:
    """Return the text of the lock file; ``None`` when there is nothing to record.

    ``unknown`` are rows of the file itself that this version of Prowess does not know.
    """
    if not locked and not unknown:
        return None
    head = EMPTY_LOCK_TEXT + "".join(f"{row}\n" for row in unknown)
    return head + "".join(f"\n{lock_entry_text(locked[name])}" for name in sorted(locked))


def lock_entry_text(entry: LockEntry) -> str:
    """Return the text of one entry of the lock file."""
    rows = [
        "[[skill]]",
        f"name = {toml_value(entry.name)}",
        f"source = {toml_value(entry.source)}",
        f"kind = {toml_value(entry.kind)}",
    ]
    rows += [f"{key} = {toml_value(getattr(entry, key))}" for key in _OPTIONAL_KEYS if getattr(entry, key)]
    # Most entries are one chosen skill, whose name and digest are those of the entry: they are not repeated.
    is_chosen_skill = bool(entry.select) and entry.skills == {entry.select: ""}
    if entry.select and not (is_chosen_skill and entry.select == entry.name.partition("/")[2]):
        rows.append(f"select = {toml_value(entry.select)}")
    # The digest is computed from the rows of files, so that the two can never disagree in a file that we write.
    rows.append(f"digest = {toml_value(digest_tree(dict(entry.files)))}")
    rows += _list_rows("agents", entry.agents)
    rows += _list_rows("extra_agents", entry.extra_agents)
    # The links of a skill come and go with it, so those of several skills have lines of their own.
    rows += _list_rows("links", entry.links, has_lines=len(entry.skills) > 1)
    rows += _list_rows("copies", entry.copies, has_lines=len(entry.skills) > 1)
    rows += entry.unknown
    # By bytes, as everywhere where a tree is hashed: the order is then that of every platform.
    files = sorted(entry.files.items(), key=lambda item: item[0].encode())
    file_rows = [f"{file.sha256} {'x' if file.executable else '-'} {file.size} {path}" for path, file in files]
    rows += ["files = [", *[f"  {row}," for row in map(toml_value, file_rows)], "]"]
    if not is_chosen_skill:
        rows += ["[skill.skills]", *[_skill_row(entry, name) for name in sorted(entry.skills)]]
    return "\n".join(rows) + "\n"


def _skill_row(entry: LockEntry, name: str) -> str:
    """Return a skill with its digest and its folder; both are left out for a skill that is the whole install."""
    folder = entry.skills[name]
    return f"{toml_value(name)} = {toml_value(f'{entry.skill_digest(name)} {folder}' if folder else '')}"


def _list_rows(key: str, values: Sequence[str], *, has_lines: bool = False) -> list[str]:
    if has_lines and values:
        return [f"{key} = [", *[f"  {toml_value(value)}," for value in sorted(values)], "]"]
    return [f"{key} = {toml_value(sorted(values))}"] if values else []


def with_line_ends(text: str, like: str) -> str:
    """Return a text with the line ends of ``like``: git may have given a lock file those of Windows."""
    plain = text.replace("\r\n", "\n")
    return plain.replace("\n", "\r\n") if "\r\n" in like else plain


def keep_unknown_fields(before: LockEntries, after: LockEntries) -> tuple[LockEntries, list[Issue]]:
    """``after`` with the unknown fields of those entries whose digest is what it was, and a note for each other one.

    What a newer Prowess says about an install, such as a signature, is about exactly these files.
    """
    kept: LockEntries = {}
    issues: list[Issue] = []
    for name in [name for name, entry in before.items() if entry.unknown and name in after]:
        old, new = before[name], after[name]
        rows = old.unknown if old.digest == new.digest else ()
        if not rows:
            fields = join_first([row.partition(" = ")[0][:_MAX_SHOWN_CHARS] for row in old.unknown], _MAX_SHOWN)
            message = f"{name} has other files now, so these fields that Prowess does not know were dropped: {fields}"
            issues.append(Issue("dropped-fields", name, message, "", 0, "info"))
        if rows != new.unknown:
            kept[name] = replace(new, unknown=rows)
    return {**after, **kept} if kept else after, issues


def refuse_oversized(text: str, path: str, limits: Limits) -> None:
    """Raise ``InstallError`` (``lock-too-large``) for a lock file or a journal that no command could read again."""
    size, most = len(text.encode()), limits.max_lock_bytes
    if size > most:
        message = f"the file would have {size:,} bytes, and only {most:,} can be read (max_lock_bytes)"
        raise InstallError(f"{message}; nothing was changed", path, "lock-too-large")

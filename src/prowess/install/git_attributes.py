"""The lines of ``.gitattributes`` that keep git from changing the line ends of copies that are committed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prowess.errors import InstallError, Issue
from prowess.files import syscalls
from prowess.files.projects import git_root
from prowess.files.write import write_atomic
from prowess.lockfile.read import read_text
from prowess.lockfile.write import with_line_ends

if TYPE_CHECKING:
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries

ATTRIBUTES_FILE = ".gitattributes"


def update_attributes(
    scope: InstallScope, before: LockEntries, after: LockEntries, limits: Limits
) -> tuple[Issue, ...]:
    """Have ``.gitattributes`` name the copies of ``after``, and no more those that only ``before`` had.

    A file that held nothing else is deleted. Returns an issue where lines were added, or could not be; none outside of
    git.
    """
    wanted, dropped = _lines_for(after), set(_lines_for(before))
    if not (wanted or dropped) or scope.location != "project":
        return ()
    if git_root(scope.root, os.path.expanduser("~")) is None:
        return ()
    path = os.path.join(scope.root, ATTRIBUTES_FILE)
    try:
        text = read_text(scope.root, ATTRIBUTES_FILE, limits) or ""
        lines = text.splitlines()
        kept = [line for line in lines if line in wanted or line not in dropped]
        missing = [line for line in wanted if line not in kept]
        if lines and not (kept or missing):
            syscalls.delete_file(path)
        elif missing or kept != lines:
            changed = with_line_ends("".join(f"{line}\n" for line in kept + missing), text)
            write_atomic(path, changed.encode(), mode=0o644)
    except (InstallError, OSError) as error:
        why = error.message if isinstance(error, InstallError) else error.strerror or str(error)
        message = f"{ATTRIBUTES_FILE} cannot be changed ({why}); for the copies it needs these lines: {wanted!r}"
        return (Issue("git-attributes", ATTRIBUTES_FILE, message, path, 0, "warning"),)
    if not missing:
        return ()
    message = f"changed {ATTRIBUTES_FILE}, so that git leaves the line ends of copies as they are"
    return (Issue("git-attributes", ATTRIBUTES_FILE, message, path, 0, "info"),)


def _lines_for(entries: LockEntries) -> list[str]:
    return sorted(f"/{copy}/** -text" for entry in entries.values() if entry.is_copied for copy in entry.copies)

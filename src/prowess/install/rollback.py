"""Sources that went back behind what is installed.

A version (a branch, a tag, the default branch) goes forward when the commit that it leads to has the installed one in
its history. Otherwise it went back, or its history was rewritten without the installed commit; a rewrite is held back
like a rollback, since old files in a new commit are old files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import GitError, Issue

if TYPE_CHECKING:
    from prowess.install.fetch_source import SourceAccess
    from prowess.lockfile.read import LockEntry
    from prowess.spec.source_spec import SourceSpec

_SHOWN_DIGITS = 12


def find_rollback(entry: LockEntry, commit: str, spec: SourceSpec, access: SourceAccess) -> Issue | None:
    """The issue that the version of an entry leads to ``commit`` now, which is no newer than the one installed.

    ``None`` when it went forward, when there is no commit to compare, or when going back is allowed. Raises
    ``GitError`` when the history cannot be had.
    """
    if access.allow_rollback or not entry.commit or commit == entry.commit:
        return None
    where = f"{spec.ref or 'the default branch'} of {entry.source}"
    try:
        if access.remote_for(spec).has_ancestor(commit, entry.commit):
            return None
    except GitError as error:
        raise error.about(f"whether {where} went back cannot be told") from error.__cause__
    message = (
        f"{where} leads to {commit[:_SHOWN_DIGITS]}, whose history does not hold "
        f"{entry.commit[:_SHOWN_DIGITS]}, which is installed: "
        "it went back, or was rewritten"
    )
    return Issue("rolled-back", entry.name, message, "", 0, "warning")

"""Rollbacks: sources that went back behind what is installed.

A version (a branch, a tag, the default branch) goes forward when its new commit has the installed commit in its
history. Otherwise the version went back, or somebody rewrote its history without the installed commit. A rewrite counts
as a rollback: a new commit can hold old files, with old mistakes. A range of tags also goes forward when it leads to a
later release than the installed one, because releases of two branches do not hold each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.errors import GitError, Issue
from prowess.text.versions import is_range, read_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.fetch_source import SourceAccess
    from prowess.lockfile.read import LockEntry

_SHOWN_DIGITS = 12


def find_rollback(entry: LockEntry, commit: str, spec: SourceSpec, access: SourceAccess) -> Issue | None:
    """The warning that the version of an entry is ``commit`` now, which is not newer than the installed commit.

    ``None`` when the version went forward, without a commit to compare, or when going back is allowed. Raises
    ``GitError`` when the history cannot be fetched.
    """
    # An entry without a commit was moved to another version by a person. Only git has a history.
    if access.allow_rollback or not entry.commit or commit == entry.commit or spec.kind != "git":
        return None
    version = f"{spec.ref or 'the default branch'} of {entry.source}"
    remote = access.remote_for(spec)
    try:
        if is_range(spec.ref) and _is_later_release(remote.list_tags(), commit, entry.commit):
            return None
        if remote.has_ancestor(commit, entry.commit):
            return None
    except GitError as error:
        # Not knowing counts as an error: a server could hide a rollback by refusing to give its history.
        raise error.about(f"it is unknown whether {version} went back") from error.__cause__
    message = (
        f"{version} leads to {commit[:_SHOWN_DIGITS]}, whose history does not hold "
        f"{entry.commit[:_SHOWN_DIGITS]}, which is installed: "
        "it went back, or was rewritten"
    )
    return Issue("rolled-back", entry.name, message, "", 0, "warning")


def _is_later_release(tags: Mapping[str, str], commit: str, installed: str) -> bool:
    """True when a commit has a tag with later numbers than any tag of the installed commit."""
    releases: dict[str, tuple[int, ...]] = {}
    for tag, tagged in tags.items():
        releases[tagged] = max(releases.get(tagged, ()), read_release(tag))
    return bool(releases.get(installed)) and releases[installed] < releases.get(commit, ())

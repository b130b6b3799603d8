"""Installs whose source has something newer; nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from prowess.addresses.skill_ref import is_commit, is_short_commit
from prowess.errors import Issue, SkillError
from prowess.files.syscalls import wrap_os_errors
from prowess.install.entry_source import describe_unreachable, spec_of_entry
from prowess.install.fetch_source import LastOpenSource, select_stale_issues
from prowess.install.install_tree import tree_for_entry
from prowess.install.update import UpdateRun, WantedUpdate, find_rollback
from prowess.progress_steps import report_steps
from prowess.text.versions import find_later_version, find_latest_in_range, has_numbers, is_range

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from prowess.install.context import InstallContext
    from prowess.install.fetch_source import SourceAccess
    from prowess.install.update import Update
    from prowess.installed.scopes import InstallScope, ScopeName
    from prowess.lockfile.read import LockEntry


@dataclass(frozen=True, slots=True)
class Outdated:
    """An install whose source has something newer, or could not be asked whether it has."""

    name: str
    ref: str
    """The version that was asked for."""
    current: str
    """The commit that is installed; the digest where the source has no commits."""
    newest: str
    """The commit, or the digest, that the source has now."""
    newer: str = ""
    """The newest tag that is written like the version asked for (``v1.2.0`` for ``v1.0.0``); it takes naming it.

    For a range, the newest tag beyond it.
    """
    status: Literal["outdated", "failed"] = "outdated"
    """``"failed"``: the source could not be asked, so nobody knows of anything newer, and ``newest`` is empty."""
    why: str = ""
    """Why the source could not be asked."""
    location: ScopeName = "project"
    """Whose install it is: the ``"project"``'s or the ``"user"``'s."""
    wanted: str = ""
    """The tag that a range (``^1.2``) chooses now; ``""`` when a tag, a branch or a commit was asked for."""
    update: Update | None = None
    """The update to it, with what it adds and the diff from what the lock file records; only when this was asked for.

    Where the version that was asked for has nothing newer, it is the update to the tag ``newer``.
    """


def find_newer_versions(
    context: InstallContext, scopes: Sequence[InstallScope], *, updates: bool = False
) -> tuple[Outdated, ...]:
    """Return the installs of some scopes whose source has something newer, or could not be asked.

    With ``updates``, each has the update to it, for which the files of the source are fetched.
    """
    context.begin_read(*scopes)
    entries = context.list_entries(scopes)
    access = context.access.for_entries(entries)
    findings: dict[int, list[Outdated | Issue]] = {}
    # Entries of one source follow each other, so that each source is opened once.
    ordered = sorted(enumerate(entries), key=lambda row: (row[1][1].source, row[1][1].ref))
    with LastOpenSource(access) as source:
        for index, (scope, entry) in report_steps(ordered, lambda row: row[1][1].name):
            try:
                findings[index] = [*_find_newer(entry, scope, source, access)]
            except SkillError as error:
                # One source that does not answer must not hide what the others have.
                why = f"the source of {entry.name} could not be asked: {error.message}"
                issue = Issue(error.code, entry.name, why, error.path, 0, "warning")
                findings[index] = [issue, _failed_check(entry, scope, why)]
    found = [finding for index in range(len(entries)) for finding in findings[index]]
    context.issues += tuple(finding for finding in found if isinstance(finding, Issue))
    outdated = [finding for finding in found if isinstance(finding, Outdated)]
    return tuple(_with_updates(outdated, entries, access) if updates else outdated)


def _with_updates(
    outdated: Sequence[Outdated], entries: Sequence[tuple[InstallScope, LockEntry]], access: SourceAccess
) -> list[Outdated]:
    """Return the same with the update of each; a source that could not be asked has none."""
    installs = {(scope.location, entry.name): (scope, entry) for scope, entry in entries}
    wanted = {
        index: WantedUpdate(*installs[one.location, one.name], one.ref if one.newest != one.current else one.newer)
        for index, one in enumerate(outdated)
        if one.status != "failed"
    }
    outcomes = UpdateRun(access, dry_run=True, compares_lock=True).update_all([*wanted.values()])
    found = {index: update for index, (update, _) in zip(wanted, outcomes, strict=True)}
    return [replace(one, update=found.get(index)) for index, one in enumerate(outdated)]


def _failed_check(entry: LockEntry, scope: InstallScope, why: str) -> Outdated:
    current = entry.commit or entry.digest
    return Outdated(entry.name, entry.ref, current, "", status="failed", why=why, location=scope.location)


def _find_newer(
    entry: LockEntry, scope: InstallScope, source: LastOpenSource, access: SourceAccess
) -> Iterator[Outdated | Issue]:
    """What the source of an entry has that is not installed; nothing when all of it is.

    A warning says that the source went back behind what is installed, which is nothing newer, or that a site does not
    answer; with the latter goes an ``Outdated`` that failed. Raises ``SkillError`` when the source cannot be asked.
    """
    # A version that is a commit, by its id or the first digits of it, never gets old.
    is_at_commit = is_commit(entry.ref) or (is_short_commit(entry.ref) and entry.commit.startswith(entry.ref))
    if entry.kind == "adopted" or is_at_commit:
        return
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    issues: list[Issue] = []
    tags: Collection[str] = ()
    rollback = None
    if spec.kind in {"git", "oci"}:
        remote = access.versions_of(spec)
        newest, current = remote.resolve_ref(entry.ref), entry.commit
        # Listing tags costs a request, and only a version with numbers, such as v1.2, can have later ones.
        tags = remote.list_tags() if has_numbers(entry.ref) else ()
        rollback = find_rollback(entry, newest, spec, access)
    else:
        # Only a repository shows its newest version without giving its files.
        with wrap_os_errors():
            source_files = source.open_source(spec)
            newest, current = tree_for_entry(entry, source_files, spec, access.limits).digest, entry.digest
            issues = select_stale_issues(source_files.issues)
        tags = {version for skill in entry.skills for version in source_files.versions.get(skill, ())}
    wanted = find_latest_in_range(entry.ref, tags) if is_range(entry.ref) else ""
    tag = find_later_version(wanted or entry.ref, tags) if wanted or entry.ref in tags else ""
    # What a rollback offers is not newer, so it is not reported as outdated.
    if rollback is not None:
        newest, wanted, issues = current, "", [rollback]
    yield from issues
    why = describe_unreachable(entry, issues)
    if why:
        yield _failed_check(entry, scope, why)
    elif newest != current or tag:
        yield Outdated(entry.name, entry.ref, current, newest, tag, location=scope.location, wanted=wanted)

"""The disk made equal to the lock file, and the lock file to the manifest."""

from __future__ import annotations

import json
import posixpath
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue, LockMismatchError, SkillError
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.agent_links import LinkFolders
from prowess.install.copied_installs import read_whole_copies
from prowess.install.entry_source import is_from_source, is_sourceless, spec_of_entry
from prowess.install.fetch_source import BATCH_BYTES, LastOpenSource
from prowess.install.manifest import declared_places, manifest_file_name, read_declarations
from prowess.install.stage import InstallOptions, InstallRequest, remove_installs, stage_install
from prowess.install.store import open_store
from prowess.install.tree import InstallTree, read_recorded_tree
from prowess.lockfile.compare import (
    compare_install,
    describe_differences,
    find_unrecorded_installs,
    get_install_state,
    verify_scope,
)
from prowess.lockfile.read import read_lock
from prowess.progress_steps import report_steps
from prowess.spec.source_spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from prowess.install.fetch_source import SourceAccess
    from prowess.install.manifest import Declaration
    from prowess.limits import Limits
    from prowess.lockfile.compare import Difference
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope

_MAX_SHOWN = 5
_STATE_PHRASES = {"missing": "it is missing", "unlinked": "a link to it is missing or leads elsewhere"}


class ManifestDiff(NamedTuple):
    """What keeps the lock file from saying what the manifest declares."""

    missing: tuple[Declaration, ...]
    """Declared, and not recorded."""
    undeclared: tuple[str, ...]
    """Recorded as declared, and not declared any more, nor taken by another declaration."""
    unmarked: dict[str, Declaration]
    """Recorded from the same source and version, but not as declared."""
    moved: dict[str, Declaration]
    """Recorded, and declared now from another source or at another version; the declaration is in ``missing``."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.missing or self.undeclared or self.unmarked)


def compare_manifest(
    declared: tuple[Declaration, ...] | None, locked: LockEntries, scope: InstallScope
) -> ManifestDiff:
    """How the manifest and the lock file differ."""
    wanted = declared or ()
    texts = {one.text for one in wanted}
    by_text: dict[str, list[LockEntry]] = {}
    for entry in locked.values():
        by_text.setdefault(entry.declared, []).append(entry)
    open_ = [one for one in wanted if not _is_fully_recorded(one, by_text.get(one.text, ()))]
    same = {name: one for one in open_ for name in _find_matching_entries(one, locked, scope)}
    recorded = {one.text for one in same.values()}
    missing = tuple(one for one in open_ if one.text not in recorded)
    moved = {
        name: one
        for one in missing
        for name in declared_places(one)
        if name in locked and may_give_way(locked[name], one, texts, scope)
    }
    gone = [name for name, entry in locked.items() if entry.declared and entry.declared not in texts]
    return ManifestDiff(missing, tuple(name for name in gone if name not in same and name not in moved), same, moved)


def may_give_way(entry: LockEntry, one: Declaration, texts: Collection[str], scope: InstallScope) -> bool:
    """Whether an install makes room for a declaration without being asked for.

    It does when the manifest declared it, and declares it no more (``texts`` are its declarations now) or by this very
    declaration; and when it was installed by hand from the same source. Whatever else is there has to be removed first.
    """
    if entry.declared:
        return entry.declared == one.text or entry.declared not in texts
    return is_from_source(entry, one.spec, scope)


def _is_fully_recorded(one: Declaration, entries: Sequence[LockEntry]) -> bool:
    """Whether the lock file has all of a declaration, as it is declared: an update or a removal may have changed it.

    ``entries`` are those that the lock file has by this declaration.
    """
    if not all(_has_declared_settings(entry, one) for entry in entries):
        return False
    return (
        all(any(_is_skill_named(entry, skill) for entry in entries) for skill in one.spec.skills) if entries else False
    )


def _has_declared_settings(entry: LockEntry, one: Declaration) -> bool:
    """Whether an entry has the version that is declared, and is linked, or copied, for the agents that are."""
    is_version = entry.kind != "git" or entry.ref == one.spec.ref
    return is_version and entry.mode == one.mode and set(one.agents) <= set(entry.agents)


def _is_skill_named(entry: LockEntry, skill: str) -> bool:
    """Whether an entry is the one skill of its source that goes by that name: its own, or that of its folder."""
    return skill in {entry.select, posixpath.basename(entry.subpath), entry.name.partition("/")[2]}


def _find_matching_entries(one: Declaration, locked: LockEntries, scope: InstallScope) -> list[str]:
    """The entries that an install of exactly this source and version made, declared otherwise or not at all."""
    names = declared_places(one)
    fitting = [name for name in names if name in locked and _is_install_of(locked[name], one, scope)]
    return fitting if len(fitting) == len(names) else []


def _is_install_of(entry: LockEntry, one: Declaration, scope: InstallScope) -> bool:
    """Whether an entry is what a declaration would install: source, version, part, mode and agents."""
    spec = one.spec
    part = entry.subpath if not spec.skills else entry.subpath[: len(spec.subpath)]
    is_part = part == spec.subpath and bool(entry.select) == bool(spec.skills)
    is_source = entry.kind == spec.kind and entry.ref == spec.ref and is_from_source(entry, spec, scope)
    is_linked = set(entry.agents) == {*one.agents, *agents_linked_by_hand(entry)}
    return is_source and is_part and is_linked and entry.mode == one.mode


def agents_linked_by_hand(entry: LockEntry) -> tuple[str, ...]:
    """The agents that an entry is linked for, but for those that its declaration named.

    Links that somebody asked for by hand stay whatever the manifest says; those that it asked for go with that.
    """
    table: object = None
    with suppress(ValueError, RecursionError):  # a declaration that is a source alone, or that nobody can read
        table = json.loads(entry.declared)
    named = table.get("agents", ()) if isinstance(table, dict) else ()
    return tuple(agent for agent in entry.agents if agent not in named)


def restore_installs(
    scope: InstallScope,
    reach: SourceAccess,
    errors: list[SkillError],
    recorded: LockEntries | None = None,
    *,
    locked: bool,
) -> tuple[list[str], list[Issue]]:
    """Put back whatever is not as the lock file says; the names. ``locked``: what someone edited is an error.

    What has no source is passed over, with a word. What cannot be put back is added to ``errors``, after which the
    others still are; with ``locked`` it is raised. ``recorded``: what the lock file says, where that is known.
    """
    done: list[str] = []
    issues: list[Issue] = []
    waiting: list[tuple[LockEntry, InstallTree]] = []
    size = 0

    def flush_batch() -> None:
        nonlocal size
        names, more = _restore_batch(scope, waiting, reach, errors, locked=locked)
        done.extend(names)
        issues.extend(more)
        waiting.clear()
        size = 0

    unequal = [*_find_unequal(scope, reach, recorded, locked=locked)]  # whatever is refused, before anything is brought
    with LastOpenSource(reach) as source:
        for entry, found in sorted(unequal, key=lambda pair: (pair[0].source, pair[0].commit or pair[0].ref)):
            if _is_unrestorable(entry, found):
                issues.append(_unrestorable_issue(entry, found, scope))
                continue
            try:
                here = _read_installed_tree(entry, scope, reach) if found in {"unlinked", "copy"} else None
                tree = here or fetch_recorded_tree(entry, scope, source, reach.limits)
            except SkillError as error:
                if locked:
                    raise
                errors.append(error)
                continue
            waiting.append((entry, tree))
            size += sum(len(file.content) for file in tree.files)
            if size > BATCH_BYTES:
                flush_batch()
    flush_batch()
    return sorted(done), issues


def _restore_batch(
    scope: InstallScope,
    pairs: Sequence[tuple[LockEntry, InstallTree]],
    reach: SourceAccess,
    errors: list[SkillError],
    *,
    locked: bool,
) -> tuple[list[str], list[Issue]]:
    """Put back trees together, or where one of them cannot be, each by itself; the names, and what was met.

    To open the store, which reads the lock file, for each of thousands of trees would be quadratic.
    """
    if not pairs:
        return [], []
    try:
        issues = _restore_together(scope, pairs, reach, locked=locked)
    except SkillError as error:
        if locked:
            raise
        if len(pairs) > 1:
            alone = [_restore_batch(scope, [pair], reach, errors, locked=locked) for pair in pairs]
            return [name for names, _ in alone for name in names], [issue for _, more in alone for issue in more]
        errors.append(error)
        return [], []
    return [entry.name for entry, _ in pairs], [*issues]


def find_unrestorable(scope: InstallScope, reach: SourceAccess) -> list[Issue]:
    """The entries that no sync can put back, because nobody knows a source."""
    found = _find_unequal(scope, reach, locked=False)
    return [_unrestorable_issue(entry, how, scope) for entry, how in found if _is_unrestorable(entry, how)]


def _is_unrestorable(entry: LockEntry, found: str) -> bool:
    return is_sourceless(entry) and found in {"missing", "edited"}


def _unrestorable_issue(entry: LockEntry, found: str, scope: InstallScope) -> Issue:
    what = "is missing" if found == "missing" else "was changed by hand"
    message = f"{entry.name} {what}, and the lock file has no source that it could be fetched from"
    return Issue("no-source", entry.name, message, scope.install_folder(entry.name), 0, "warning")


def list_restores(scope: InstallScope, reach: SourceAccess) -> list[str]:
    """What a locked sync would put back, a line each; raises for what it would refuse. Nothing is fetched."""
    rows = [
        f"restore {entry.name} as the lock file records it: {_STATE_PHRASES[found]}"
        for entry, found in _find_unequal(scope, reach)
    ]
    locked = read_lock(scope.lock_folder, limits=reach.limits)
    for issue in find_unrecorded_installs(scope, locked):
        raise LockMismatchError(issue.message, issue.path)
    return rows


def _find_unequal(
    scope: InstallScope, reach: SourceAccess, recorded: LockEntries | None = None, *, locked: bool = True
) -> Iterator[tuple[LockEntry, str]]:
    """The entries that the disk does not equal, and how. ``locked``: what someone edited is an error."""
    landings = LinkFolders(scope)
    entries = recorded if recorded is not None else read_lock(scope.lock_folder, limits=reach.limits)
    for entry in report_steps([*entries.values()], lambda entry: entry.name):
        rows = [*compare_install(entry, scope, landings.path_of_link, reach.limits)]
        found = get_install_state(rows)
        if locked and found in {"edited", "copy"}:
            refuse_edited_install(entry, rows)
        if locked and _is_unrestorable(entry, found):
            issue = _unrestorable_issue(entry, found, scope)
            raise LockMismatchError(issue.message, issue.path, issue.code)
        if found != "equal":
            yield entry, found


def _read_installed_tree(entry: LockEntry, scope: InstallScope, reach: SourceAccess) -> InstallTree | None:
    """What is installed already, and is what the lock file says: only its links, or some of its copies, are missing.

    ``None`` for an install that is copies where none of them is whole.
    """
    if entry.is_copied:
        files = read_whole_copies(entry, LinkFolders(scope), reach.limits)
    else:
        files = tuple(NewFile(*file) for file in read_tree(scope.install_folder(entry.name), reach.limits).files)
    if files is None:
        return None
    return InstallTree(entry.name, entry.subpath, entry.select, files, dict(entry.skills))


def _restore_together(
    scope: InstallScope, pairs: Sequence[tuple[LockEntry, InstallTree]], reach: SourceAccess, *, locked: bool
) -> tuple[Issue, ...]:
    """Put trees and their links in place as their entries record them; what was met, such as backups that were made.

    ``locked``: the lock file stays as it is.
    """
    with open_store(scope, reach.limits, keep_lock=locked) as store:
        after = dict(store.locked)
        for entry, tree in pairs:
            spec = (
                _install_as_source(entry, scope) if is_sourceless(entry) else spec_of_entry(entry, scope, ref=entry.ref)
            )
            wishes = InstallOptions(entry.agents, replace=True, declared=entry.declared, copy=entry.is_copied)
            after, _ = stage_install(store, after, tree, InstallRequest(spec, entry.commit, wishes))
            after[entry.name] = replace(entry, copies=after[entry.name].copies, links=after[entry.name].links)
        store.commit(store.locked if locked else after)
        return store.issues


def _install_as_source(entry: LockEntry, scope: InstallScope) -> SourceSpec:
    """What stands for the source of an entry that has none: the install itself."""
    org, _, name = entry.name.partition("/")
    return SourceSpec("folder", scope.install_folder(entry.name), org, name, local=True)


def finish_sync(
    scope: InstallScope, declared: tuple[Declaration, ...] | None, limits: Limits, *, removes: bool
) -> tuple[Issue, ...]:
    """Mark what turned out to be declared; an issue for each backup, and for each install that nothing asks for.

    ``removes``: these are taken away, and what is in no lock file goes to the backups; otherwise they stay.
    """
    with open_store(scope, limits) as store:
        found = compare_manifest(declared, store.locked, scope)
        store.commit(with_declarations(store.locked, found.unmarked))
        if not removes:
            return (*store.issues, *find_surplus(found.undeclared, store.locked, scope))
        if found.undeclared:
            remove_installs(store, found.undeclared)
        for issue in find_unrecorded_installs(scope, store.locked):
            store.stage_removal(issue.field, keep="unknown")
        recorded = {link for entry in store.locked.values() for link in entry.links}
        for path in store.link_folders.find_links_into(
            scope.base
        ):  # ours, whatever became of the entry that recorded it
            if store.link_folders.to_lock_path(path) not in recorded:
                store.stage_unlink(path)
        store.commit(store.locked)
        return store.issues


SURPLUS_CODES = frozenset(("declared-no-more", "not-in-lock"))
"""The codes of what only a sync that may remove takes away."""


def find_surplus(spare: Iterable[str], locked: LockEntries, scope: InstallScope) -> Iterator[Issue]:
    """An issue for each install that the manifest declares no more, and for each that is in no lock file."""
    for name in spare:
        message = f"the manifest declares {name} no more"
        yield Issue("declared-no-more", name, message, scope.install_folder(name), 0, "warning")
    yield from find_unrecorded_installs(scope, locked)


def fetch_recorded_tree(entry: LockEntry, scope: InstallScope, source: LastOpenSource, limits: Limits) -> InstallTree:
    """Exactly what an entry records, from its source; ``LockMismatchError`` when the source gives anything else."""
    spec = spec_of_entry(entry, scope, ref=entry.commit or entry.ref)
    try:
        bundle = source.open_source(spec)
        tree = read_recorded_tree(bundle, entry, limits)
    except SkillError as error:
        raise error.about(f"{entry.name} from {entry.source}") from error.__cause__
    if tree.digest != entry.digest:
        was, now = entry.commit or "no commit", bundle.commit or "no commit"
        message = (
            f"{entry.name}: {entry.source} gives other content than the lock file says: "
            f"digest {tree.digest} ({now}), locked {entry.digest} ({was})"
        )
        raise LockMismatchError(message, scope.install_folder(entry.name))
    return tree


def refuse_edited_install(entry: LockEntry, rows: Sequence[Difference]) -> None:
    """Raise for an install, or a copy of it, that is there and is not what the lock file says."""
    edits = [row for row in rows if row.is_edit]
    said = describe_differences([row for row in edits if row.folder == edits[0].folder])
    raise LockMismatchError(f"{entry.name} is not what the lock file says: {said}", edits[0].folder)


def refuse_remaining_differences(scope: InstallScope, limits: Limits, *, changed: bool) -> None:
    """Raise when something is still not what the lock file says, after what was missing is there again.

    ``changed``: something was put back. Else every entry was found equal a moment ago, and only what is in no entry is
    looked for.
    """
    locked = read_lock(scope.lock_folder, limits=limits)
    rest = (
        verify_scope(scope, locked, LinkFolders(scope).path_of_link, limits)
        if changed
        else find_unrecorded_installs(scope, locked)
    )
    issues = list(rest)
    if issues:
        more = f"; and {len(issues) - _MAX_SHOWN} more" if len(issues) > _MAX_SHOWN else ""
        words = "; ".join(issue.message for issue in issues[:_MAX_SHOWN])
        raise LockMismatchError(f"not everything is as the lock file says: {words}{more}", issues[0].path)


def list_manifest_changes(found: ManifestDiff, locked: LockEntries, scope: InstallScope) -> list[str]:
    """What a sync would change so that the lock file says what the manifest declares, a line each."""
    changed = {name: one for name, one in found.moved.items() if _has_moved(locked[name], one, scope)}
    rows = [_describe_move(locked[name], one, scope) for name, one in changed.items()]
    moving = {one.text for one in changed.values()}
    rows += [f"install {one}, which the manifest declares" for one in found.missing if one.text not in moving]
    return rows + [f"record {name} as declared" for name in found.unmarked]


def _has_moved(entry: LockEntry, one: Declaration, scope: InstallScope) -> bool:
    """Whether an entry comes from elsewhere, is at another version, or of another mode, than a declaration has it."""
    return (entry.ref, entry.mode) != (one.spec.ref, one.mode) or not is_from_source(entry, one.spec, scope)


def _describe_move(entry: LockEntry, one: Declaration, scope: InstallScope) -> str:
    if entry.mode != one.mode and entry.ref == one.spec.ref and is_from_source(entry, one.spec, scope):
        return f"make {entry.name} {'copies' if one.mode else 'links'}, as the manifest declares"
    if not is_from_source(entry, one.spec, scope):
        return f"replace {entry.name}, which came from {entry.source}, by {one}, which the manifest declares"
    versions = f"{_describe_version(entry.ref)} → {_describe_version(one.spec.ref)}"
    return f"update {entry.name} {versions}, which the manifest declares"


def _describe_version(ref: str) -> str:
    return ref or "(no version)"


def find_still_declared(scope: InstallScope, entries: Iterable[LockEntry | None], limits: Limits) -> Iterator[Issue]:
    """A word for each entry that the manifest declares otherwise than the lock file has it by now."""
    names = {entry.declared: entry.name for entry in entries if entry is not None and entry.declared}
    if not names:  # the usual case, which need not read and compare both files
        return
    with suppress(InstallError):  # a manifest that makes no sense is told by the next sync
        found = compare_manifest(
            read_declarations(scope.lock_folder, limits), read_lock(scope.lock_folder, limits=limits), scope
        )
        for one in found.missing:
            if one.text in names:
                message = (
                    f"{manifest_file_name(scope.lock_folder)} still declares {one}: the next sync goes back to that"
                )
                yield Issue("still-declared", names[one.text], message, scope.lock_folder, 0, "warning")


def refuse_manifest_diff(found: ManifestDiff, locked: LockEntries, scope: InstallScope) -> None:
    """Raise when the lock file does not say what the manifest declares."""
    moved = found.moved.items()
    words = [f"{one} is declared, and {name} is locked {_describe_locked(locked[name], one)}" for name, one in moved]
    moving = {one.text for one in found.moved.values()}
    words += [f"{one} is declared and not locked" for one in found.missing if one.text not in moving]
    words += [f"{name} is locked and not declared any more" for name in found.undeclared]
    words += [f"{name} is locked and not recorded as declared" for name in found.unmarked]
    raise LockMismatchError(f"the lock file is out of date: {'; '.join(words)}", scope.lock_folder, "lock-outdated")


def _describe_locked(entry: LockEntry, one: Declaration) -> str:
    """In which other mode, or else at which other version, an entry is locked than is declared."""
    return (
        f"at {_describe_version(entry.ref)}" if entry.mode == one.mode else f"as {'copies' if entry.mode else 'links'}"
    )


def with_declarations(locked: LockEntries, same: dict[str, Declaration]) -> LockEntries:
    """The lock file's entries with those that turned out to be declared marked so."""
    return {n: replace(e, declared=same[n].text) if n in same else e for n, e in locked.items()}

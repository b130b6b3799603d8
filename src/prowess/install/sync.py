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
from prowess.install.agent_links import Landings
from prowess.install.copied_installs import read_whole_copies
from prowess.install.fetch_source import TOGETHER_BYTES, OpenSource
from prowess.install.install_tree import Arrival, Wishes, remove, stage
from prowess.install.lock_entries import comes_from, is_sourceless, spec_of_entry
from prowess.install.manifest import manifest_file, places, read_manifest
from prowess.install.store import opened
from prowess.install.tree import Tree, read_recorded_tree
from prowess.lockfile.compare import compare_install, describe_differences, find_unrecorded, state_of, verify_scope
from prowess.lockfile.read import read_lock
from prowess.progress_steps import stepped
from prowess.spec.source_spec import SourceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from prowess.install.fetch_source import Reach
    from prowess.install.manifest import Declared
    from prowess.limits import Limits
    from prowess.lockfile.compare import Difference
    from prowess.lockfile.read import Locked, LockedSkill
    from prowess.lockfile.scopes import Scope

_SHOWN = 5
_SAYS = {"missing": "it is missing", "unlinked": "a link to it is missing or leads elsewhere"}


class Gap(NamedTuple):
    """What keeps the lock file from saying what the manifest declares."""

    missing: tuple[Declared, ...]
    """Declared, and not recorded."""
    spare: tuple[str, ...]
    """Recorded as declared, and not declared any more, nor taken by another declaration."""
    same: dict[str, Declared]
    """Recorded from the same source and version, but not as declared."""
    moved: dict[str, Declared]
    """Recorded, and declared now from another source or at another version; the declaration is in ``missing``."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.missing or self.spare or self.same)


def gap(declared: tuple[Declared, ...] | None, locked: Locked, scope: Scope) -> Gap:
    """How the manifest and the lock file differ."""
    wanted = declared or ()
    texts = {one.text for one in wanted}
    by_text: dict[str, list[LockedSkill]] = {}
    for entry in locked.values():
        by_text.setdefault(entry.declared, []).append(entry)
    open_ = [one for one in wanted if not _is_recorded(one, by_text.get(one.text, ()))]
    same = {name: one for one in open_ for name in _same(one, locked, scope)}
    recorded = {one.text for one in same.values()}
    missing = tuple(one for one in open_ if one.text not in recorded)
    moved = {
        name: one
        for one in missing
        for name in places(one)
        if name in locked and gives_way(locked[name], one, texts, scope)
    }
    gone = [name for name, entry in locked.items() if entry.declared and entry.declared not in texts]
    return Gap(missing, tuple(name for name in gone if name not in same and name not in moved), same, moved)


def gives_way(entry: LockedSkill, one: Declared, texts: Collection[str], scope: Scope) -> bool:
    """Whether an install makes room for a declaration without being asked for.

    It does when the manifest declared it, and declares it no more (``texts`` are its declarations now) or by this very
    declaration; and when it was installed by hand from the same source. Whatever else is there has to be removed first.
    """
    if entry.declared:
        return entry.declared == one.text or entry.declared not in texts
    return comes_from(entry, one.spec, scope)


def _is_recorded(one: Declared, entries: Sequence[LockedSkill]) -> bool:
    """Whether the lock file has all of a declaration, as it is declared: an update or a removal may have changed it.

    ``entries`` are those that the lock file has by this declaration.
    """
    if not all(_is_as_declared(entry, one) for entry in entries):
        return False
    return all(any(_holds(entry, skill) for entry in entries) for skill in one.spec.skills) if entries else False


def _is_as_declared(entry: LockedSkill, one: Declared) -> bool:
    """Whether an entry has the version that is declared, and is linked, or copied, for the agents that are."""
    is_version = entry.kind != "git" or entry.ref == one.spec.ref
    return is_version and entry.mode == one.mode and set(one.agents) <= set(entry.agents)


def _holds(entry: LockedSkill, skill: str) -> bool:
    """Whether an entry is the one skill of its source that goes by that name: its own, or that of its folder."""
    return skill in {entry.select, posixpath.basename(entry.subpath), entry.name.partition("/")[2]}


def _same(one: Declared, locked: Locked, scope: Scope) -> list[str]:
    """The entries that an install of exactly this source and version made, declared otherwise or not at all."""
    names = places(one)
    fitting = [name for name in names if name in locked and _is_same(locked[name], one, scope)]
    return fitting if len(fitting) == len(names) else []


def _is_same(entry: LockedSkill, one: Declared, scope: Scope) -> bool:
    """Whether an entry is what a declaration would install: source, version, part, mode and agents."""
    spec = one.spec
    part = entry.subpath if not spec.skills else entry.subpath[: len(spec.subpath)]
    is_part = part == spec.subpath and bool(entry.select) == bool(spec.skills)
    is_source = entry.kind == spec.kind and entry.ref == spec.ref and comes_from(entry, spec, scope)
    is_linked = set(entry.agents) == {*one.agents, *agents_by_hand(entry)}
    return is_source and is_part and is_linked and entry.mode == one.mode


def agents_by_hand(entry: LockedSkill) -> tuple[str, ...]:
    """The agents that an entry is linked for, but for those that its declaration named.

    Links that somebody asked for by hand stay whatever the manifest says; those that it asked for go with that.
    """
    table: object = None
    with suppress(ValueError, RecursionError):  # a declaration that is a source alone, or that nobody can read
        table = json.loads(entry.declared)
    named = table.get("agents", ()) if isinstance(table, dict) else ()
    return tuple(agent for agent in entry.agents if agent not in named)


def restored(
    scope: Scope, reach: Reach, errors: list[SkillError], recorded: Locked | None = None, *, locked: bool
) -> tuple[list[str], list[Issue]]:
    """Put back whatever is not as the lock file says; the names. ``locked``: what someone edited is an error.

    What has no source is passed over, with a word. What cannot be put back is added to ``errors``, after which the
    others still are; with ``locked`` it is raised. ``recorded``: what the lock file says, where that is known.
    """
    done: list[str] = []
    issues: list[Issue] = []
    waiting: list[tuple[LockedSkill, Tree]] = []
    size = 0

    def put_back() -> None:
        nonlocal size
        names, more = _restore_all(scope, waiting, reach, errors, locked=locked)
        done.extend(names)
        issues.extend(more)
        waiting.clear()
        size = 0

    unequal = [*_unequal(scope, reach, recorded, locked=locked)]  # whatever is refused, before anything is brought
    with OpenSource(reach) as source:
        for entry, found in sorted(unequal, key=lambda pair: (pair[0].source, pair[0].commit or pair[0].ref)):
            if _is_lost(entry, found):
                issues.append(_lost(entry, found, scope))
                continue
            try:
                here = _here(entry, scope, reach) if found in {"unlinked", "copy"} else None
                tree = here or fetched(entry, scope, source, reach.limits)
            except SkillError as error:
                if locked:
                    raise
                errors.append(error)
                continue
            waiting.append((entry, tree))
            size += sum(len(file.content) for file in tree.files)
            if size > TOGETHER_BYTES:
                put_back()
    put_back()
    return sorted(done), issues


def _restore_all(
    scope: Scope, pairs: Sequence[tuple[LockedSkill, Tree]], reach: Reach, errors: list[SkillError], *, locked: bool
) -> tuple[list[str], list[Issue]]:
    """Put back trees together, or where one of them cannot be, each by itself; the names, and what was met.

    To open the store, which reads the lock file, for each of thousands of trees would be quadratic.
    """
    if not pairs:
        return [], []
    try:
        issues = _restore(scope, pairs, reach, locked=locked)
    except SkillError as error:
        if locked:
            raise
        if len(pairs) > 1:
            alone = [_restore_all(scope, [pair], reach, errors, locked=locked) for pair in pairs]
            return [name for names, _ in alone for name in names], [issue for _, more in alone for issue in more]
        errors.append(error)
        return [], []
    return [entry.name for entry, _ in pairs], [*issues]


def lost(scope: Scope, reach: Reach) -> list[Issue]:
    """The entries that no sync can put back, because nobody knows a source."""
    found = _unequal(scope, reach, locked=False)
    return [_lost(entry, how, scope) for entry, how in found if _is_lost(entry, how)]


def _is_lost(entry: LockedSkill, found: str) -> bool:
    return is_sourceless(entry) and found in {"missing", "edited"}


def _lost(entry: LockedSkill, found: str, scope: Scope) -> Issue:
    what = "is missing" if found == "missing" else "was changed by hand"
    message = f"{entry.name} {what}, and the lock file has no source that it could be fetched from"
    return Issue("no-source", entry.name, message, scope.place(entry.name), 0, "warning")


def to_restore(scope: Scope, reach: Reach) -> list[str]:
    """What a locked sync would put back, a line each; raises for what it would refuse. Nothing is fetched."""
    rows = [
        f"restore {entry.name} as the lock file records it: {_SAYS[found]}" for entry, found in _unequal(scope, reach)
    ]
    locked = read_lock(scope.records, limits=reach.limits)
    for issue in find_unrecorded(scope, locked):
        raise LockMismatchError(issue.message, issue.path)
    return rows


def _unequal(
    scope: Scope, reach: Reach, recorded: Locked | None = None, *, locked: bool = True
) -> Iterator[tuple[LockedSkill, str]]:
    """The entries that the disk does not equal, and how. ``locked``: what someone edited is an error."""
    landings = Landings(scope)
    entries = recorded if recorded is not None else read_lock(scope.records, limits=reach.limits)
    for entry in stepped([*entries.values()], lambda entry: entry.name):
        rows = [*compare_install(entry, scope, landings.path, reach.limits)]
        found = state_of(rows)
        if locked and found in {"edited", "copy"}:
            refuse_edited(entry, rows)
        if locked and _is_lost(entry, found):
            issue = _lost(entry, found, scope)
            raise LockMismatchError(issue.message, issue.path, issue.code)
        if found != "equal":
            yield entry, found


def _here(entry: LockedSkill, scope: Scope, reach: Reach) -> Tree | None:
    """What is installed already, and is what the lock file says: only its links, or some of its copies, are missing.

    ``None`` for an install that is copies where none of them is whole.
    """
    if entry.is_copied:
        files = read_whole_copies(entry, Landings(scope), reach.limits)
    else:
        files = tuple(NewFile(*file) for file in read_tree(scope.place(entry.name), reach.limits).files)
    if files is None:
        return None
    return Tree(entry.name, entry.subpath, entry.select, files, dict(entry.skills))


def _restore(
    scope: Scope, pairs: Sequence[tuple[LockedSkill, Tree]], reach: Reach, *, locked: bool
) -> tuple[Issue, ...]:
    """Put trees and their links in place as their entries record them; what was met, such as backups that were made.

    ``locked``: the lock file stays as it is.
    """
    with opened(scope, reach.limits, keep_lock=locked) as store:
        after = dict(store.locked)
        for entry, tree in pairs:
            spec = _own(entry, scope) if is_sourceless(entry) else spec_of_entry(entry, scope, ref=entry.ref)
            wishes = Wishes(entry.agents, replace=True, declared=entry.declared, copy=entry.is_copied)
            after, _ = stage(store, after, tree, Arrival(spec, entry.commit, wishes))
            after[entry.name] = replace(entry, copies=after[entry.name].copies, links=after[entry.name].links)
        store.commit(store.locked if locked else after)
        return store.issues


def _own(entry: LockedSkill, scope: Scope) -> SourceSpec:
    """What stands for the source of an entry that has none: the install itself."""
    org, _, name = entry.name.partition("/")
    return SourceSpec("folder", scope.place(entry.name), org, name, local=True)


def settle(scope: Scope, declared: tuple[Declared, ...] | None, limits: Limits, *, removes: bool) -> tuple[Issue, ...]:
    """Mark what turned out to be declared; an issue for each backup, and for each install that nothing asks for.

    ``removes``: these are taken away, and what is in no lock file goes to the backups; otherwise they stay.
    """
    with opened(scope, limits) as store:
        found = gap(declared, store.locked, scope)
        store.commit(as_declared(store.locked, found.same))
        if not removes:
            return (*store.issues, *find_surplus(found.spare, store.locked, scope))
        if found.spare:
            remove(store, found.spare)
        for issue in find_unrecorded(scope, store.locked):
            store.drop(issue.field, keep="unknown")
        recorded = {link for entry in store.locked.values() for link in entry.links}
        for path in store.landings.links_into(scope.base):  # ours, whatever became of the entry that recorded it
            if store.landings.recorded(path) not in recorded:
                store.unlink(path)
        store.commit(store.locked)
        return store.issues


SURPLUS_CODES = frozenset(("declared-no-more", "not-in-lock"))
"""The codes of what only a sync that may remove takes away."""


def find_surplus(spare: Iterable[str], locked: Locked, scope: Scope) -> Iterator[Issue]:
    """An issue for each install that the manifest declares no more, and for each that is in no lock file."""
    for name in spare:
        message = f"the manifest declares {name} no more"
        yield Issue("declared-no-more", name, message, scope.place(name), 0, "warning")
    yield from find_unrecorded(scope, locked)


def fetched(entry: LockedSkill, scope: Scope, source: OpenSource, limits: Limits) -> Tree:
    """Exactly what an entry records, from its source; ``LockMismatchError`` when the source gives anything else."""
    spec = spec_of_entry(entry, scope, ref=entry.commit or entry.ref)
    try:
        bundle = source.bundle(spec)
        tree = read_recorded_tree(bundle, entry, limits)
    except SkillError as error:
        raise error.about(f"{entry.name} from {entry.source}") from error.__cause__
    if tree.digest != entry.digest:
        was, now = entry.commit or "no commit", bundle.commit or "no commit"
        message = (
            f"{entry.name}: {entry.source} gives other content than the lock file says: "
            f"digest {tree.digest} ({now}), locked {entry.digest} ({was})"
        )
        raise LockMismatchError(message, scope.place(entry.name))
    return tree


def refuse_edited(entry: LockedSkill, rows: Sequence[Difference]) -> None:
    """Raise for an install, or a copy of it, that is there and is not what the lock file says."""
    edits = [row for row in rows if row.is_edit]
    said = describe_differences([row for row in edits if row.folder == edits[0].folder])
    raise LockMismatchError(f"{entry.name} is not what the lock file says: {said}", edits[0].folder)


def refuse_rest(scope: Scope, limits: Limits, *, changed: bool) -> None:
    """Raise when something is still not what the lock file says, after what was missing is there again.

    ``changed``: something was put back. Else every entry was found equal a moment ago, and only what is in no entry is
    looked for.
    """
    locked = read_lock(scope.records, limits=limits)
    rest = verify_scope(scope, locked, Landings(scope).path, limits) if changed else find_unrecorded(scope, locked)
    issues = list(rest)
    if issues:
        more = f"; and {len(issues) - _SHOWN} more" if len(issues) > _SHOWN else ""
        words = "; ".join(issue.message for issue in issues[:_SHOWN])
        raise LockMismatchError(f"not everything is as the lock file says: {words}{more}", issues[0].path)


def to_settle(found: Gap, locked: Locked, scope: Scope) -> list[str]:
    """What a sync would change so that the lock file says what the manifest declares, a line each."""
    changed = {name: one for name, one in found.moved.items() if _differs(locked[name], one, scope)}
    rows = [_moving(locked[name], one, scope) for name, one in changed.items()]
    moving = {one.text for one in changed.values()}
    rows += [f"install {one}, which the manifest declares" for one in found.missing if one.text not in moving]
    return rows + [f"record {name} as declared" for name in found.same]


def _differs(entry: LockedSkill, one: Declared, scope: Scope) -> bool:
    """Whether an entry comes from elsewhere, is at another version, or of another mode, than a declaration has it."""
    return (entry.ref, entry.mode) != (one.spec.ref, one.mode) or not comes_from(entry, one.spec, scope)


def _moving(entry: LockedSkill, one: Declared, scope: Scope) -> str:
    if entry.mode != one.mode and entry.ref == one.spec.ref and comes_from(entry, one.spec, scope):
        return f"make {entry.name} {'copies' if one.mode else 'links'}, as the manifest declares"
    if not comes_from(entry, one.spec, scope):
        return f"replace {entry.name}, which came from {entry.source}, by {one}, which the manifest declares"
    return f"update {entry.name} {_version(entry.ref)} → {_version(one.spec.ref)}, which the manifest declares"


def _version(ref: str) -> str:
    return ref or "(no version)"


def still_declared(scope: Scope, entries: Iterable[LockedSkill | None], limits: Limits) -> Iterator[Issue]:
    """A word for each entry that the manifest declares otherwise than the lock file has it by now."""
    names = {entry.declared: entry.name for entry in entries if entry is not None and entry.declared}
    if not names:  # the usual case, which need not read and compare both files
        return
    with suppress(InstallError):  # a manifest that makes no sense is told by the next sync
        found = gap(read_manifest(scope.records, limits), read_lock(scope.records, limits=limits), scope)
        for one in found.missing:
            if one.text in names:
                message = f"{manifest_file(scope.records)} still declares {one}: the next sync goes back to that"
                yield Issue("still-declared", names[one.text], message, scope.records, 0, "warning")


def refuse_gap(found: Gap, locked: Locked, scope: Scope) -> None:
    """Raise when the lock file does not say what the manifest declares."""
    moved = found.moved.items()
    words = [f"{one} is declared, and {name} is locked {_standing(locked[name], one)}" for name, one in moved]
    moving = {one.text for one in found.moved.values()}
    words += [f"{one} is declared and not locked" for one in found.missing if one.text not in moving]
    words += [f"{name} is locked and not declared any more" for name in found.spare]
    words += [f"{name} is locked and not recorded as declared" for name in found.same]
    raise LockMismatchError(f"the lock file is out of date: {'; '.join(words)}", scope.records, "lock-outdated")


def _standing(entry: LockedSkill, one: Declared) -> str:
    """In which other mode, or else at which other version, an entry is locked than is declared."""
    return f"at {_version(entry.ref)}" if entry.mode == one.mode else f"as {'copies' if entry.mode else 'links'}"


def as_declared(locked: Locked, same: dict[str, Declared]) -> Locked:
    """The lock file's entries with those that turned out to be declared marked so."""
    return {n: replace(e, declared=same[n].text) if n in same else e for n, e in locked.items()}

"""The disk made equal to the lock file, and the lock file to the manifest."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import LockMismatchError
from prowess.files.folders import exists
from prowess.files.trees import is_link, read_tree
from prowess.files.writing import NewFile
from prowess.install.apply import Arrival, Wishes, remove, stage
from prowess.install.entries import differences, named, recorded_source, spec_of_entry
from prowess.install.links import Landings, leads_to
from prowess.install.store import opened
from prowess.install.trees import Tree, cut
from prowess.install.verify import verify_scope
from prowess.library.installs import installed
from prowess.library.lock import read_lock
from prowess.spec.refs import link_name
from prowess.steps import stepped

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.install.fetch import Reach
    from prowess.install.manifest import Declared
    from prowess.library.installs import Scope
    from prowess.library.lock import Locked, LockedSkill
    from prowess.limits import Limits

_SHOWN = 5
_SAYS = {"missing": "it is missing", "unlinked": "a link to it is missing or leads elsewhere"}


class Gap(NamedTuple):
    """What keeps the lock file from saying what the manifest declares."""

    missing: tuple[Declared, ...]
    """Declared, and not recorded."""
    spare: tuple[str, ...]
    """Recorded as declared, and not declared any more."""
    same: dict[str, Declared]
    """Recorded from the same source and version, but not as declared."""

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.missing or self.spare or self.same)


def gap(declared: tuple[Declared, ...] | None, locked: Locked, scope: Scope) -> Gap:
    """How the manifest and the lock file differ."""
    wanted = declared or ()
    texts = {one.text for one in wanted}
    recorded = {entry.declared for entry in locked.values()}
    spare = [name for name, entry in locked.items() if entry.declared and entry.declared not in texts]
    open_ = [one for one in wanted if one.text not in recorded]
    same = {name: one for one in open_ for name in _same(one, locked, scope)}
    return Gap(tuple(one for one in open_ if one not in same.values()), tuple(spare), same)


def _same(one: Declared, locked: Locked, scope: Scope) -> list[str]:
    """The entries that an undeclared install of exactly this source made."""
    source = recorded_source(one.spec, scope)
    names = {f"{one.spec.org}/{link_name(skill)}" for skill in one.spec.skills} or {one.spec.full_name}
    fitting = [n for n in names if n in locked and (locked[n].source, locked[n].ref) == (source, one.spec.ref)]
    return fitting if len(fitting) == len(names) else []


def restored(scope: Scope, reach: Reach, *, locked: bool) -> list[str]:
    """Put back whatever is not as the lock file says; the names. ``locked``: what someone edited is an error."""
    done: list[str] = []
    for entry, found in _unequal(scope, reach, locked=locked):
        here = found in {"unlinked", "copy"}
        _restore(scope, entry, _here(entry, scope, reach) if here else fetched(entry, scope, reach), reach)
        done.append(entry.name)
    return done


def to_restore(scope: Scope, reach: Reach) -> list[str]:
    """What a locked sync would put back, a line each; raises for what it would refuse. Nothing is fetched."""
    rows = [
        f"restore {entry.name} as the lock file records it: {_SAYS[found]}" for entry, found in _unequal(scope, reach)
    ]
    locked = read_lock(scope.records, limits=reach.limits)
    for one in installed(scope):
        if one.full_name not in locked:
            raise LockMismatchError(f"{one.full_name} is not in the lock file", str(one.path))
    return rows


def _unequal(scope: Scope, reach: Reach, *, locked: bool = True) -> Iterator[tuple[LockedSkill, str]]:
    """The entries that the disk does not equal, and how. ``locked``: what someone edited is an error."""
    landings = Landings(scope)
    for entry in stepped([*read_lock(scope.records, limits=reach.limits).values()], lambda entry: entry.name):
        found = state(entry, scope, landings, reach)
        if locked and found in {"edited", "copy"}:
            refuse_edited(entry, scope, landings, reach)
        if found != "equal":
            yield entry, found


def _here(entry: LockedSkill, scope: Scope, reach: Reach) -> Tree:
    """What is installed already, and is what the lock file says: only its links are missing."""
    files = tuple(NewFile(*file) for file in read_tree(scope.place(entry.name), reach.limits).files)
    return Tree(entry.name, entry.subpath, entry.select, files, dict(entry.skills))


def _restore(scope: Scope, entry: LockedSkill, tree: Tree, reach: Reach) -> None:
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    wishes = Wishes(entry.agents, replace=True, declared=entry.declared)
    with opened(scope, reach.limits) as store:
        after, _ = stage(store, store.locked, tree, Arrival(spec, entry.commit, wishes))
        kept = replace(entry, copies=after[entry.name].copies, links=after[entry.name].links)
        store.commit(after | {entry.name: kept})


def settle(scope: Scope, declared: tuple[Declared, ...] | None, limits: Limits) -> None:
    """Take away what is declared no more, or is in no lock file; mark what turned out to be declared."""
    with opened(scope, limits) as store:
        found = gap(declared, store.locked, scope)
        for name in found.spare:
            remove(store, name)
        store.commit(as_declared(store.locked, found.same))
        for one in installed(scope):
            if one.full_name not in store.locked:
                store.drop(one.full_name, keep=True)
        store.commit(store.locked)


def state(entry: LockedSkill, scope: Scope, landings: Landings, reach: Reach) -> str:
    """``"equal"``, ``"missing"``, ``"edited"``; ``"copy"`` or ``"unlinked"`` when only a copy or links differ."""
    place = scope.place(entry.name)
    rows = differences(entry, place, reach.limits)
    if rows:
        return "missing" if rows[0][0] == "missing-skill" else "edited"
    if any(edits_of_copy(entry, link, landings, reach.limits) for link in entry.links):
        return "copy"
    return "equal" if all(_is_linked(entry, link, scope, landings) for link in entry.links) else "unlinked"


def _is_linked(entry: LockedSkill, recorded: str, scope: Scope, landings: Landings) -> bool:
    path = landings.path(recorded)
    if recorded in entry.copies and not is_link(path):
        return exists(path)
    folder, place = entry.folder_of(os.path.basename(path)), scope.place(entry.name)
    return leads_to(path, os.path.join(place, *folder.split("/")) if folder else place)


def edits_of_copy(entry: LockedSkill, recorded: str, landings: Landings, limits: Limits) -> list[tuple[str, str]]:
    """How a copy that stands for a link differs from what the lock file says; nothing when it is not there."""
    path = landings.path(recorded)
    if recorded not in entry.copies or is_link(path) or not exists(path):
        return []
    return differences(replace(entry, files=entry.below(entry.folder_of(os.path.basename(path)))), path, limits)


def fetched(entry: LockedSkill, scope: Scope, reach: Reach) -> Tree:
    """Exactly what an entry records, from its source; ``LockMismatchError`` when the source gives anything else."""
    spec = spec_of_entry(entry, scope, ref=entry.commit or entry.ref)
    with reach.opened(spec) as bundle:
        tree = cut(bundle, spec, reach.limits)[0]._replace(name=entry.name, select=entry.select)
        commit = bundle.commit
    if tree.digest != entry.digest:
        was, now = entry.commit or "no commit", commit or "no commit"
        message = (
            f"{entry.name}: {entry.source} gives other content than the lock file says: "
            f"digest {tree.digest} ({now}), locked {entry.digest} ({was})"
        )
        raise LockMismatchError(message, scope.place(entry.name))
    return tree._replace(skills=dict(entry.skills))


def refuse_edited(entry: LockedSkill, scope: Scope, landings: Landings, reach: Reach) -> None:
    """Raise for an install, or a copy of it, that is there and is not what the lock file says."""
    place = scope.place(entry.name)
    rows = differences(entry, place, reach.limits)
    for link in entry.links if not rows else ():
        rows = edits_of_copy(entry, link, landings, reach.limits)
        if rows:
            place = landings.path(link)
            break
    raise LockMismatchError(f"{entry.name} is not what the lock file says: {named(rows)}", place)


def refuse_rest(scope: Scope, limits: Limits) -> None:
    """Raise when something is still not what the lock file says, after what was missing is there again."""
    issues = list(verify_scope(scope, read_lock(scope.records, limits=limits), Landings(scope), limits))
    if issues:
        more = f"; and {len(issues) - _SHOWN} more" if len(issues) > _SHOWN else ""
        words = "; ".join(issue.message for issue in issues[:_SHOWN])
        raise LockMismatchError(f"not everything is as the lock file says: {words}{more}", issues[0].path)


def refuse_gap(found: Gap, scope: Scope) -> None:
    """Raise when the lock file does not say what the manifest declares."""
    words = [f"{one.text} is declared and not locked" for one in found.missing]
    words += [f"{name} is locked and not declared any more" for name in found.spare]
    words += [f"{name} is locked and not recorded as declared" for name in found.same]
    raise LockMismatchError(f"the lock file is out of date: {'; '.join(words)}", scope.records, "lock-outdated")


def as_declared(locked: Locked, same: dict[str, Declared]) -> Locked:
    """The lock file's entries with those that turned out to be declared marked so."""
    return {n: replace(e, declared=same[n].text) if n in same else e for n, e in locked.items()}

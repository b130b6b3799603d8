"""The disk made equal to the lock file, and the lock file to the manifest."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import LockMismatchError
from prowess.files.trees import read_tree
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
    from prowess.install.fetch import Reach
    from prowess.install.manifest import Declared
    from prowess.library.installs import Scope
    from prowess.library.lock import Locked, LockedSkill
    from prowess.limits import Limits

_SHOWN = 5


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
    landings = Landings(scope)
    for entry in stepped([*read_lock(scope.records, limits=reach.limits).values()], lambda entry: entry.name):
        found = state(entry, scope, landings, reach)
        if found == "edited" and locked:
            refuse_edited(entry, scope, reach)
        if found != "equal":
            tree = _here(entry, scope, reach) if found == "unlinked" else fetched(entry, scope, reach)
            _restore(scope, entry, tree, reach)
            done.append(entry.name)
    return done


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
    """``"equal"``, ``"missing"``, ``"edited"``, or ``"unlinked"`` when only links are not as recorded."""
    place = scope.place(entry.name)
    rows = differences(entry, place, reach.limits)
    if rows:
        return "missing" if rows[0][0] == "missing-skill" else "edited"
    return "equal" if all(_is_linked(entry, link, scope, landings) for link in entry.links) else "unlinked"


def _is_linked(entry: LockedSkill, recorded: str, scope: Scope, landings: Landings) -> bool:
    path = landings.path(recorded)
    name = os.path.basename(path)
    folder = next((at for skill, at in entry.skills.items() if link_name(skill) == name), "")
    place = scope.place(entry.name)
    return recorded in entry.copies or leads_to(path, os.path.join(place, *folder.split("/")) if folder else place)


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


def refuse_edited(entry: LockedSkill, scope: Scope, reach: Reach) -> None:
    """Raise for an install that is there and is not what the lock file says."""
    place = scope.place(entry.name)
    rows = differences(entry, place, reach.limits)
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

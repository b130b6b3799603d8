"""Newer versions: whether there are any, what they change, and what someone changed by hand."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from prowess.errors import Issue, LocalEditsError, NotInstalledError, SkillError
from prowess.files.directory import exists
from prowess.files.tree import read_tree
from prowess.files.write import NewFile
from prowess.install.copied_installs import read_copies
from prowess.install.fetch_source import OLD_NEWS, TOGETHER_BYTES, OpenSource
from prowess.install.file_diffs import diff_files
from prowess.install.install_tree import Arrival, Wishes, stage
from prowess.install.lock_entries import not_here, spec_of_entry
from prowess.install.rollback import find_rollback
from prowess.install.store import look_into, opened
from prowess.install.system_errors import typed
from prowess.install.tree import cut, keep_skills, refuse_broken
from prowess.lockfile.compare import compare_folder, compare_install, describe_differences
from prowess.lockfile.scopes import copied_folders, place_of
from prowess.progress_steps import stepped
from prowess.spec.skill_ref import checked_version, is_commit, is_short_commit, link_name
from prowess.spec.source_spec import chosen
from prowess.spec.versions import is_numbered, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from prowess.install.agent_links import Landings
    from prowess.install.fetch_source import Reach
    from prowess.install.store import Store
    from prowess.install.tree import Bundle, Tree
    from prowess.limits import Limits
    from prowess.lockfile.compare import Difference
    from prowess.lockfile.read import Locked, LockedSkill
    from prowess.lockfile.scopes import Scope
    from prowess.spec.source_spec import SourceSpec

Status = Literal["updated", "current", "edited", "failed", "available"]


@dataclass(frozen=True, slots=True)
class Update:
    """What came of one update: the commits before and after, what changes, and why not if it did not."""

    name: str
    status: Status
    before: str
    after: str = ""
    diff: str = ""
    why: str = ""
    path: Path | None = None


@dataclass(frozen=True, slots=True)
class Outdated:
    """An install whose source has something newer, or could not be asked whether it has.

    It names the version asked for, the commit here and the one there.
    """

    name: str
    ref: str
    current: str
    newest: str
    newer: str = ""
    """The newest tag that is written like the version asked for (``v1.2.0`` for ``v1.0.0``); it takes naming it."""
    status: Literal["outdated", "failed"] = "outdated"
    """``"failed"``: the source could not be asked, so nobody knows of anything newer, and ``newest`` is empty."""
    why: str = ""
    """Why the source could not be asked."""


def at_version(entry: LockedSkill, version: str) -> LockedSkill:
    """The entry, moved to another version of its source.

    An entry that is moved has no commit: whoever names another version may go back with it.
    """
    moved = replace(entry, ref=checked_version(version), commit="") if version else entry
    return entry if moved.ref == entry.ref else moved


def try_newer(entry: LockedSkill, scope: Scope, reach: Reach) -> Iterator[Outdated | Issue]:
    """What ``newer`` yields; a source that cannot be asked is an ``Outdated`` that ``failed``, and an issue."""
    try:
        yield from newer(entry, scope, reach)
    except SkillError as error:
        why = f"the source of {entry.name} could not be asked: {error.message}"
        yield Issue(error.code, entry.name, why, error.path, 0, "warning")
        yield _not_known(entry, why)


def _not_known(entry: LockedSkill, why: str) -> Outdated:
    return Outdated(entry.name, entry.ref, entry.commit or entry.digest, "", status="failed", why=why)


def newer(entry: LockedSkill, scope: Scope, reach: Reach) -> Iterator[Outdated | Issue]:
    """What the source of an entry has that is not here; a commit that was asked for by its id never gets old.

    An issue says that the source went back behind what is here, which is nothing newer, or that it is away and only
    what it had before is known; an ``Outdated`` that ``failed`` goes with the latter. Raises ``SkillError`` when the
    source cannot be asked.
    """
    if entry.kind == "adopted" or _is_pinned(entry):
        return
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    tag = ""
    back: list[Issue] = []
    if spec.kind == "git":
        remote = reach.remote(spec)
        newest, current = remote.newest(entry.ref), entry.commit
        tags = remote.tags() if is_numbered(entry.ref) else ()
        tag = later(entry.ref, tags) if entry.ref in tags else ""
        issue = find_rollback(entry, newest, spec, reach)
        if issue is not None:
            newest, back = current, [issue]
    else:
        with typed(), reach.opened(spec) as bundle:
            newest, current = tree_for(entry, bundle, spec, reach.limits).digest, entry.digest
            back += _old_news(bundle)
    yield from back
    away = _why_unasked(entry, back)
    if away:
        yield _not_known(entry, away)
    elif newest != current or tag:
        yield Outdated(entry.name, entry.ref, current, newest, tag)


def _is_pinned(entry: LockedSkill) -> bool:
    """Whether an entry names its commit by its id, or by the first digits of it (and no branch of such a name)."""
    return is_commit(entry.ref) or (is_short_commit(entry.ref) and entry.commit.startswith(entry.ref))


def _old_news(bundle: Bundle) -> list[Issue]:
    """The issues that a site went back, or is away, and that what it had before is used."""
    return [issue for issue in bundle.issues if issue.code in OLD_NEWS]


def _why_unasked(entry: LockedSkill, issues: Sequence[Issue]) -> str:
    """The sentence that a site is away and only an old copy of its index is here; ``""`` where it answered."""
    away = next((issue for issue in issues if issue.code == "stale-index"), None)
    return "" if away is None else f"the source of {entry.name} could not be asked: {away.message}"


class Newer(NamedTuple):
    """What the source of an entry has now, to be put in place of what is here."""

    scope: Scope
    entry: LockedSkill
    tree: Tree
    arrival: Arrival
    issues: tuple[Issue, ...]


Outcome = tuple[Update, tuple[Issue, ...]]
"""What came of one update, and what is worth saying about it."""


def update_all(
    entries: Sequence[tuple[Scope, LockedSkill]],
    reach: Reach,
    force: bool,  # noqa: FBT001 - as the caller said
    dry_run: bool,  # noqa: FBT001
) -> list[Outcome]:
    """Bring many entries to what their sources have now, in their order; what keeps one from it is its status.

    Each source is opened once, and what came of all of them is put in place together: to do so for each of thousands
    would go through the sources and the lock file as often.
    """
    outcomes: dict[int, Outcome] = {}
    waiting: dict[int, Newer] = {}
    size = 0
    ordered = sorted(enumerate(entries), key=lambda row: (row[1][1].source, row[1][1].ref))
    with OpenSource(reach) as source:
        for at, (scope, entry) in stepped(ordered, lambda row: row[1][1].name):
            try:
                came = fetch_newer(scope, entry, source, reach)
            except SkillError as error:
                came = _prevented(entry, error)
            if not isinstance(came, Newer):
                outcomes[at] = came
                continue
            waiting[at] = came
            size += sum(len(file.content) for file in came.tree.files)
            if size > TOGETHER_BYTES:
                outcomes |= _put_all(waiting, reach.limits, force, dry_run)
                waiting, size = {}, 0
    outcomes |= _put_all(waiting, reach.limits, force, dry_run)
    return [outcomes[at] for at in range(len(entries))]


def _prevented(entry: LockedSkill, error: SkillError) -> Outcome:
    """The status of an entry that something keeps from being updated."""
    status: Status = "edited" if isinstance(error, LocalEditsError) else "failed"
    return Update(entry.name, status, entry.commit, why=error.message), ()


def _put_all(
    waiting: Mapping[int, Newer],
    limits: Limits,
    force: bool,  # noqa: FBT001
    dry_run: bool,  # noqa: FBT001
) -> dict[int, Outcome]:
    """Put what came in place, scope by scope; what came of each, by its number."""
    outcomes: dict[int, Outcome] = {}
    for scope in dict.fromkeys(one.scope for one in waiting.values()):
        mine = {at: one for at, one in waiting.items() if one.scope == scope}
        try:
            came = put_newer(scope, [*mine.values()], limits, force, dry_run)
        except SkillError as error:  # of the store itself: nothing was put in place
            came = [_prevented(one.entry, error) for one in mine.values()]
        outcomes |= dict(zip(mine, came, strict=True))
    return outcomes


def updated(
    scope: Scope,
    entry: LockedSkill,
    reach: Reach,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
) -> Outcome:
    """Fetch what the source of an entry has now, and put it in place of what is here."""
    with OpenSource(reach) as source:
        came = fetch_newer(scope, entry, source, reach)
    if not isinstance(came, Newer):
        return came
    return put_newer(scope, [came], reach.limits, force, dry_run, alone=True)[0]


def fetch_newer(scope: Scope, entry: LockedSkill, source: OpenSource, reach: Reach) -> Newer | Outcome:
    """What the source of an entry has now, or what came of it where there is nothing to be put in place.

    A source that went back is not followed: the update is then ``current``, with the issue ``rolled-back``. Of a site
    that is away nothing is taken: the update ``failed``, with the issue ``stale-index``.
    """
    if entry.kind == "adopted":
        return Update(entry.name, "current", entry.commit), ()
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    with typed():
        bundle = source.bundle(spec)
        issue = find_rollback(entry, bundle.commit, spec, reach)
        if issue is not None:
            return Update(entry.name, "current", entry.commit, why="its source went back, and is not followed"), (
                issue,
            )
        old_news = _old_news(bundle)
        away = _why_unasked(entry, old_news)
        if away:
            return Update(entry.name, "failed", entry.commit, why=away), tuple(old_news)
        tree = tree_for(entry, bundle, spec, reach.limits)
        refuse_broken([tree], spec)
        # Only the install itself gives way: what another one took over stays with that.
        wishes = Wishes(entry.agents, yielding=frozenset((entry.name,)), copy=entry.is_copied)
        arrival = Arrival(spec, bundle.commit, wishes)
    return Newer(scope, entry, tree, arrival, tuple(old_news))


def put_newer(
    scope: Scope,
    newer: Sequence[Newer],
    limits: Limits,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
    *,
    alone: bool = False,
) -> list[Outcome]:
    """Put what came for one scope in place, all of it together; what keeps one of them from it is its status.

    ``alone``: there is one, and what keeps it from being updated is raised.
    """
    outcomes: list[Outcome] = []
    with typed(), (look_into if dry_run else opened)(scope, limits) as store:
        after = dict(store.locked)
        for one in newer:
            before, staged = dict(after), store.staged
            try:
                here = _Here(store, one.entry.name)
                update, issues = here.take(one.tree, one.arrival, after, force=force, dry_run=dry_run)
                # A whole tree has the issues of its source too.
                outcomes.append((update, tuple(dict.fromkeys((*one.issues, *issues)))))
            except SkillError as error:
                if alone:
                    raise
                store.discard(staged)  # what of it was staged already is none of the others'
                after = before
                outcomes.append(_prevented(one.entry, error))
        if not dry_run:
            store.commit(after)
            last, issues = outcomes[-1]  # the store tells what it met, such as backups, of all of them together
            outcomes[-1] = last, tuple(dict.fromkeys((*issues, *store.issues)))
    return outcomes


class _Here:
    """An install as it is now, with what someone changed by hand."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        now = store.locked.get(name)
        self._place = place_of(now, store.scope, name)
        if now is None:
            raise NotInstalledError(f"skill {name} is not installed")
        if not (copied_folders(now, store.scope) if now.is_copied else exists(self._place)):
            raise not_here(name, self._place)
        self._now = now
        self._edits = find_edits(now, store.scope, store.landings, store.limits)

    def take(
        self, tree: Tree, arrival: Arrival, locked: Locked, *, force: bool, dry_run: bool
    ) -> tuple[Update, tuple[Issue, ...]]:
        """Stage a tree in place of it, unless there is a reason not to; ``locked`` becomes what will be recorded."""
        tree = self._leave_out_taken(tree)
        same = tree.digest == self._now.digest and arrival.spec.ref == self._now.ref
        if dry_run:
            return self._said("edited" if self._edits else "current" if same else "available", tree, arrival), ()
        if same and not self._edits:
            locked[self._now.name] = replace(self._now, commit=arrival.commit)  # the same bytes at a newer commit
            return self._said("current", tree, arrival), ()
        if self._edits and not force:
            raise LocalEditsError(
                f"{self._now.name} was changed by hand: {describe_differences(self._edits)}", self._place
            )
        said = self._said("updated", tree, arrival)
        wishes = arrival.wishes._replace(declared=self._now.declared)
        _, issues = stage(self._store, locked, tree, arrival._replace(wishes=wishes))
        return said, (*tree.issues, *issues)

    def _leave_out_taken(self, tree: Tree) -> Tree:
        """The tree without the skills that another install has, which it does not lose to an update of this one."""
        landings, taken = self._store.landings, self._store.taken

        def is_free(skill: str) -> bool:
            path = os.path.join(landings.shared, link_name(skill))
            return taken.holder_of(landings.recorded(path)) in {"", self._now.name}

        return tree._replace(skills={skill: folder for skill, folder in tree.skills.items() if is_free(skill)})

    def _said(self, status: Status, tree: Tree, arrival: Arrival) -> Update:
        diff = diff_files(self._files(), tree.files, self._store.limits)
        renamed = "" if diff or arrival.spec.ref == self._now.ref else f"the same content, as {arrival.spec.ref}"
        return Update(self._now.name, status, self._now.commit, arrival.commit, diff, renamed, Path(self._place))

    def _files(self) -> Sequence[NewFile]:
        """What is installed, as it is now."""
        if self._now.is_copied:
            return read_copies(self._now, self._store.landings, self._store.limits)
        return [NewFile(*row) for row in read_tree(self._place, self._store.limits).files]


def find_edits(entry: LockedSkill, scope: Scope, landings: Landings, limits: Limits) -> list[Difference]:
    """How an install differs from the lock file: its folder, or its copies where these are it.

    A copy that is missing as a whole is no edit.
    """
    if not entry.is_copied:
        return compare_folder(entry.files, scope.place(entry.name), limits)
    differences = compare_install(entry, scope, landings.path, limits)
    return [difference for difference in differences if difference.is_edit]


def tree_for(entry: LockedSkill, bundle: Bundle, spec: SourceSpec, limits: Limits) -> Tree:
    """The tree that takes an entry's place, out of a newer version: a chosen skill may have moved meanwhile."""
    moved = entry.select and not any(path.startswith(f"{entry.subpath}/") for path in bundle.paths)
    wanted = spec if not moved or not entry.subpath else _by_name(spec, entry.select)
    tree = cut(bundle, wanted, limits)[0]
    tree = keep_skills(tree) if entry.is_copied else tree
    return tree._replace(name=entry.name, select=entry.select)


def _by_name(spec: SourceSpec, name: str) -> SourceSpec:
    return chosen(replace(spec, subpath=""), (name,))

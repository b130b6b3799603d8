"""Newer versions: whether there are any, what they change, and what someone changed by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from prowess.errors import Issue, LocalEditsError, NotInstalledError, SkillError
from prowess.files.folders import exists
from prowess.files.tree import read_tree
from prowess.install.apply import Arrival, Wishes, stage
from prowess.install.entries import spec_of_entry
from prowess.install.failures import typed
from prowess.install.fetch import OLD_NEWS
from prowess.install.rollback import find_rollback
from prowess.install.store import look_into, opened
from prowess.install.trees import cut, refuse_broken
from prowess.library.compare import compare_folder, describe_differences
from prowess.spec.addresses import chosen
from prowess.spec.refs import checked_version, is_commit
from prowess.spec.versions import is_numbered, later

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.files.writing import NewFile
    from prowess.install.fetch import Reach
    from prowess.install.store import Store
    from prowess.install.trees import Bundle, Tree
    from prowess.library.installs import Scope
    from prowess.library.lock import LockedSkill
    from prowess.limits import Limits
    from prowess.spec.addresses import SourceSpec

_CONTEXT = 3
_HUNK = re.compile(r"([-+])(\d+)")
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
    """An install whose source has something newer: the version asked for, the commit here, the one there."""

    name: str
    ref: str
    current: str
    newest: str
    newer: str = ""
    """The newest tag that is written like the version asked for (``v1.2.0`` for ``v1.0.0``); it takes naming it."""


def at_version(entry: LockedSkill, version: str) -> LockedSkill:
    """The entry, moved to another version of its source.

    An entry that is moved has no commit: whoever names another version may go back with it.
    """
    moved = replace(entry, ref=checked_version(version), commit="") if version else entry
    return entry if moved.ref == entry.ref else moved


def newer(entry: LockedSkill, scope: Scope, reach: Reach) -> Iterator[Outdated | Issue]:
    """What the source of an entry has that is not here; a commit that was asked for by its id never gets old.

    An issue says that the source went back behind what is here, which is nothing newer.
    """
    if entry.kind == "adopted" or is_commit(entry.ref):
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
    if newest != current or tag:
        yield Outdated(entry.name, entry.ref, current, newest, tag)


def _old_news(bundle: Bundle) -> list[Issue]:
    """The issues that a site went back, or is away, and that what it had before is used."""
    return [issue for issue in bundle.issues if issue.code in OLD_NEWS]


def try_update(
    scope: Scope,
    entry: LockedSkill,
    reach: Reach,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
) -> tuple[Update, tuple[Issue, ...]]:
    """One of many: what keeps it from being updated is its status, not an error."""
    try:
        return updated(scope, entry, reach, force, dry_run)
    except LocalEditsError as error:
        return Update(entry.name, "edited", entry.commit, why=error.message), ()
    except SkillError as error:
        return Update(entry.name, "failed", entry.commit, why=error.message), ()


def updated(
    scope: Scope,
    entry: LockedSkill,
    reach: Reach,
    force: bool,  # noqa: FBT001 - as the caller's caller said
    dry_run: bool,  # noqa: FBT001
) -> tuple[Update, tuple[Issue, ...]]:
    """Fetch what the source of an entry has now, and put it in place of what is here.

    A source that went back is not followed: the update is then ``current``, with the issue ``rolled-back``.
    """
    if entry.kind == "adopted":
        return Update(entry.name, "current", entry.commit), ()
    spec = spec_of_entry(entry, scope, ref=entry.ref)
    with typed(), reach.opened(spec) as bundle:
        issue = find_rollback(entry, bundle.commit, spec, reach)
        if issue is not None:
            return Update(entry.name, "current", entry.commit, why="its source went back, and is not followed"), (
                issue,
            )
        old_news = _old_news(bundle)
        tree = tree_for(entry, bundle, spec, reach.limits)
        refuse_broken([tree], spec)
        arrival = Arrival(spec, bundle.commit, Wishes(entry.agents, replace=True))
    with typed(), (look_into if dry_run else opened)(scope, reach.limits) as store:
        update, issues = _Here(store, entry.name).take(tree, arrival, force=force, dry_run=dry_run)
        kept = () if dry_run else store.issues
    return update, tuple(dict.fromkeys((*old_news, *issues, *kept)))  # a whole tree has the issues of its source too


class _Here:
    """An install as it is now, with what someone changed by hand."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._place = store.scope.place(name)
        now = store.locked.get(name)
        if now is None or not exists(self._place):
            raise NotInstalledError(f"skill {name} is not installed")
        self._now = now
        self._edits = compare_folder(now.files, self._place, store.limits)

    def take(self, tree: Tree, arrival: Arrival, *, force: bool, dry_run: bool) -> tuple[Update, tuple[Issue, ...]]:
        """Put a tree in place of it, unless there is a reason not to."""
        same = tree.digest == self._now.digest and arrival.spec.ref == self._now.ref
        if dry_run:
            return self._said("edited" if self._edits else "current" if same else "available", tree, arrival), ()
        if same and not self._edits:
            self._note(arrival.commit)
            return self._said("current", tree, arrival), ()
        if self._edits and not force:
            raise LocalEditsError(
                f"{self._now.name} was changed by hand: {describe_differences(self._edits)}", self._place
            )
        said = self._said("updated", tree, arrival)
        wishes = arrival.wishes._replace(declared=self._now.declared)
        locked, issues = stage(self._store, self._store.locked, tree, arrival._replace(wishes=wishes))
        self._store.commit(locked)
        return said, (*tree.issues, *issues)

    def _said(self, status: Status, tree: Tree, arrival: Arrival) -> Update:
        diff = diff_of(self._place, tree.files, self._store.limits)
        renamed = "" if diff or arrival.spec.ref == self._now.ref else f"the same content, as {arrival.spec.ref}"
        return Update(self._now.name, status, self._now.commit, arrival.commit, diff, renamed, Path(self._place))

    def _note(self, commit: str) -> None:
        """The same bytes may have a newer commit."""
        if commit != self._now.commit:
            self._store.commit(self._store.locked | {self._now.name: replace(self._now, commit=commit)})


def tree_for(entry: LockedSkill, bundle: Bundle, spec: SourceSpec, limits: Limits) -> Tree:
    """The tree that takes an entry's place, out of a newer version: a chosen skill may have moved meanwhile."""
    moved = entry.select and not any(path.startswith(f"{entry.subpath}/") for path in bundle.paths)
    wanted = spec if not moved or not entry.subpath else _by_name(spec, entry.select)
    tree = cut(bundle, wanted, limits)[0]
    return tree._replace(name=entry.name, select=entry.select)


def _by_name(spec: SourceSpec, name: str) -> SourceSpec:
    return chosen(replace(spec, subpath=""), (name,))


def diff_of(folder: str, files: Sequence[NewFile], limits: Limits) -> str:
    """What changes when ``files`` take the place of a folder, as a unified diff; large and binary files by name.

    What has too many lines to be compared one by one is told by their number.
    """
    old = {path: (content, executable) for path, content, executable in read_tree(folder, limits).files}
    new = {file.path: (file.content, file.executable) for file in files}
    diffs = _Diffs(limits)
    rows: list[str] = []
    for path in sorted(old.keys() | new.keys()):
        if old.get(path) != new.get(path):
            rows += diffs.file(path, old.get(path), new.get(path))
    return "".join(rows)


class _Diffs:
    """The differences of several files, within one bound on the lines that are compared."""

    def __init__(self, limits: Limits) -> None:
        self._most = limits.max_resource_bytes
        self._left = limits.max_diff_lines

    def file(self, path: str, old: tuple[bytes, bool] | None, new: tuple[bytes, bool] | None) -> Iterator[str]:
        names = (f"a/{path}" if old else "/dev/null", f"b/{path}" if new else "/dev/null")
        before, after = (side[0] if side else b"" for side in (old, new))
        if old and new and old[1] != new[1]:
            yield f"mode of {path}: {'executable' if new[1] else 'not executable'}\n"
        if max(len(before), len(after)) > self._most or not (_is_text(before) and _is_text(after)):
            yield f"binary or large files {names[0]} and {names[1]} differ\n"
            return
        yield from self._text(path, names, *(side.decode().splitlines(keepends=True) for side in (before, after)))

    def _text(self, path: str, names: tuple[str, str], before: list[str], after: list[str]) -> Iterator[str]:
        # What is alike at both ends needs no comparison, so that a small change in a long file costs little. The lines
        # of context stay, and the numbers of the lines are put right again.
        skipped, left_out = _alike(before, after)
        inner = [side[skipped : len(side) - left_out] for side in (before, after)]
        count = sum(map(len, inner))
        if count > self._left:
            yield f"{len(before)} lines of {path} become {len(after)} lines, too many to compare\n"
            return
        self._left -= count
        from difflib import unified_diff  # noqa: PLC0415 - only where something differs

        for row in unified_diff(inner[0], inner[1], *names, n=_CONTEXT):
            moved = _HUNK.sub(lambda found: f"{found[1]}{int(found[2]) + skipped}", row) if row[:2] == "@@" else row
            yield moved if moved.endswith("\n") else f"{moved}\n\\ no newline at the end\n"


def _alike(before: list[str], after: list[str]) -> tuple[int, int]:
    """How many lines both have alike at the beginning, and at the end, but for those that are shown as context."""
    most = min(len(before), len(after))
    first = next((at for at in range(most) if before[at] != after[at]), most)
    last = next((at for at in range(most - first) if before[-1 - at] != after[-1 - at]), most - first)
    return max(0, first - _CONTEXT), max(0, last - _CONTEXT)


def _is_text(data: bytes) -> bool:
    try:
        return b"\0" not in data and data.decode("utf-8") is not None
    except UnicodeDecodeError:
        return False

"""How the manifest and the lock file differ: what is declared, what is recorded, and how that is said to people."""

from __future__ import annotations

import json
import posixpath
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import InstallError, Issue, LockMismatchError
from prowess.install.entry_source import is_from_source
from prowess.install.manifest import declared_places, manifest_file_name, read_declarations
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from prowess.install.manifest import Declaration
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry
    from prowess.lockfile.scopes import InstallScope


class ManifestDiff(NamedTuple):
    """What the lock file would have to change to say what the manifest declares; false when that is nothing."""

    missing: tuple[Declaration, ...]
    """Declarations that the lock file does not record."""
    undeclared: tuple[str, ...]
    """Installs that are recorded as declared, and that no declaration asks for now."""
    unmarked: dict[str, Declaration]
    """Installs of exactly the declared source and version that are not recorded as declared, by name."""
    moved: dict[str, Declaration]
    """Installs that are declared now from another source or at another version, by name.

    Their declarations are in ``missing`` too.
    """

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.missing or self.undeclared or self.unmarked)

    @property
    def unmoved(self) -> list[Declaration]:
        """The missing declarations that move no install."""
        moving = {declaration.text for declaration in self.moved.values()}
        return [declaration for declaration in self.missing if declaration.text not in moving]


def compare_manifest(
    declared: tuple[Declaration, ...] | None, locked: LockEntries, scope: InstallScope
) -> ManifestDiff:
    """How the declarations of a manifest and the entries of a lock file differ."""
    declarations = declared or ()
    texts = {declaration.text for declaration in declarations}
    # Indexed once: to search all entries for each declaration would be quadratic.
    by_text: dict[str, list[LockEntry]] = {}
    for entry in locked.values():
        by_text.setdefault(entry.declared, []).append(entry)
    unrecorded = [item for item in declarations if not _has_all_entries(item, by_text.get(item.text, ()))]
    unmarked = {name: item for item in unrecorded for name in _find_matching_entries(item, locked, scope)}
    matched = {declaration.text for declaration in unmarked.values()}
    missing = tuple(declaration for declaration in unrecorded if declaration.text not in matched)
    moved = {
        name: declaration
        for declaration in missing
        for name in declared_places(declaration.spec)
        if name in locked and may_give_way(locked[name], declaration, texts, scope)
    }
    gone = [name for name, entry in locked.items() if entry.declared and entry.declared not in texts]
    undeclared = tuple(name for name in gone if name not in unmarked and name not in moved)
    return ManifestDiff(missing, undeclared, unmarked, moved)


def may_give_way(entry: LockEntry, declaration: Declaration, texts: Collection[str], scope: InstallScope) -> bool:
    """Whether a sync may replace an install by what a declaration asks for; ``texts`` are all declarations.

    It may when this declaration, or one that the manifest has no longer, asked for the install, and when somebody
    installed it by hand from the declared source. Any other install has to be removed by a person first.
    """
    if entry.declared:
        return entry.declared == declaration.text or entry.declared not in texts
    return is_from_source(entry, declaration.spec, scope)


def _has_all_entries(declaration: Declaration, entries: Sequence[LockEntry]) -> bool:
    """Whether ``entries``, which name this declaration, still hold all that it asks for.

    A command such as update or remove may have changed them since.
    """
    return (
        bool(entries)
        and all(_has_declared_settings(entry, declaration) for entry in entries)
        and all(any(_is_of_skill(entry, skill) for entry in entries) for skill in declaration.spec.skills)
    )


def _has_declared_settings(entry: LockEntry, declaration: Declaration) -> bool:
    """Whether an entry has the declared version and mode, and all declared agents."""
    # Only git has versions. An entry may have more agents than declared: a person linked it for them.
    is_version = entry.kind != "git" or entry.ref == declaration.spec.ref
    return is_version and entry.mode == declaration.mode and set(declaration.agents) <= set(entry.agents)


def _is_of_skill(entry: LockEntry, skill: str) -> bool:
    """Whether an entry is the install of one chosen skill, given by its name or by the name of its folder."""
    return skill in {entry.select, posixpath.basename(entry.subpath), entry.name.partition("/")[2]}


def _find_matching_entries(declaration: Declaration, locked: LockEntries, scope: InstallScope) -> list[str]:
    """The names of the entries that are exactly what a declaration would install; none unless all of them are there."""
    # All or none: a declaration of which a part is missing is installed as a whole.
    names = declared_places(declaration.spec)
    matching = [name for name in names if name in locked and _is_install_of(locked[name], declaration, scope)]
    return matching if len(matching) == len(names) else []


def _is_install_of(entry: LockEntry, declaration: Declaration, scope: InstallScope) -> bool:
    """Whether an entry is what a declaration would install: source, version, part, mode and agents."""
    spec = declaration.spec
    # The entry of a chosen skill has the skill's own folder as its subpath, of which the declaration has the beginning.
    part = entry.subpath if not spec.skills else entry.subpath[: len(spec.subpath)]
    is_part = part == spec.subpath and bool(entry.select) == bool(spec.skills)
    is_source = entry.kind == spec.kind and entry.ref == spec.ref and is_from_source(entry, spec, scope)
    is_linked = set(entry.agents) == {*declaration.agents, *agents_linked_by_hand(entry)}
    return is_source and is_part and is_linked and entry.mode == declaration.mode


def agents_linked_by_hand(entry: LockEntry) -> tuple[str, ...]:
    """The agents that an entry is linked for and that its declaration did not name.

    A sync keeps the links that a person asked for, and removes those that only the manifest asked for.
    """
    table: object = None
    with suppress(ValueError, RecursionError):  # a declaration that is a source alone, or that nobody can read
        table = json.loads(entry.declared)
    named = table.get("agents", ()) if isinstance(table, dict) else ()
    return tuple(agent for agent in entry.agents if agent not in named)


def with_declarations(locked: LockEntries, unmarked: Mapping[str, Declaration]) -> LockEntries:
    """The entries of a lock file, in which those of ``unmarked`` are recorded as declared."""
    return {
        name: replace(entry, declared=unmarked[name].text) if name in unmarked else entry
        for name, entry in locked.items()
    }


# -- what people are told ----------------------------------------------------------------------------------------------


def list_manifest_changes(diff: ManifestDiff, locked: LockEntries, scope: InstallScope) -> list[str]:
    """What a sync would change so that the lock file says what the manifest declares, a line each."""
    changed = {name: item for name, item in diff.moved.items() if _describe_move(locked[name], item, scope)}
    rows = [_describe_move(locked[name], declaration, scope) for name, declaration in changed.items()]
    rows += [f"install {item}, which the manifest declares" for item in diff._replace(moved=changed).unmoved]
    return rows + [f"record {name} as declared" for name in diff.unmarked]


def _describe_move(entry: LockEntry, declaration: Declaration, scope: InstallScope) -> str:
    """How an entry has to change; ``""`` when it has the declared source, version and mode."""
    if not is_from_source(entry, declaration.spec, scope):
        return f"replace {entry.name}, which came from {entry.source}, by {declaration}, which the manifest declares"
    if entry.ref != declaration.spec.ref:
        versions = f"{_describe_version(entry.ref)} → {_describe_version(declaration.spec.ref)}"
        return f"update {entry.name} {versions}, which the manifest declares"
    if entry.mode != declaration.mode:
        return f"make {entry.name} {_describe_mode(declaration.mode)}, as the manifest declares"
    return ""


def _describe_version(ref: str) -> str:
    return ref or "(no version)"


def _describe_mode(mode: str) -> str:
    return "copies" if mode else "links"


def refuse_manifest_diff(diff: ManifestDiff, locked: LockEntries, scope: InstallScope) -> None:
    """Raise ``LockMismatchError`` (``lock-outdated``) with everything that the manifest and the lock file differ in."""
    reasons = [
        f"{declaration} is declared, and {name} is locked {_describe_lock_state(locked[name], declaration)}"
        for name, declaration in diff.moved.items()
    ]
    reasons += [f"{declaration} is declared and not locked" for declaration in diff.unmoved]
    reasons += [f"{name} is locked and not declared any more" for name in diff.undeclared]
    reasons += [f"{name} is locked and not recorded as declared" for name in diff.unmarked]
    raise LockMismatchError(f"the lock file is out of date: {'; '.join(reasons)}", scope.lock_folder, "lock-outdated")


def _describe_lock_state(entry: LockEntry, declaration: Declaration) -> str:
    """The mode in which an entry is locked when another one is declared, else the version."""
    is_other_mode = entry.mode != declaration.mode
    return f"as {_describe_mode(entry.mode)}" if is_other_mode else f"at {_describe_version(entry.ref)}"


def find_stale_declarations(
    scope: InstallScope, entries: Iterable[LockEntry | None], limits: Limits
) -> Iterator[Issue]:
    """A warning for each changed or removed entry that the manifest still declares as it was.

    ``entries`` are as they were before the change; ``None`` stands for an install that was not there.
    """
    names = {entry.declared: entry.name for entry in entries if entry is not None and entry.declared}
    if not names:  # the usual case, in which neither file has to be read
        return
    with suppress(InstallError):  # the next sync reports a manifest that makes no sense
        declared = read_declarations(scope.lock_folder, limits)
        diff = compare_manifest(declared, read_lock(scope.lock_folder, limits=limits), scope)
        file = manifest_file_name(scope.lock_folder)
        for declaration in diff.missing:
            if declaration.text in names:
                message = f"{file} still declares {declaration}: the next sync goes back to that"
                yield Issue("still-declared", names[declaration.text], message, scope.lock_folder, 0, "warning")

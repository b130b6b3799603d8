"""How the manifest and the lock file differ: what is declared, what is recorded, and how that is said to people."""

from __future__ import annotations

import posixpath
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from prowess.addresses.source_spec import VERSIONED_KINDS
from prowess.errors import InstallError, Issue, LockMismatchError
from prowess.install.entry_source import is_from_source
from prowess.install.manifest import MODE_PHRASES, declared_places, manifest_file_name, read_declarations
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from prowess.install.manifest import Declaration
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntries, LockEntry


class ManifestDiff(NamedTuple):
    """What the lock file would have to change to say what the manifest declares; false when that is nothing."""

    missing: tuple[Declaration, ...]
    """Declarations that the lock file does not record, each with only those of its skills that are not recorded."""
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
        """The missing declarations without what moves an install."""
        return [*_without_places(self.missing, self.moved)]


def compare_manifest(
    declared: tuple[Declaration, ...] | None, locked: LockEntries, scope: InstallScope
) -> ManifestDiff:
    """Return how the declarations of a manifest and the entries of a lock file differ."""
    declarations = declared or ()
    # Indexed once: to search all entries for each skill of each declaration would be quadratic.
    by_part: dict[_Part, list[LockEntry]] = {}
    for entry in locked.values():
        for part in _parts_of_entry(entry):
            by_part.setdefault(part, []).append(entry)
    unrecorded = [*_select_parts(declarations, lambda item, part: not _is_recorded(item, by_part.get(part, ())))]
    unmarked = {
        name: item
        for item in unrecorded
        for name in declared_places(item.spec)
        if name in locked and _is_install_of(locked[name], item, scope)
    }
    missing = tuple(_without_places(unrecorded, unmarked))
    claimed = find_claimed(declarations, locked)
    moved = {
        name: declaration
        for declaration in missing
        for name in declared_places(declaration.spec)
        if name in locked and may_give_way(locked[name], declaration, claimed, scope)
    }
    gone = [name for name, entry in locked.items() if entry.declared and name not in claimed]
    undeclared = tuple(name for name in gone if name not in unmarked and name not in moved)
    return ManifestDiff(missing, undeclared, unmarked, moved)


_Part = tuple[str, str]
"""The text of a declaration, and one skill that it chooses; ``""`` for a declaration of a whole source."""


def _select_parts(
    declarations: Iterable[Declaration], is_wanted: Callable[[Declaration, _Part], bool]
) -> Iterator[Declaration]:
    """Yield the declarations, each with only those of its skills that are wanted; without those that have none."""
    for declaration in declarations:
        skills = declaration.spec.skills
        wanted = [skill for skill in skills or ("",) if is_wanted(declaration, (declaration.text, skill))]
        if len(wanted) == len(skills or ("",)):
            yield declaration
        elif wanted:
            yield declaration.of_skills(wanted)


def _without_places(declarations: Iterable[Declaration], places: Collection[str]) -> Iterator[Declaration]:
    """Yield the declarations without what fills one of the places."""
    for declaration in declarations:
        spec = declaration.spec
        left = [skill for skill in spec.skills if declared_places(replace(spec, skills=(skill,)))[0] not in places]
        if left == [*spec.skills]:
            if spec.skills or spec.full_name not in places:
                yield declaration
        elif left:
            yield declaration.of_skills(left)


def _parts_of_entry(entry: LockEntry) -> set[_Part]:
    """The parts of declarations that may ask for an entry: people name a skill by its name or by that of its folder."""
    if not entry.select:
        return {(entry.declared, "")}
    names = (entry.select, posixpath.basename(entry.subpath), entry.name.partition("/")[2])
    return {(entry.declared, name) for name in names}


def find_claimed(declarations: Iterable[Declaration], locked: LockEntries) -> set[str]:
    """Return the names of the entries that are recorded as declared, and that a declaration still asks for."""
    parts = {(item.text, skill) for item in declarations for skill in item.spec.skills or ("",)}
    return {name for name, entry in locked.items() if entry.declared and not parts.isdisjoint(_parts_of_entry(entry))}


def may_give_way(entry: LockEntry, declaration: Declaration, claimed: Collection[str], scope: InstallScope) -> bool:
    """Whether a sync may replace an install by what a declaration asks for; ``claimed`` is what ``find_claimed`` gave.

    It may when this declaration, or one that the manifest has no longer, asked for the install, and when somebody
    installed it by hand from the declared source. Any other install has to be removed by a person first.
    """
    if entry.declared:
        return entry.declared == declaration.text or entry.name not in claimed
    return is_from_source(entry, declaration.spec, scope)


def _is_recorded(declaration: Declaration, entries: Sequence[LockEntry]) -> bool:
    """Return whether ``entries``, which are those of one part of a declaration, are as it says.

    A command such as update or remove may have changed them since.
    """
    return bool(entries) and all(_has_declared_settings(entry, declaration) for entry in entries)


def _has_declared_settings(entry: LockEntry, declaration: Declaration) -> bool:
    """Return whether an entry has the declared version and mode, and is linked for the declared agents."""
    # An archive or a folder has no versions. An entry may have more agents than declared: a person linked it for them.
    is_version = entry.kind not in VERSIONED_KINDS or entry.ref == declaration.spec.ref
    is_linked = set(entry.agents) == {*declaration.agents, *agents_linked_by_hand(entry)}
    return is_version and is_linked and entry.mode == declaration.mode


def _is_install_of(entry: LockEntry, declaration: Declaration, scope: InstallScope) -> bool:
    """Return whether an entry is what a declaration would install: source, version, part, mode and agents."""
    spec = declaration.spec
    # The entry of a chosen skill has the skill's own folder as its subpath; the declaration has the beginning of it.
    part = entry.subpath if not spec.skills else entry.subpath[: len(spec.subpath)]
    is_part = part == spec.subpath and bool(entry.select) == bool(spec.skills)
    is_source = entry.kind == spec.kind and entry.ref == spec.ref and is_from_source(entry, spec, scope)
    return is_source and is_part and _has_declared_settings(entry, declaration)


def agents_linked_by_hand(entry: LockEntry) -> tuple[str, ...]:
    """Return the agents that an entry is linked for because a person asked for it, and not because the manifest did.

    A sync keeps these links, and removes those that only the manifest asked for.
    """
    return entry.extra_agents if entry.declared else entry.agents


def with_declarations(locked: LockEntries, unmarked: Mapping[str, Declaration]) -> LockEntries:
    """Return the entries of a lock file; those of ``unmarked`` are recorded as declared."""
    marked = {
        name: replace(
            locked[name],
            declared=declaration.text,
            extra_agents=tuple(agent for agent in locked[name].agents if agent not in declaration.agents),
        )
        for name, declaration in unmarked.items()
    }
    return {**locked, **marked}


# -- what people read -------------------------------------------------------------------------------------------------


def list_manifest_changes(diff: ManifestDiff, locked: LockEntries, scope: InstallScope) -> list[str]:
    """What a sync would change so that the lock file says what the manifest declares, a line each."""
    changed = {name: item for name, item in diff.moved.items() if _describe_move(locked[name], item, scope)}
    rows = [_describe_move(locked[name], declaration, scope) for name, declaration in changed.items()]
    rows += [f"install {item}, which the manifest declares" for item in diff._replace(moved=changed).unmoved]
    return rows + [f"record {name} as declared" for name in diff.unmarked]


def _describe_move(entry: LockEntry, declaration: Declaration, scope: InstallScope) -> str:
    """Return how an entry has to change; ``""`` when it has the declared source, version and mode."""
    if not is_from_source(entry, declaration.spec, scope):
        return f"replace {entry.name}, which came from {entry.source}, by {declaration}, which the manifest declares"
    if entry.ref != declaration.spec.ref:
        versions = f"{_describe_version(entry.ref)} → {_describe_version(declaration.spec.ref)}"
        return f"update {entry.name} {versions}, which the manifest declares"
    if entry.mode != declaration.mode:
        return f"make {entry.name} {MODE_PHRASES[declaration.mode]}, as the manifest declares"
    return ""


def _describe_version(ref: str) -> str:
    return ref or "(no version)"


def refuse_manifest_diff(diff: ManifestDiff, locked: LockEntries, scope: InstallScope) -> None:
    """Raise ``LockMismatchError`` (``lock-outdated``) with everything that the manifest and the lock file differ in."""
    message = f"the lock file is out of date: {'; '.join(describe_manifest_diff(diff, locked))}"
    raise LockMismatchError(message, scope.lock_folder, "lock-outdated")


def describe_manifest_diff(diff: ManifestDiff, locked: LockEntries) -> list[str]:
    """Everything that the manifest and the lock file differ in, a sentence each."""
    reasons = [
        f"{declaration} is declared, and {name} is locked {_describe_lock_state(locked[name], declaration)}"
        for name, declaration in diff.moved.items()
    ]
    reasons += [f"{declaration} is declared and not locked" for declaration in diff.unmoved]
    reasons += [f"{name} is locked and not declared any more" for name in diff.undeclared]
    return reasons + [f"{name} is locked and not recorded as declared" for name in diff.unmarked]


def _describe_lock_state(entry: LockEntry, declaration: Declaration) -> str:
    """Return how an entry is locked otherwise than it is declared: its mode, its agents, or its version."""
    if entry.mode != declaration.mode:
        return f"as {MODE_PHRASES[entry.mode]}"
    if entry.ref == declaration.spec.ref and not _has_declared_settings(entry, declaration):
        return f"for other agents ({', '.join(entry.agents) or 'none'})"
    return f"at {_describe_version(entry.ref)}"


def find_stale_declarations(
    scope: InstallScope, entries: Iterable[LockEntry | None], limits: Limits
) -> Iterator[Issue]:
    """Yield a warning for each changed or removed entry that the manifest still declares as it was.

    ``entries`` are as they were before the change; ``None`` stands for an install that was not there.
    """
    names = {
        part: entry.name for entry in entries if entry is not None and entry.declared for part in _parts_of_entry(entry)
    }
    if not names:  # the usual case: neither file has to be read
        return
    with suppress(InstallError):  # the next sync reports a manifest that is malformed
        declared = read_declarations(scope.lock_folder, limits)
        diff = compare_manifest(declared, read_lock(scope.lock_folder, limits=limits), scope)
        file = manifest_file_name(scope.lock_folder)
        for declaration in _select_parts(diff.missing, lambda _, part: part in names):
            message = f"{file} still declares {declaration}: the next sync goes back to that"
            name = names[declaration.text, next(iter(declaration.spec.skills), "")]
            yield Issue("still-declared", name, message, scope.lock_folder, 0, "warning")

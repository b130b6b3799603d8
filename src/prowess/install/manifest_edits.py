"""Edits of a manifest: an entry added, moved to another version, or taken out, after a command changed an install."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from prowess.addresses.source_grammar import write_file_address, write_parts
from prowess.errors import InstallError, Issue
from prowess.files.paths import is_link
from prowess.files.write import write_atomic
from prowess.install.entry_source import local_path, source_for_lock
from prowess.install.manifest import ManifestDefaults, declared_places, load_manifest, parse_entry, read_declarations
from prowess.install.manifest_diff import compare_manifest, with_declarations
from prowess.install.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from prowess.addresses.source_spec import SourceSpec
    from prowess.install.manifest import Declaration, ProjectManifest
    from prowess.install.manifest_text import ManifestEntry
    from prowess.installed.scopes import InstallScope
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry


class ManifestEdit(NamedTuple):
    """A change of a manifest: its text afterwards, and the declaration that was added or changed, if any was."""

    manifest: ProjectManifest
    text: str
    declaration: Declaration | None = None


def declare_source(
    manifest: ProjectManifest,
    scope: InstallScope,
    spec: SourceSpec,
    agents: Sequence[str] = (),
    *,
    mode: str = "",
    written: str = "",
    gone: Collection[str] = (),
) -> ManifestEdit:
    """Return the edit after which a manifest declares a source; other entries give up the places that it fills.

    ``mode`` is ``"copy"`` for real files instead of links. ``written`` is how a person typed the source. ``gone`` are
    further installs that made way for it, which the manifest then declares no more. Raises ``InstallError``
    (``manifest-not-written``) for a manifest that cannot be edited, and for a source that no entry can name.
    """
    edits = _give_up_places(manifest, scope, {*declared_places(spec), *gone})
    # What the manifest says for all entries is not repeated in this one.
    own_agents = [agent for agent in agents if agent not in manifest.defaults.agents]
    more: dict[str, Any] = {"agents": own_agents} if own_agents else {}
    more |= {"mode": mode} if mode != manifest.defaults.mode else {}
    # The first entry that has nothing left is written anew: its order, its comments and its other keys stay.
    replaced = next((index for index, entry in edits.items() if entry is None), None)
    if replaced is not None:
        kept = {key: value for key, value in _other_keys(manifest.entries[replaced]).items() if key != "mode"}
        more = {**kept, **more}
        written = written or manifest.declarations[replaced].source
    spec = replace(spec, skills=tuple(sorted(spec.skills)))
    joined = _join_entry(manifest, edits, spec, more)
    if joined is not None:
        text = _change_text(manifest, {**edits, **joined}, [])
        (entry,) = joined.values()
        return ManifestEdit(manifest, text, parse_entry(entry, manifest.defaults, manifest.folder))
    entry = _write_entry(manifest, scope, spec, written, more)
    if replaced is not None:
        edits[replaced] = entry
    text = _change_text(manifest, edits, [entry] if replaced is None else [])
    return ManifestEdit(manifest, text, parse_entry(entry, manifest.defaults, manifest.folder))


def _join_entry(
    manifest: ProjectManifest, edits: Mapping[int, ManifestEntry | None], spec: SourceSpec, more: dict[str, Any]
) -> dict[int, ManifestEntry] | None:
    """The edit of an entry that already lists skills of this source at this version, with further ones in the list.

    ``None`` where there is no such entry with the same other keys.
    """
    for index, (entry, declaration) in enumerate(zip(manifest.entries, manifest.declarations, strict=True)):
        if not spec.skills or index in edits or not isinstance(entry, dict) or not entry.get("skills"):
            continue
        named = declaration.spec
        if named.ref != spec.ref or not _is_same_source(named, spec) or _other_keys(entry) != more:
            continue
        alone = _parse_source(entry["source"], manifest)
        if alone is not None and not alone.skills:
            return {index: {**entry, "skills": sorted({*named.skills, *spec.skills})}}
    return None


def _give_up_places(
    manifest: ProjectManifest, scope: InstallScope, places: AbstractSet[str]
) -> dict[int, ManifestEntry | None]:
    """Return the edits, by index, of the entries that declare some of the places.

    ``None`` for an entry with nothing left.
    """
    edits: dict[int, ManifestEntry | None] = {}
    for index, declaration in enumerate(manifest.declarations):
        spec = declaration.spec
        if not places.isdisjoint(declared_places(spec)):
            # An entry of several skills keeps those that nobody took; an entry of a whole source keeps nothing.
            left = tuple(skill for skill in spec.skills if _place_of_skill(spec, skill) not in places)
            rest = _other_keys(manifest.entries[index])
            edits[index] = (
                _write_entry(manifest, scope, replace(spec, skills=left), declaration.source, rest) if left else None
            )
    return edits


def _place_of_skill(spec: SourceSpec, skill: str) -> str:
    return declared_places(replace(spec, skills=(skill,)))[0]


def declare_version(manifest: ProjectManifest, scope: InstallScope, entry: LockEntry, ref: str) -> ManifestEdit | None:
    """The edit after which a manifest declares an install at another version; ``None`` when it does not declare it.

    When an entry of the manifest chooses several skills, the one that moved gets an entry of its own.
    """
    for declaration in manifest.declarations:
        spec = declaration.spec
        if entry.name in declared_places(spec):
            moved = tuple(skill for skill in spec.skills if _place_of_skill(spec, skill) == entry.name)
            spec = replace(spec, ref=ref, skills=moved)
            agents, mode = declaration.agents, declaration.mode
            return declare_source(manifest, scope, spec, agents, mode=mode, written=declaration.source)
    return None


def undeclare_places(manifest: ProjectManifest, scope: InstallScope, places: AbstractSet[str]) -> ManifestEdit | None:
    """Return the edit after which a manifest does not declare places any more; ``None`` when it declares none of them.

    Raises ``InstallError`` (``manifest-not-written``) for a manifest that cannot be edited.
    """
    edits = _give_up_places(manifest, scope, places)
    return ManifestEdit(manifest, _change_text(manifest, edits, [])) if edits else None


def edit_manifest(
    scope: InstallScope, change: Callable[[ProjectManifest], ManifestEdit | None], limits: Limits
) -> tuple[Issue, ...]:
    """Make and save the edit that ``change`` returns for the manifest of a scope, when there is a manifest.

    Returns a warning when the manifest cannot be changed: the command has done its work by then, and does not fail.
    """
    try:
        manifest = load_manifest(scope.lock_folder, limits)
        edit = change(manifest) if manifest is not None else None
        if edit is not None:
            _save_edit(edit, scope, limits)
    except InstallError as error:
        return (Issue(error.code, "", error.message, error.path, 0, "warning"),)
    return ()


def _save_edit(edit: ManifestEdit, scope: InstallScope, limits: Limits) -> None:
    """Write a manifest, and have the lock file record what declares each install.

    Raises ``InstallError`` (``manifest-not-written``) when somebody changed the manifest meanwhile.
    """
    path = os.path.join(edit.manifest.folder, edit.manifest.file)
    with open_store(scope, limits) as store:
        # The edit was made from a manifest that was read without the lock, and a person may have saved the file since.
        now = load_manifest(edit.manifest.folder, limits)
        # Writing through a link would replace it by a file, or change a file outside of the project.
        if now is None or now.text != edit.manifest.text or is_link(path):
            raise _not_written_error(edit.manifest, "it was changed meanwhile, or is a link", edit.declaration)
        if len(edit.text.encode()) > limits.max_lock_bytes:
            raise _not_written_error(edit.manifest, "it would be too large to be read (max_lock_bytes)", None)
        write_atomic(path, edit.text.encode(), mode=os.stat(path).st_mode & 0o777)
        diff = compare_manifest(read_declarations(edit.manifest.folder, limits), store.locked, scope)
        store.commit(with_declarations(store.locked, diff.unmarked))


def _other_keys(entry: ManifestEntry) -> dict[str, Any]:
    """Return the keys of an entry that are not about its source, with their values."""
    table = entry if isinstance(entry, dict) else {}
    return {key: value for key, value in table.items() if key not in {"source", "ref", "skills"}}


def _write_entry(
    manifest: ProjectManifest, scope: InstallScope, spec: SourceSpec, written: str, rest: dict[str, Any]
) -> ManifestEntry:
    """Return the shortest entry that names a source: a string, or a table when there is more to say than a string can.

    Raises ``InstallError`` (``manifest-not-written``) for a source that no entry can name.
    """
    before = _parse_source(written, manifest)
    # Each spelling is read back by the parser: only one that names exactly this source is written.
    for source in dict.fromkeys(_spellings_of(spec, scope, written, before)):
        named = _parse_source(source, manifest)
        if named is None:
            continue
        if _is_same_source(named, spec) and named.ref in {"", spec.ref} and named.skills in {(), spec.skills}:
            table: dict[str, Any] = {"source": source}
            table |= {"ref": spec.ref} if named.ref != spec.ref else {}
            table |= {"skills": list(spec.skills)} if named.skills != spec.skills else {}
            table |= rest
            return source if table.keys() == {"source"} else table
    raise _not_written_error(manifest, f"no entry can name {spec}", None)


def _parse_source(source: str, manifest: ProjectManifest) -> SourceSpec | None:
    """Return the source that a string names as an entry of a manifest; ``None`` when it names none."""
    try:
        return parse_entry(source, ManifestDefaults(), manifest.folder).spec
    except InstallError:
        return None


def _spellings_of(spec: SourceSpec, scope: InstallScope, written: str, before: SourceSpec | None) -> Iterator[str]:
    """Texts that might name a source, in the order of preference; what a person wrote comes first.

    ``before`` is the source that ``written`` names. A version or skills that are part of ``written`` stay part of it.
    """
    # "@owner/name" has its own way to write a version.
    if written.startswith("@"):
        yield from (written, f"@{spec.full_name}@{spec.ref}")
    elif before is not None:
        tail = write_parts("", before.subpath, before.skills, marked=False)
        source = written.partition("#")[0] if "#" in written else written.removesuffix(tail)
        # Several names have lines of their own in a list, and not a place in the source.
        skills = spec.skills if before.skills and len(spec.skills) == 1 else ()
        if before.skills in {(), skills}:
            yield written
        for ref in (spec.ref if before.ref else "", spec.ref, ""):
            yield source + write_parts(ref, spec.subpath, skills, marked="#" in written)
    if spec.local:
        addresses = [source_for_lock(spec, scope), write_file_address(local_path(spec))]
    else:
        yield from (f"@{spec.full_name}", spec.full_name, f"{spec.full_name}/{spec.subpath}")
        addresses = [spec.address]
    for place in addresses:
        yield place + write_parts("", spec.subpath, (), marked=False)
        yield place + write_parts(spec.ref, spec.subpath, (), marked=True)


def _is_same_source(first: SourceSpec, second: SourceSpec) -> bool:
    is_local = first.local and second.local
    is_place = local_path(first) == local_path(second) if is_local else first.address == second.address
    return is_place and (first.kind, first.full_name, first.subpath) == (second.kind, second.full_name, second.subpath)


def _change_text(manifest: ProjectManifest, edits: dict[int, ManifestEntry | None], added: list[ManifestEntry]) -> str:
    """Return the text of a manifest with its entries changed.

    Raises ``InstallError`` when the list cannot be edited.
    """
    from prowess.install.manifest_text import UneditableError, change_entries, manifest_entry_text

    try:
        return change_entries(manifest.text, manifest.table, edits, added)
    except UneditableError:
        entries = ", ".join(manifest_entry_text(entry) for entry in (*edits.values(), *added) if entry is not None)
        why = "its list of skills is not written as skills = [ … ]"
        raise _not_written_error(manifest, f"{why}; it should have {entries}" if entries else why, None) from None


def _not_written_error(manifest: ProjectManifest, why: str, declared: Declaration | None) -> InstallError:
    what = f"; it should have {declared}" if declared is not None else ""
    message = f"{manifest.file} is not changed: {why}{what}"
    return InstallError(message, os.path.join(manifest.folder, manifest.file), "manifest-not-written")

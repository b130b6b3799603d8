"""A manifest kept in step with what commands do: an entry added, moved to another version, taken out."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

from prowess.errors import InstallError
from prowess.files.paths import is_link
from prowess.files.write import write_atomic
from prowess.install.entry_source import local_path, source_for_lock
from prowess.install.manifest import ManifestDefaults, declared_places, load_manifest, parse_entry
from prowess.install.store import open_store
from prowess.install.sync import compare_manifest, with_declarations
from prowess.spec.source_grammar import write_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from prowess.install.manifest import Declaration, ProjectManifest
    from prowess.install.manifest_text import ManifestEntry
    from prowess.limits import Limits
    from prowess.lockfile.read import LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.spec.source_spec import SourceSpec


class ManifestEdit(NamedTuple):
    """A change of a manifest: its text afterwards, and the entry that was added or changed, if any was."""

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
    """The edit after which a manifest declares a source; entries that declared the same places give them up.

    ``mode``: ``"copy"`` for real files in place of links. ``written``: how a person wrote the source. ``gone``: further
    installs that made way for it, and are declared no more. Raises
    ``InstallError`` (``manifest-not-written``) for a manifest that is written in a way that cannot be edited, and for a
    source that no entry can name.
    """
    names = {*declared_places(_to_declaration(spec)), *gone}
    own = [agent for agent in agents if agent not in manifest.defaults.agents]
    edits: dict[int, ManifestEntry | None] = {}
    more: dict[str, Any] = {"agents": own} if own else {}
    more |= {"mode": mode} if mode != manifest.defaults.mode else {}
    first: int | None = None
    for index, one in enumerate(manifest.declarations):
        if names.isdisjoint(declared_places(one)):
            continue
        entry = manifest.entries[index]
        others = tuple(
            skill for skill in one.spec.skills if not names & set(declared_places(_to_declaration(one.spec, skill)))
        )
        edits[index] = (
            _write_entry(manifest, scope, replace(one.spec, skills=others), one.source, _other_keys(entry))
            if others
            else None
        )
        if first is None and not others:
            kept = {key: value for key, value in _other_keys(entry).items() if key != "mode"}
            first, more = index, {**kept, **more}
            written = written or one.source
    entry = _write_entry(manifest, scope, spec, written, more)
    added = [entry] if first is None else []
    if first is not None:
        edits[first] = entry
    return ManifestEdit(
        manifest, _change_text(manifest, edits, added), parse_entry(entry, manifest.defaults, manifest.folder)
    )


def declare_version(manifest: ProjectManifest, scope: InstallScope, entry: LockEntry, ref: str) -> ManifestEdit | None:
    """The edit after which a manifest declares an install at another version; ``None`` when it does not declare it.

    Of an entry with several skills the one that moved gets an entry of its own.
    """
    for one in manifest.declarations:
        if entry.name in declared_places(one):
            moved = tuple(
                skill for skill in one.spec.skills if entry.name in declared_places(_to_declaration(one.spec, skill))
            )
            spec = replace(one.spec, ref=ref, skills=moved)
            return declare_source(manifest, scope, spec, one.agents, mode=one.mode, written=one.source)
    return None


def undeclare_places(manifest: ProjectManifest, scope: InstallScope, names: AbstractSet[str]) -> ManifestEdit | None:
    """The edit after which a manifest does not declare places any more; ``None`` when it does not anyway.

    Raises ``InstallError`` (``manifest-not-written``) for a manifest that cannot be edited.
    """
    edits: dict[int, ManifestEntry | None] = {}
    for index, one in enumerate(manifest.declarations):
        if not names.isdisjoint(declared_places(one)):
            left = tuple(
                skill
                for skill in one.spec.skills
                if names.isdisjoint(declared_places(_to_declaration(one.spec, skill)))
            )
            spec, rest = replace(one.spec, skills=left), _other_keys(manifest.entries[index])
            edits[index] = _write_entry(manifest, scope, spec, one.source, rest) if left else None
    return ManifestEdit(manifest, _change_text(manifest, edits, [])) if edits else None


def save_edit(edit: ManifestEdit, scope: InstallScope, limits: Limits) -> None:
    """Write a manifest, unless somebody changed it meanwhile, and have the lock file say what declares each install."""
    path = os.path.join(edit.manifest.folder, edit.manifest.file)
    with open_store(scope, limits) as store:
        now = load_manifest(edit.manifest.folder, limits)
        if now is None or now.text != edit.manifest.text or is_link(path):
            raise _not_written_error(edit.manifest, "it was changed meanwhile, or is a link", edit.declaration)
        write_atomic(path, edit.text.encode(), mode=os.stat(path).st_mode & 0o777)
        after = load_manifest(edit.manifest.folder, limits)
        store.commit(
            with_declarations(
                store.locked, compare_manifest(after.declarations if after else None, store.locked, scope).unmarked
            )
        )


def _to_declaration(spec: SourceSpec, *skills: str) -> Declaration:
    from prowess.install.manifest import Declaration  # noqa: PLC0415 - typed above

    return Declaration(replace(spec, skills=skills or spec.skills), (), "")


def _other_keys(entry: ManifestEntry) -> dict[str, Any]:
    """The keys of an entry that say nothing about its source."""
    table = entry if isinstance(entry, dict) else {}
    return {key: value for key, value in table.items() if key not in {"source", "ref", "skills"}}


def _write_entry(
    manifest: ProjectManifest, scope: InstallScope, spec: SourceSpec, written: str, rest: dict[str, Any]
) -> ManifestEntry:
    """The shortest entry that names a source: a text where nothing else is to be said, else a table."""
    before = _parse_source(written, manifest)
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
    """What a text names as an entry of a manifest; ``None`` where it names nothing."""
    try:
        return parse_entry(source, ManifestDefaults(), manifest.folder).spec
    except InstallError:
        return None


def _spellings_of(spec: SourceSpec, scope: InstallScope, written: str, before: SourceSpec | None) -> Iterator[str]:
    """How a source might be written, what a person wrote first; which of them names it is tried out.

    ``before``: what ``written`` names: a version, or skills, that stood in it stay in it.
    """
    if written.startswith("@"):
        yield from (written, f"@{spec.full_name}@{spec.ref}")
    elif before is not None:
        tail = write_parts("", before.subpath, before.skills, marked=False)
        source = written.partition("#")[0] if "#" in written else written.removesuffix(tail)
        skills = spec.skills if before.skills else ()
        yield written
        for ref in (spec.ref if before.ref else "", spec.ref, ""):
            yield source + write_parts(ref, spec.subpath, skills, marked="#" in written)
    if spec.local:
        addresses = [source_for_lock(spec, scope), f"file://{quote(local_path(spec))}"]
    else:
        yield from (f"@{spec.full_name}", spec.full_name, f"{spec.full_name}/{spec.subpath}")
        addresses = [spec.address]
    for place in addresses:
        yield place + write_parts("", spec.subpath, (), marked=False)
        yield place + write_parts(spec.ref, spec.subpath, (), marked=True)


def _is_same_source(one: SourceSpec, other: SourceSpec) -> bool:
    where = local_path(one) == local_path(other) if one.local and other.local else one.address == other.address
    return where and (one.kind, one.full_name, one.subpath) == (other.kind, other.full_name, other.subpath)


def _change_text(manifest: ProjectManifest, edits: dict[int, ManifestEntry | None], added: list[ManifestEntry]) -> str:
    from prowess.install.manifest_text import UneditableError, change_entries, manifest_entry_text  # noqa: PLC0415 - 4 ms

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

"""Between a lock file's entry and the source that it records; and how the disk differs from the entry."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from prowess.errors import InstallError
from prowess.files.folders import folder_info
from prowess.files.paths import is_real_folder, is_really_inside
from prowess.files.tree import hash_tree
from prowess.spec.addresses import SourceSpec, checked_address

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prowess.install.trees import Tree
    from prowess.library.installs import Scope
    from prowess.library.lock import LockedSkill
    from prowess.limits import Limits
    from prowess.spec.addresses import Kind

_PATH = re.compile(r"(?:\.\.?|~)(?:/|$)|/|[A-Za-z]:[\\/]")
_KINDS: dict[str, Kind] = {"git": "git", "folder": "folder", "archive": "archive", "index": "index"}


def local_path(spec: SourceSpec) -> str:
    """Where a source of this machine is."""
    return os.path.abspath(os.path.join(spec.base, os.path.expanduser(spec.address)))


def refuse_own_source(spec: SourceSpec, into: str) -> None:
    """Raise when a folder of this machine holds the folder that it would be copied into: it would copy the copies."""
    if not spec.local or spec.kind != "folder":
        return
    if is_really_inside(into, local_path(spec)):
        raise InstallError(f"{spec.address} holds the folder that it would be copied into", into, "own-source")


def recorded_source(spec: SourceSpec, scope: Scope) -> str:
    """A source as the lock file has it: in a project, a relative path from the lock file's folder.

    A path that was named from the root, or from the home folder, stays so: a clone may lie elsewhere.
    """
    if not spec.local:
        return spec.address
    where = local_path(spec)
    _refuse_bytes(where)
    if scope.location == "user" or os.path.isabs(spec.address):
        return where
    if spec.address.startswith("~"):
        return spec.address.replace(os.sep, "/")
    inner = os.path.relpath(where, scope.records).replace(os.sep, "/")
    return inner if inner.startswith("..") else f"./{inner}"


def _refuse_bytes(path: str) -> None:
    """Raise for a path that is no text: a lock file could not hold it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InstallError(f"the path of the source is not UTF-8: {path!a}", code="bad-file-name") from None


def spec_of_entry(entry: LockedSkill, scope: Scope, *, ref: str = "") -> SourceSpec:
    """The source that an entry records, at ``ref``."""
    kind = _KINDS.get(entry.kind)
    if kind is None:
        raise InstallError(f"{entry.name} has no source that it could be fetched from", scope.records, "lock-mismatch")
    org, _, name = entry.name.partition("/")
    local = _PATH.match(entry.source) is not None
    if not local and kind == "git":
        checked_address(entry.source, ("https", "http", "ssh", "git"))
    version, base = ref if kind == "git" else "", scope.records if local else ""
    return SourceSpec(kind, entry.source, org, name, version, entry.subpath, local=local, base=base)


def comes_from(entry: LockedSkill, spec: SourceSpec, scope: Scope) -> bool:
    """Whether an entry's source is this one, however either is written."""
    if is_sourceless(entry) or not spec.local:
        return entry.source == spec.address
    own = spec_of_entry(entry, scope)
    return own.local and local_path(own) == local_path(spec)


def is_sourceless(entry: LockedSkill) -> bool:
    """Whether nothing could bring an entry back: it was adopted, and nobody knows from where it came."""
    return entry.kind not in _KINDS


def differences(entry: LockedSkill, folder: str, limits: Limits) -> list[tuple[str, str]]:
    """How a folder differs from what the lock file says: ``(code, path)``, by path."""
    if folder_info(folder) is None:
        return [("missing-skill", "")]
    found = hash_tree(folder, limits)
    listed = dict(entry.files)
    if found.files == listed and not found.odd:  # fast path: nearly every folder is what the lock file says
        return []
    rows = [("missing-file", path) for path in listed.keys() - found.files.keys()]
    rows += [("extra-file", path) for path in found.files.keys() - listed.keys()]
    rows += [("changed-file", path) for path in listed.keys() & found.files.keys() if listed[path] != found.files[path]]
    rows += [("extra-file", path) for _, path in found.odd]
    return sorted(rows, key=lambda row: (row[1], row[0]))


def copied_part(entry: LockedSkill, link: str) -> LockedSkill:
    """The entry with the files alone of the skill that a link of that name leads to."""
    return replace(entry, files=entry.below(entry.folder_of(os.path.basename(link))))


def is_copy(entry: LockedSkill, path: str, limits: Limits) -> bool:
    """Whether a real folder holds exactly the files that the lock file records for the skill of that name."""
    part = copied_part(entry, path)
    return bool(part.files) and is_real_folder(path) and not differences(part, path, limits)


def named(rows: Iterable[tuple[str, str]], most: int = 5) -> str:
    """Differences for a message, the first few of them."""
    listed = [f"{path or 'the folder'} ({code.removesuffix('-file').removesuffix('-skill')})" for code, path in rows]
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def same_content(entry: LockedSkill, tree: Tree) -> bool:
    """Whether a tree is byte for byte what the entry records."""
    return tree.digest == entry.digest

"""Between a lock file's entry and the source that it records."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from prowess.errors import InstallError, NotInstalledError
from prowess.files.paths import is_really_inside
from prowess.spec.source_spec import SourceSpec, check_address

if TYPE_CHECKING:
    from prowess.lockfile.read import LockEntry
    from prowess.lockfile.scopes import InstallScope
    from prowess.spec.source_spec import SourceKind

_EXPLICIT_PATH = re.compile(r"(?:\.\.?|~)(?:/|$)|/|[A-Za-z]:[\\/]")
_KINDS: dict[str, SourceKind] = {"git": "git", "folder": "folder", "archive": "archive", "index": "index"}


def local_path(spec: SourceSpec) -> str:
    """Where a source of this machine is."""
    return os.path.abspath(os.path.join(spec.base, os.path.expanduser(spec.address)))


def refuse_own_source(spec: SourceSpec, into: str) -> None:
    """Raise when a folder of this machine holds the folder that it would be copied into: it would copy the copies."""
    if not spec.local or spec.kind != "folder":
        return
    if is_really_inside(into, local_path(spec)):
        raise InstallError(f"{spec.address} holds the folder that it would be copied into", into, "own-source")


def source_for_lock(spec: SourceSpec, scope: InstallScope) -> str:
    """A source as the lock file has it: in a project, a relative path from the lock file's folder.

    A path that was named from the root, or from the home folder, stays so: a clone may lie elsewhere.
    """
    if not spec.local:
        return spec.address
    where = local_path(spec)
    _refuse_undecodable(where)
    if scope.location == "user" or os.path.isabs(spec.address):
        return where
    if spec.address.startswith("~"):
        return spec.address.replace(os.sep, "/")
    inner = os.path.relpath(where, scope.lock_folder).replace(os.sep, "/")
    return inner if inner.startswith("..") else f"./{inner}"


def _refuse_undecodable(path: str) -> None:
    """Raise for a path that is no text: a lock file could not hold it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InstallError(f"the path of the source is not UTF-8: {path!a}", code="bad-file-name") from None


def spec_of_entry(entry: LockEntry, scope: InstallScope, *, ref: str = "") -> SourceSpec:
    """The source that an entry records, at ``ref``."""
    kind = _KINDS.get(entry.kind)
    if kind is None:
        raise InstallError(
            f"{entry.name} has no source that it could be fetched from", scope.lock_folder, "lock-mismatch"
        )
    org, _, name = entry.name.partition("/")
    local = _EXPLICIT_PATH.match(entry.source) is not None
    if not local and kind == "git":
        check_address(entry.source, ("https", "http", "ssh", "git"))
    version, base = ref if kind == "git" else "", scope.lock_folder if local else ""
    return SourceSpec(kind, entry.source, org, name, version, entry.subpath, local=local, base=base)


def is_from_source(entry: LockEntry, spec: SourceSpec, scope: InstallScope) -> bool:
    """Whether an entry's source is this one, however either is written."""
    if is_sourceless(entry) or not spec.local:
        return entry.source == spec.address
    own = spec_of_entry(entry, scope)
    return own.local and local_path(own) == local_path(spec)


def is_sourceless(entry: LockEntry) -> bool:
    """Whether nothing could bring an entry back: it was adopted, and nobody knows from where it came."""
    return entry.kind not in _KINDS


def missing_install_error(name: str, place: str) -> NotInstalledError:
    """The error for an install that the lock file records and that is not on this disk, as in a fresh clone."""
    message = f"{name} is in the lock file, and its folder is missing: 'prowess sync --locked' brings it"
    return NotInstalledError(message, place, "missing-skill")

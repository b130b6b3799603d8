"""The source of a lock entry: how the lock file writes a source, and how an entry becomes a source again."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, get_args

from prowess.addresses.skill_ref import is_commit
from prowess.addresses.source_grammar import check_address
from prowess.addresses.source_spec import STORE_SCHEMES, VERSIONED_KINDS, SourceKind, SourceSpec
from prowess.errors import InstallError, NotInstalledError
from prowess.files.paths import is_really_inside, relative_path
from prowess.policy.rules import to_address

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.errors import Issue
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntry

_EXPLICIT_PATH = re.compile(r"(?:\.\.?|~)(?:/|$)|/|[A-Za-z]:[\\/]")
_KINDS: dict[str, SourceKind] = {kind: kind for kind in get_args(SourceKind)}


def local_path(spec: SourceSpec) -> str:
    """Return the absolute path of a source that is on this machine."""
    return os.path.abspath(os.path.join(spec.base, os.path.expanduser(spec.address)))


def policy_address(spec: SourceSpec) -> str:
    """Return the address of a source as the rules of a policy see it."""
    return to_address(local_path(spec)) if spec.local else spec.address


def refuse_own_source(spec: SourceSpec, into: str) -> None:
    """Raise ``InstallError`` (``own-source``) when a source is a folder that holds ``into``, where its copy goes."""
    # Each install would copy the copies of all installs before it.
    if not spec.local or spec.kind != "folder":
        return
    if is_really_inside(into, local_path(spec)):
        raise InstallError(f"{spec.address} holds the folder that it would be copied into", into, "own-source")


def source_for_lock(spec: SourceSpec, scope: InstallScope) -> str:
    """Return the text by which the lock file names a source. In a project a path is relative to the lock file's folder.

    A path that a person wrote from the root, or from the home folder, stays as it is. Raises ``InstallError``
    (``bad-file-name``) for a path that is not UTF-8.
    """
    if not spec.local:
        return spec.address
    path = local_path(spec)
    # The lock file is text, and could not hold a path that is not UTF-8.
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InstallError(f"the path of the source is not UTF-8: {path!a}", code="bad-file-name") from None
    # A clone of the project may be elsewhere, so only a path that a person wrote as absolute is recorded as absolute.
    if scope.location == "user" or os.path.isabs(spec.address):
        return path
    if spec.address.startswith("~"):
        return spec.address.replace(os.sep, "/")
    inner = relative_path(path, scope.lock_folder).replace(os.sep, "/")
    return inner if inner.startswith("..") or os.path.isabs(inner) else f"./{inner}"


def spec_of_entry(entry: LockEntry, scope: InstallScope, *, ref: str = "") -> SourceSpec:
    """Return the source that an entry records, at the version ``ref``; raises ``InstallError`` when it records none."""
    kind = _KINDS.get(entry.kind)
    if kind is None:
        raise InstallError(
            f"{entry.name} has no source that it could be fetched from", scope.lock_folder, "lock-mismatch"
        )
    org, _, name = entry.name.partition("/")
    local = _EXPLICIT_PATH.match(entry.source) is not None
    # A lock file may have come with a clone: git must not be given an address that makes it run a program.
    if not local and kind in VERSIONED_KINDS:
        check_address(entry.source, ("https", "http", *(("ssh", "git") if kind == "git" else ("oci", *STORE_SCHEMES))))
    # A site that was published keeps its earlier states, so that its skills can be had as they were locked.
    has_version = kind in VERSIONED_KINDS or (kind == "index" and is_commit(ref))
    version, base = ref if has_version else "", scope.lock_folder if local else ""
    return SourceSpec(kind, entry.source, org, name, version, entry.subpath, local=local, base=base)


def is_from_source(entry: LockEntry, spec: SourceSpec, scope: InstallScope) -> bool:
    """Return whether an entry comes from a source, even when the two are written differently."""
    if is_sourceless(entry) or not spec.local:
        return entry.source == spec.address
    recorded = spec_of_entry(entry, scope)
    return recorded.local and local_path(recorded) == local_path(spec)


def is_sourceless(entry: LockEntry) -> bool:
    """Return whether an entry has no source that could give it back: it was adopted, and its origin is unknown."""
    return entry.kind not in _KINDS


def missing_install_error(name: str, place: str) -> NotInstalledError:
    """Return the error for an install that the lock file records and that is not on this disk, as in a fresh clone."""
    message = f"{name} is in the lock file, and its folder is missing: 'prowess sync --locked' brings it"
    return NotInstalledError(message, place, "missing-skill")


def describe_unreachable(entry: LockEntry, issues: Sequence[Issue]) -> str:
    """Return the sentence that the site of an entry did not answer; ``""`` when it did.

    ``issues`` are those of the source: a site that did not answer is served from an old copy of its index.
    """
    stale = next((issue for issue in issues if issue.code == "stale-index"), None)
    return "" if stale is None else f"the source of {entry.name} could not be asked: {stale.message}"

"""The removal of installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.change import Change
from prowess.errors import NotInstalledError
from prowess.files.paths import shorten_path
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from prowess.errors import Issue
    from prowess.install.installer import Installer
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntry

_MIN_COMMIT_LENGTH = 7
"""How many characters of a commit's id are enough to name it."""


def prepare_removal(installer: Installer, refs: Mapping[InstallScope, Sequence[str]]) -> Change[list[Path]]:
    """Return the change that removes some installs of each scope; it returns where they were.

    Raises ``NotInstalledError`` for an install that is not here at the version that its reference names.
    """
    steps: list[str] = []
    for scope, names in refs.items():
        locked = read_lock(scope.lock_folder)
        for ref in map(SkillRef.parse, names):
            steps += _plan_removal(installer, ref, scope, locked.get(ref.full_name))
    issues: list[Issue] = []

    def remove_all() -> list[Path]:
        places: list[Path] = []
        for scope, names in refs.items():
            try:
                places += installer.remove(names, location=scope.location)
            finally:
                issues.extend(installer.issues)
        return places

    return Change(
        steps=steps,
        apply=remove_all,
        describe=lambda _: [f"Removed {name}" for names in refs.values() for name in names],
        issues=lambda: issues,
    )


def _plan_removal(installer: Installer, ref: SkillRef, scope: InstallScope, entry: LockEntry | None) -> list[str]:
    """Return the steps that remove an install. Raise ``NotInstalledError`` if it is not here at that version."""
    # A version is a safeguard: who names v1 does not mean to remove v2.
    if ref.version and (entry is None or not _is_at_version(entry, ref.version)):
        at = (
            f"at {entry.ref or entry.commit or 'no version'}" if entry is not None else "at a version that is not known"
        )
        raise NotInstalledError(f"{ref.full_name} is installed {at}, not at {ref.version}")
    try:
        what = f"remove {shorten_path(str(installer.resolve(ref, location=scope.location)))}"
    except NotInstalledError:
        # Somebody deleted the folder by hand: the lock file still has it, and 'sync' would bring it back.
        if entry is None:
            raise
        return [f"drop {ref.full_name} and its links from prowess.lock: its folder is missing"]
    skills = sorted(entry.skills) if entry is not None else []
    several = f", with all {len(skills)} skills in it: {', '.join(skills)}" if len(skills) > 1 else ""
    saved = ["take it out of the manifest"] if entry is not None and entry.declared else []
    places = "further copies" if entry is not None and entry.is_copied else "links"
    return [f"{what}{several}", f"remove its {places} and its entry in prowess.lock", *saved]


def _is_at_version(entry: LockEntry, version: str) -> bool:
    return version == entry.ref or (len(version) >= _MIN_COMMIT_LENGTH and entry.commit.startswith(version))

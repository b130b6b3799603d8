"""``prowess remove``: removes installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.addresses.skill_ref import SkillRef
from prowess.changes.change import Change
from prowess.cli.change_flow import ChangeFlags, ChangeView, carry_out, change_options
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_installs, find_location, installed_arguments, split_version
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render.blocks import line
from prowess.errors import InstallError, NotInstalledError
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.lockfile.read import read_lock
from prowess.text.quantities import format_count, join_first

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from prowess.cli.install_options import InstallRefs
    from prowess.errors import Issue
    from prowess.installed.scopes import InstallScope
    from prowess.lockfile.read import LockEntry


@new_command(
    "remove",
    ("prowess remove pdf", "by name"),
    ("prowess remove pdf csv", "several"),
    ("prowess remove @acme/pdf --yes", "without being asked"),
    ("prowess remove pdf --user", "your own, although this folder is in a project"),
)
@installed_arguments
@location_options
@change_options
def command(names: tuple[str, ...], *, asked: AskedLocation, flags: ChangeFlags) -> int:
    """Remove installed skills, their links, their entries in the lock file and in prowess.toml.

    Inside a project its installs are meant, and elsewhere your own. A skill that somebody edited goes to the backups,
    and its backup is named.

    An install goes as a whole. A skill of one that has several is refused, unless you name all of them.

    Every name is looked up before anything happens. Then all skills of the project are removed, or none of them; and
    all of your own, or none. Exit status 1: you said no.
    """
    installer = Installer()
    installs = find_installs(installer, names, find_location(installer, asked))
    for found in installs:
        _refuse_parts(found, {split_version(name)[0] for name in names})
    change = _prepare_removal(installer, {found.scope: found.refs for found in installs})
    view: ChangeView[list[Path]] = ChangeView(
        progress_text="removing",
        to_dict=lambda paths: {
            "plan": [*change.steps],
            "removed": str(paths[0]) if paths else None,
            "places": [str(place) for place in paths or ()],
            "issues": [issue_to_dict(issue) for issue in change.issues()],
        },
        report=lambda _: [line("Removed ", (ref, "name"), ".") for found in installs for ref in found.refs],
        declined_text="Nothing was removed.",
    )
    return carry_out(change, view, flags)


_MAX_NAMED = 5


def _refuse_parts(found: InstallRefs, names: set[str]) -> None:
    """Raise ``InstallError`` where somebody named one skill of an install, and others would go with it."""
    for full_name in (SkillRef.parse(ref).full_name for ref in found.refs):
        skills = set(found.entries[full_name].skills) if full_name in found.entries else set[str]()
        named = names & skills
        is_meant = full_name in names or (full_name.partition("/")[2] in names and not named)
        if len(skills) > 1 and not is_meant and named != skills:
            others = skills - named
            message = (
                f"{join_first(sorted(named), _MAX_NAMED)} is installed with {format_count(len(others), 'other skill')} "
                f"from one source ({join_first(sorted(others), _MAX_NAMED)}): '@{full_name}' removes all of them"
            )
            raise InstallError(message, code="part-of-install")


_MIN_COMMIT_LENGTH = 7
"""How many characters of a commit's id are enough to name it."""


def _prepare_removal(installer: Installer, refs: Mapping[InstallScope, Sequence[str]]) -> Change[list[Path]]:
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

"""``prowess remove``: removes installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_installs, find_location, installed_arguments
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import AskedLocation, location_options
from prowess.cli.render.blocks import line
from prowess.errors import NotInstalledError
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.spec.skill_ref import SkillRef

if TYPE_CHECKING:
    from pathlib import Path

    import prowess
    from prowess.cli.install_options import InstallRefs
    from prowess.lockfile.read import LockEntry

_MIN_COMMIT_LENGTH = 7
"""How many characters of a commit's id are enough to name it."""


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

    Every name is looked up before anything happens. Then all skills of the project are removed, or none of them; and
    all of your own, or none. Exit status 1: you said no.
    """
    installer = Installer()
    installs = find_installs(installer, names, find_location(installer, asked))
    steps = [
        step
        for found in installs
        for ref in found.refs
        for step in _plan_removal(installer, SkillRef.parse(ref), found)
    ]
    issues: list[prowess.Issue] = []

    def remove_all() -> list[Path]:
        places: list[Path] = []
        for found in installs:
            try:
                places += installer.remove(found.refs, location=found.scope.location)
            finally:
                issues.extend(installer.issues)
        return places

    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            needs_consent=True,
            progress_text="removing",
            apply=remove_all,
            to_dict=lambda paths: {
                "plan": steps,
                "removed": str(paths[0]) if paths else None,
                "places": [str(place) for place in paths or ()],
                "issues": [issue_to_dict(issue) for issue in issues],
            },
            report=lambda _: [line("Removed ", (ref, "name"), ".") for found in installs for ref in found.refs],
            declined_text="Nothing was removed.",
            issues=lambda: issues,
        ),
        flags,
    )


def _plan_removal(installer: Installer, ref: SkillRef, found: InstallRefs) -> list[str]:
    """Return the steps that remove an install. Raise ``NotInstalledError`` if it is not here at that version."""
    entry = found.entries.get(ref.full_name)
    # A version is a safeguard: who names v1 does not mean to remove v2.
    if ref.version and (entry is None or not _is_at_version(entry, ref.version)):
        at = (
            f"at {entry.ref or entry.commit or 'no version'}" if entry is not None else "at a version that is not known"
        )
        raise NotInstalledError(f"{ref.full_name} is installed {at}, not at {ref.version}")
    try:
        what = f"remove {shorten_path(str(installer.resolve(ref, location=found.scope.location)))}"
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

"""``prowess remove``: removes installed skills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.change_flow import ChangeFlags, PlannedChange, carry_out, change_options, plan_to_blocks
from prowess.cli.command_class import new_command
from prowess.cli.install_options import find_install_refs, installed_arguments, read_lock_entries
from prowess.cli.issues import issue_to_dict
from prowess.cli.render.blocks import line
from prowess.errors import NotInstalledError
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.spec.skill_ref import SkillRef

if TYPE_CHECKING:
    from prowess.lockfile.read import LockEntries, LockEntry

_MIN_COMMIT_LENGTH = 7
"""How many characters of a commit's id are enough to name it."""


@new_command(
    "remove",
    ("prowess remove pdf", "by name"),
    ("prowess remove pdf csv", "several"),
    ("prowess remove @acme/pdf --yes", "without being asked"),
)
@installed_arguments
@change_options
def command(names: tuple[str, ...], *, flags: ChangeFlags) -> int:
    """Remove installed skills, their links, their entries in the lock file and in prowess.toml.

    A skill that somebody edited goes to the backups, and its backup is named.

    Every name is looked up before anything happens. Then all skills of the project are removed, or none of them; and
    all of your own, or none. Exit status 1: you said no.
    """
    installer = Installer()
    refs = find_install_refs(installer, names)
    entries = read_lock_entries(installer)
    steps = [step for ref in refs for step in _plan_removal(installer, SkillRef.parse(ref), entries)]
    return carry_out(
        PlannedChange(
            plan=plan_to_blocks(steps),
            needs_consent=True,
            progress_text="removing",
            apply=lambda: installer.remove(refs),
            to_dict=lambda paths: {
                "plan": steps,
                "removed": str(paths[0]) if paths else None,
                "places": [str(place) for place in paths or ()],
                "issues": [issue_to_dict(issue) for issue in installer.issues],
            },
            report=lambda _: [line("Removed ", (ref, "name"), ".") for ref in refs],
            declined_text="Nothing was removed.",
            issues=lambda: installer.issues,
        ),
        flags,
    )


def _plan_removal(installer: Installer, ref: SkillRef, entries: LockEntries) -> list[str]:
    """Return the steps that remove an install. Raise ``NotInstalledError`` if it is not here at that version."""
    entry = entries.get(ref.full_name)
    # A version is a safeguard: who names v1 does not mean to remove v2.
    if ref.version and (entry is None or not _is_at_version(entry, ref.version)):
        at = (
            f"at {entry.ref or entry.commit or 'no version'}" if entry is not None else "at a version that is not known"
        )
        raise NotInstalledError(f"{ref.full_name} is installed {at}, not at {ref.version}")
    try:
        what = f"remove {shorten_path(str(installer.resolve(ref)))}"
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

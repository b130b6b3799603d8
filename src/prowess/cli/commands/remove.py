"""``prowess remove``: take an installed skill away."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import (
    dry_option,
    entry_of,
    installed_argument,
    issue_data,
    notes,
    ref_of,
    show_plan,
    yes_option,
)
from prowess.cli.options import home_relative, json_option
from prowess.errors import NotInstalledError
from prowess.install.installer import Installer
from prowess.spec.refs import SkillRef

if TYPE_CHECKING:
    from prowess.library.lock import LockedSkill

_SHORTEST = 7
"""So many characters of a commit's id name it."""


@new_command("remove", ("prowess remove pdf", "by name"), ("prowess remove @acme/pdf --yes", "without being asked"))
@installed_argument
@dry_option
@yes_option
@json_option
def command(name: str, *, dry_run: bool, yes: bool, as_data: bool) -> int:
    """Remove an installed skill, its links, its entry in the lock file and in prowess.toml.

    What someone edited goes to the backups, and is named.

    Exit status 1: you said no.
    """
    installer = Installer()
    ref = ref_of(installer, name)
    rows = _plan(installer, SkillRef.parse(ref))
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "removed": None, "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    gone = installer.remove(ref)
    output.answer(
        lambda: {
            "plan": rows,
            "removed": str(gone),
            "issues": [issue_data(issue) for issue in installer.issues],
        },
        lambda: [line("Removed ", (ref, "name"), ".")],
        as_data=as_data,
    )
    notes(installer.issues)
    return 0


def _plan(installer: Installer, ref: SkillRef) -> list[str]:
    """What goes; raises when there is nothing, or another version than the one named."""
    entry = entry_of(installer, ref.full_name)
    if ref.version and (entry is None or not _is_at(entry, ref.version)):
        at = (
            f"at {entry.ref or entry.commit or 'no version'}" if entry is not None else "at a version that is not known"
        )
        raise NotInstalledError(f"{ref.full_name} is installed {at}, not at {ref.version}")
    try:
        what = f"remove {home_relative(str(installer.resolve(ref)))}"
    except NotInstalledError:
        if entry is None:
            raise
        return [f"drop {ref.full_name} and its links from prowess.lock: its folder is missing"]
    held = sorted(entry.skills) if entry is not None else []
    several = f", with all {len(held)} skills in it: {', '.join(held)}" if len(held) > 1 else ""
    saved = ["take it out of the manifest"] if entry is not None and entry.declared else []
    return [f"{what}{several}", "remove its links and its entry in prowess.lock", *saved]


def _is_at(entry: LockedSkill, version: str) -> bool:
    return version == entry.ref or (len(version) >= _SHORTEST and entry.commit.startswith(version))

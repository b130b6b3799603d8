"""``prowess remove``: take an installed skill away."""

from __future__ import annotations

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import dry_option, installed_argument, notes, ref_of, show_plan, yes_option
from prowess.cli.options import home_relative, json_option
from prowess.install.installer import Installer


@new_command("remove", ("prowess remove pdf", "by name"), ("prowess remove @acme/pdf --yes", "without being asked"))
@installed_argument
@dry_option
@yes_option
@json_option
def command(name: str, *, dry_run: bool, yes: bool, as_data: bool) -> int:
    """Remove an installed skill, its links and its entry in the lock file; what someone edited goes to the backups.

    Exit status 1: you said no.
    """
    installer = Installer()
    ref = ref_of(installer, name)
    where = installer.resolve(ref)
    rows = [f"remove {home_relative(str(where))}", "remove its links and its entry in prowess.lock"]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "removed": None}, list, as_data=as_data)
        return 0 if dry_run else 1
    gone = installer.remove(ref)
    output.answer(
        lambda: {"plan": rows, "removed": str(gone)},
        lambda: [line("Removed ", (ref, "name"), ".")],
        as_data=as_data,
    )
    notes(installer.issues)
    return 0

"""``prowess verify``: compares every installed file with the lock files."""

from __future__ import annotations

from prowess.cli.command_class import new_command
from prowess.cli.install_options import note_missing_lock
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.files.paths import shorten_path
from prowess.install.installer import Installer
from prowess.lockfile.read import read_lock
from prowess.spec.quantities import format_count


@new_command("verify", ("prowess verify", "every file hashed and compared"), ("prowess verify --json", "as data"))
@json_option
def command(*, as_data: bool) -> int:
    """Hash every installed file, compare it with the lock files, and name each changed, missing or extra file.

    Exit status 1: something differs.
    """
    installer = Installer()
    with printer.show_progress("hashing"):
        issues = installer.verify()
    count = len(installer.list())
    rows = [((i.code, "bad"), (shorten_path(i.path), "name"), i.message, (i.hint, "dim")) for i in issues]
    printer.print_answer(
        lambda: {"installed": count, "issues": [issue_to_dict(issue) for issue in issues]},
        lambda: (
            [Table(rows)]
            if rows
            else [line((f"{_describe_count(installer)} installed, all as the lock files say.", "good"))]
        ),
        as_data=as_data,
    )
    note_missing_lock(installer)
    return 1 if issues else 0


def _describe_count(installer: Installer) -> str:
    """Return how many skills the lock files record. An install may hold several, and ``list`` counts each."""
    scopes = (installer.project, installer.user)
    return format_count(
        sum(len(entry.skills) for scope in scopes for entry in read_lock(scope.lock_folder).values()), "skill"
    )

"""``prowess verify``: whether everything installed is what the lock files say."""

from __future__ import annotations

from prowess.cli.command_class import new_command
from prowess.cli.install_options import issue_to_dict, note_missing_lock
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.cli.shown_paths import shorten_path
from prowess.install.installer import Installer
from prowess.lockfile.read import read_lock
from prowess.spec.quantities import format_count


@new_command("verify", ("prowess verify", "every file hashed and compared"), ("prowess verify --json", "as data"))
@json_option
def command(*, as_data: bool) -> int:
    """Hash every installed file and compare it with the lock files: each changed, missing or extra file by name.

    Exit status 1: something differs.
    """
    installer = Installer()
    with printer.show_progress("hashing"):
        found = installer.verify()
    count = len(installer.list())
    rows = [((i.code, "bad"), (shorten_path(i.path), "name"), i.message, (i.hint, "dim")) for i in found]
    printer.print_answer(
        lambda: {"installed": count, "issues": [issue_to_dict(issue) for issue in found]},
        lambda: (
            [Table(rows)]
            if rows
            else [line((f"{_describe_count(installer)} installed, all as the lock files say.", "good"))]
        ),
        as_data=as_data,
    )
    note_missing_lock(installer)
    return 1 if found else 0


def _describe_count(installer: Installer) -> str:
    """How many skills the lock files record, as ``list`` counts them: an install may hold several."""
    scopes = (installer.project, installer.user)
    return format_count(
        sum(len(entry.skills) for scope in scopes for entry in read_lock(scope.lock_folder).values()), "skill"
    )

"""``prowess verify``: whether everything installed is what the lock files say."""

from __future__ import annotations

from prowess.cli.command import command as new_command
from prowess.cli.installs import issue_data, tell_unlocked
from prowess.cli.options import home_relative, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.install.installer import Installer
from prowess.lockfile.read import read_lock
from prowess.spec.plural import counted


@new_command("verify", ("prowess verify", "every file hashed and compared"), ("prowess verify --json", "as data"))
@json_option
def command(*, as_data: bool) -> int:
    """Hash every installed file and compare it with the lock files: each changed, missing or extra file by name.

    Exit status 1: something differs.
    """
    installer = Installer()
    with printer.busy("hashing"):
        found = installer.verify()
    count = len(installer.list())
    rows = [((i.code, "bad"), (home_relative(i.path), "name"), i.message, (i.hint, "dim")) for i in found]
    printer.answer(
        lambda: {"installed": count, "issues": [issue_data(issue) for issue in found]},
        lambda: (
            [Table(rows)]
            if rows
            else [line((f"{_count_skills(installer)} installed, all as the lock files say.", "good"))]
        ),
        as_data=as_data,
    )
    tell_unlocked(installer)
    return 1 if found else 0


def _count_skills(installer: Installer) -> str:
    """How many skills the lock files record, as ``list`` counts them: an install may hold several."""
    scopes = (installer.project, installer.user)
    return counted(sum(len(entry.skills) for scope in scopes for entry in read_lock(scope.records).values()), "skill")

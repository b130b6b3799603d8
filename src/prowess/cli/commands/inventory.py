"""``prowess inventory``: lists what is installed in many projects, with a digest for each skill."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.errors import InstallError
from prowess.files.paths import shorten_path
from prowess.installed.policy_check import list_inventory
from prowess.installed.scopes import project_scope, user_scope
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.installed.policy_check import InventoryRow

_HEAD = ("skill", "digest", "version", "source", "project")


@new_command(
    "inventory",
    ("prowess inventory --user", "this project and your own"),
    ("prowess inventory ~/work/* --json", "many projects, as data"),
)
@click.argument("projects", nargs=-1, type=click.Path(exists=True, file_okay=False), metavar="[PROJECT]...")
@click.option("--user", is_flag=True, help="Your own installs too.")
@json_option
def command(projects: tuple[str, ...], *, user: bool, as_data: bool) -> int:
    """List the installed skills of projects: the digest of each, its version, source and commit.

    Only what is on the disk is listed. Without a PROJECT, this one is meant. Exit status 3: at least one lock file
    cannot be read; the others are listed.
    """
    scopes = [project_scope(os.path.join(os.path.abspath(one), ".prowess", "skills")) for one in projects]
    scopes = scopes or [project_scope()]
    rows: list[InventoryRow] = []
    failed = False
    for scope in (*scopes, *([user_scope()] if user else ())):
        try:
            rows += list_inventory(scope, read_lock(scope.lock_folder))
        except InstallError as error:
            failed = True
            printer.warn(str(error))
    printer.print_answer(
        lambda: {"skills": [row._asdict() for row in rows]}, lambda: [*_to_blocks(rows)], as_data=as_data
    )
    return 3 if failed else 0


def _to_blocks(rows: Sequence[InventoryRow]) -> Iterator[Block]:
    if not rows:
        yield line("Nothing is installed.")
        return
    yield Table(
        [
            (
                (row.skill, "name"),
                row.digest[:12],
                row.version or row.commit[:12] or "-",
                row.source,
                shorten_path(row.project),
            )
            for row in rows
        ],
        head=_HEAD,
    )

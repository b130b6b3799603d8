"""``prowess install``: bring skills here, pin and link them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli import output
from prowess.cli.blocks import line
from prowess.cli.command import command as new_command
from prowess.cli.installing import (
    agents_option,
    dry_option,
    installed_data,
    installed_line,
    issue_data,
    notes,
    reach_options,
    show_plan,
    yes_option,
)
from prowess.cli.options import as_path, home_relative, json_option
from prowess.errors import BadReferenceError
from prowess.spec.addresses import parse_source
from prowess.spec.refs import is_local_path

if TYPE_CHECKING:
    from prowess.install.installer import Installer


@new_command(
    "install",
    ("prowess install owner/repo", "every skill of a repository, for you"),
    ("prowess install owner/repo@pdf --project --agent claude-code", "one of them, for the project"),
    ("prowess install ./skills/csv-report", "a folder of this machine"),
    ("prowess install @acme/pdf@v1.2.0 --dry-run", "only the plan"),
)
@click.argument("source")
@click.option("--skill", "select", multiple=True, metavar="NAME", help="Only this skill of the source.")
@click.option("-p", "--project", is_flag=True, help="For the project in this folder, not for you.")
@click.option(
    "--into", "folder", type=click.Path(file_okay=False), help="Only copy it into this folder: no links, no lock."
)
@click.option("--replace", is_flag=True, help="Take the place of what is there.")
@click.option("--no-save", "save", flag_value=False, default=True, help="Do not declare it in prowess.toml.")
@agents_option
@reach_options
@dry_option
@yes_option
@json_option
def command(
    source: str,
    *,
    select: tuple[str, ...],
    project: bool,
    folder: str | None,
    replace: bool,
    save: bool,
    agents: tuple[str, ...],
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Install skills from SOURCE: show the plan, ask, fetch, pin in prowess.lock, link where agents look.

    SOURCE: owner/repo, owner/repo@skill, owner/repo/folder#ref, @org/name@version, any git address, a folder or an
    archive. Where there is a prowess.toml, it declares what was installed from then on, unless --no-save. --allow-http
    and --allow-private count for this command alone: a later sync or update needs them again.
    Exit status 1: you said no.
    """
    _tell_of_path(source)
    if folder is not None:
        return _copy(installer, source, folder, select, dry_run=dry_run, yes=yes, as_data=as_data)
    if not dry_run:
        installer.recover()  # before the plan is made: what was interrupted may have taken the place
        notes(installer.issues)
    plan = installer.plan(source, project, select=select or None, agents=agents, replace=replace, save=save)
    rows = str(plan).splitlines()
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        notes(installer.issues)
        output.answer(lambda: {"plan": rows, "installed": [], "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    with output.busy(f"fetching {source}"):
        done = installer.apply(plan)
    output.answer(
        lambda: {
            "plan": rows,
            "installed": [installed_data(one) for one in done],
            "issues": [issue_data(i) for i in installer.issues],
        },
        lambda: [installed_line("Installed", one) for one in done],
        as_data=as_data,
    )
    if not as_data:
        notes(installer.issues)
    return 0


def _tell_of_path(source: str) -> None:
    """Say so when what is written as a name or a repository is the path of something here as well."""
    if is_local_path(source) or not os.path.lexists(source):
        return
    try:
        spec = parse_source(source)
    except BadReferenceError as error:
        message = f"{error.message}; something of that name is here: write {as_path(source)}"
        raise BadReferenceError(message, error.path, error.code) from None
    if not spec.local:
        output.note(f"{source} is taken for {spec.address}; what is here by that name is {as_path(source)}")


def _copy(
    installer: Installer, source: str, folder: str, select: tuple[str, ...], *, dry_run: bool, yes: bool, as_data: bool
) -> int:
    parse_source(source)  # what is refused is refused before it is shown: it may hold a secret
    rows = [f"fetch {source}", f"copy it into {folder}: no links, no lock file"]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "installed": [], "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    with output.busy(f"fetching {source}"):
        made = installer.install_into(source, folder, select=select or None)
    output.answer(
        lambda: {
            "plan": rows,
            "installed": [{"name": made.name, "location": "folder", "path": str(made)}],
            "issues": [],
        },
        lambda: [line("Copied ", (made.name, "name"), f": {home_relative(str(made))}")],
        as_data=as_data,
    )
    return 0

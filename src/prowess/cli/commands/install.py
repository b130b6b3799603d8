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
from prowess.install.plan import source_from
from prowess.spec.addresses import parse_source, with_parts
from prowess.spec.refs import is_local_path
from prowess.spec.source_parts import GRAMMAR

if TYPE_CHECKING:
    from prowess.install.installer import Installer
    from prowess.spec.addresses import SourceSpec


@new_command(
    "install",
    ("prowess install owner/repo", "every skill of a repository, for you"),
    ("prowess install owner/repo@pdf --project --agent claude-code", "one of them, for the project"),
    ("prowess install owner/repo#v2:tools@pdf,csv", "two skills of a folder of it, at a version"),
    ("prowess install ./skills/csv-report", "a folder of this machine"),
    ("prowess install @acme/pdf@v1.2.0 --dry-run", "only the plan"),
    forms=GRAMMAR,
)
@click.argument("source")
@click.option("--ref", default="", metavar="REF", help="This tag, branch or commit of the source.")
@click.option("--path", "subpath", default="", metavar="SUBFOLDER", help="Only this folder of the source.")
@click.option("--skill", "select", multiple=True, metavar="NAME", help="Only this skill of the source.")
@click.option("-p", "--project", is_flag=True, help="For the project in this folder, not for you.")
@click.option(
    "--into", "folder", type=click.Path(file_okay=False), help="Only copy it into this folder: no links, no lock."
)
@click.option("--replace", is_flag=True, help="Take the place of what is there.")
@agents_option
@reach_options
@dry_option
@yes_option
@json_option
def command(
    source: str,
    *,
    ref: str,
    subpath: str,
    select: tuple[str, ...],
    project: bool,
    folder: str | None,
    replace: bool,
    agents: tuple[str, ...],
    installer: Installer,
    dry_run: bool,
    yes: bool,
    as_data: bool,
) -> int:
    """Install skills from SOURCE: show the plan, ask, fetch, pin in prowess.lock, link where agents look.

    SOURCE[#REF][:SUBFOLDER][@SKILL,…] says from where, at which version, which folder and which skills; --ref, --path
    and --skill say the same, and must not contradict it. --allow-http and --allow-private count for this command alone:
    a later sync or update needs them again.
    Exit status 1: you said no.
    """
    _tell_of_path(source)
    spec = with_parts(source_from(source), ref=ref, subpath=subpath, skills=select)
    if folder is not None:
        return _copy(installer, spec, folder, dry_run=dry_run, yes=yes, as_data=as_data)
    if not dry_run:
        installer.recover()  # before the plan is made: what was interrupted may have taken the place
        notes(installer.issues)
    plan = installer.plan(spec, project, agents=agents, replace=replace)
    rows = str(plan).splitlines()
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        notes(installer.issues)
        output.answer(lambda: {"plan": rows, "installed": [], "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    with output.busy(f"fetching {spec}"):
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


def _copy(installer: Installer, spec: SourceSpec, folder: str, *, dry_run: bool, yes: bool, as_data: bool) -> int:
    rows = [f"fetch {spec}", f"copy it into {folder}: no links, no lock file"]
    show_plan(rows)
    if dry_run or not output.confirm("Do this?", yes=yes):
        output.answer(lambda: {"plan": rows, "installed": [], "issues": []}, list, as_data=as_data)
        return 0 if dry_run else 1
    with output.busy(f"fetching {spec}"):
        made = installer.install_into(spec, folder)
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

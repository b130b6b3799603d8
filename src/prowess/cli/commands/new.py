"""``prowess new``: makes the folder of a new skill, to be filled in."""

from __future__ import annotations

import os
import shlex

import click

from prowess.authoring.new import PARTS, create_skill
from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.files.paths import shorten_path


def _complete_parts(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    # Only the part after the last comma is completed.
    head, _, last = incomplete.rpartition(",")
    return [f"{head}{',' if head else ''}{part}" for part in PARTS if part.startswith(last)]


def _check_parts(ctx: click.Context, param: click.Parameter, written: str) -> list[str]:
    """Return the parts that were named. Raise ``click.BadParameter`` for an unknown one."""
    parts = [part.strip() for part in written.split(",") if part.strip()]
    for part in parts:
        if part not in PARTS:
            raise click.BadParameter(f"no part {part!r}; one of {', '.join(PARTS)}", ctx, param)
    return parts


@new_command(
    "new",
    ("prowess new weekly-report", "in this folder"),
    ("prowess new skills/weekly-report", "in the folder skills"),
    ("prowess new weekly-report --dir .agents/skills --with scripts,references", "where agents look, with files"),
    instead={f"--{part}": f"--with {part}" for part in PARTS},
)
@click.argument("name", metavar="[FOLDER/]NAME")
@click.option("-d", "--dir", "folder", default=".", type=click.Path(file_okay=False), help="The folder to begin it in.")
@click.option("--description", default="", metavar="TEXT", help="What it does and when to use it.")
@click.option(
    "--with",
    "parts",
    default="",
    metavar="PARTS",
    shell_complete=_complete_parts,
    callback=_check_parts,
    help=f"Also: {', '.join(PARTS)}; commas between.",
)
@json_option
def command(name: str, *, folder: str, description: str, parts: list[str], as_data: bool) -> None:
    """Begin a skill: a folder NAME with a SKILL.md to fill in.

    'prowess check' finds no error in it, and warns of each sentence that you still have to write.
    """
    parent, name = os.path.split(name.rstrip("/" + os.sep))
    skill_folder = create_skill(name, os.path.join(folder, parent), description=description, parts=parts)
    files = sorted(path.relative_to(skill_folder).as_posix() for path in skill_folder.rglob("*") if path.is_file())
    shown_folder = shorten_path(str(skill_folder))
    typed = os.path.normpath(os.path.join(folder, parent, name))
    argument = shlex.quote(typed if os.path.isabs(typed) or typed.startswith("..") else os.path.join(".", typed))
    printer.print_answer(
        lambda: {"name": name, "folder": str(skill_folder), "files": files},
        lambda: [
            line("Made ", (shown_folder, "name"), f" with {', '.join(files)}."),
            line(f"Next: fill in SKILL.md, then 'prowess check {argument}' and 'prowess preview {argument}'."),
        ],
        as_data=as_data,
    )

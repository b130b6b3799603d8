"""``prowess unpack``: unpacks the skill in an archive into a folder."""

from __future__ import annotations

import click

from prowess.authoring.pack import unpack_into
from prowess.cli.command_class import new_command
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.files.paths import shorten_path
from prowess.text.quantities import format_count


@new_command(
    "unpack",
    ("prowess unpack csv-report.skill", "as ./csv-report"),
    ("prowess unpack csv-report.skill --force", "in place of an existing one"),
    ("prowess unpack csv-report.tar.gz --dir .agents/skills", "where agents look"),
)
@click.argument("archive", type=click.Path(exists=True, dir_okay=False))
@click.option("-d", "--dir", "folder", default=".", type=click.Path(file_okay=False), help="The folder to put it in.")
@click.option("--force", is_flag=True, help="Replace the existing folder of a skill.")
@json_option
def command(archive: str, *, folder: str, force: bool, as_data: bool) -> None:
    """Unpack the skill in an archive (.skill, .zip, .tar.gz) into a new folder with the name of the skill.

    An archive with links, unsafe names or anything but one skill is refused as a whole, and nothing is written.
    """
    with printer.show_progress("unpacking"):
        skill_folder = unpack_into(archive, folder, replace=force)
    files = sorted(path.relative_to(skill_folder).as_posix() for path in skill_folder.rglob("*") if path.is_file())
    printer.print_answer(
        lambda: {"name": skill_folder.name, "folder": str(skill_folder), "files": files},
        lambda: [
            line(
                "Unpacked ",
                (skill_folder.name, "name"),
                f": {shorten_path(str(skill_folder))}, {format_count(len(files), 'file')}",
            )
        ],
        as_data=as_data,
    )

"""``prowess pack``: packs a skill into one file."""

from __future__ import annotations

import click

from prowess.authoring.pack import ARCHIVE_FORMATS, ArchiveFormat, pack, write_packed
from prowess.cli.command_class import new_command
from prowess.cli.options import complete_skill_or_path, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.cli.skill_lookup import find_path, load_cli_settings
from prowess.files.paths import shorten_path
from prowess.text.quantities import format_count


@new_command(
    "pack",
    ("prowess pack skills/csv-report", "csv-report.skill in this folder"),
    ("prowess pack skills/csv-report --format tar.gz -o dist/csv-report.tar.gz", "SKILL.md on top, for a site"),
)
@click.argument("path", metavar="PATH|NAME", shell_complete=complete_skill_or_path)
@click.option(
    "-o", "--output", "target", type=click.Path(dir_okay=False), help="The file to write; NAME.FORMAT by default."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(ARCHIVE_FORMATS),
    help="The format; by default that of the name of --output, or skill.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@json_option
def command(path: str, *, target: str | None, form: ArchiveFormat | None, force: bool, as_data: bool) -> None:
    """Pack the skill in a folder, or the skill of a name. Equal content always gives equal bytes.

    A .skill file is a zip with one folder in it. A .zip or .tar.gz has SKILL.md at its top. The skill must pass
    'prowess check'.
    """
    chosen = form or _guess_format(target or "")
    path = find_path(load_cli_settings(), path)
    with printer.show_progress("packing"):
        packed = pack(path, form=chosen)
    where = target or f"{packed.name}.{chosen}"
    write_packed(packed, where, replace=force)
    printer.print_issues(packed.issues)
    printer.print_answer(
        lambda: {
            "name": packed.name,
            "path": where,
            "format": chosen,
            "bytes": len(packed.data),
            "sha256": packed.digest,
            "files": list(packed.files),
            "left_out": list(packed.left_out),
        },
        lambda: [
            line(
                "Packed ",
                (packed.name, "name"),
                f": {shorten_path(where)}, {format_count(len(packed.files), 'file')}, "
                f"{format_count(len(packed.data), 'byte')}",
            ),
            line((f"sha256 {packed.digest}", "dim"), indent=2),
            *([line((f"left out: {', '.join(packed.left_out)}", "dim"), indent=2)] if packed.left_out else []),
        ],
        as_data=as_data,
    )


def _guess_format(target: str) -> ArchiveFormat:
    # Without a name to go by it is the first format.
    form = next((known for known in ARCHIVE_FORMATS if not target or target.endswith(f".{known}")), None)
    if form is None:
        ends = ", ".join(f".{known}" for known in ARCHIVE_FORMATS)
        raise click.UsageError(f"the name {target!r} has no known ending: use one of {ends}, or --format")
    return form

"""``prowess read``: prints the instructions of a skill, or one of its files."""

from __future__ import annotations

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, catalog_options, complete_file, complete_skill, json_option
from prowess.cli.render import printer
from prowess.cli.skill_lookup import find_skill_and_warn, load_cli_settings
from prowess.limits import DEFAULT_LIMITS


@new_command(
    "read",
    ("prowess read csv-report", "its instructions"),
    ("prowess read csv-report references/columns.md", "one of its files"),
    ("prowess read csv-report assets/sample.csv --raw > sample.csv", "a file, byte for byte"),
)
@click.argument("skill", metavar="NAME", shell_complete=complete_skill)
@click.argument("file", required=False, shell_complete=complete_file)
@click.option("--raw", is_flag=True, help="Write the bytes unchanged; not to a terminal.")
@catalog_options
@json_option
def command(
    skill: str,
    file: str | None,
    *,
    raw: bool,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    r"""Print the instructions of a skill, or one of its files.

    Control characters are shown as escapes (\x1b). Commands in the instructions are printed as written: nothing runs.
    """
    chosen = find_skill_and_warn(load_cli_settings(**where), skill)
    if raw:
        # Bytes that are not UTF-8 are written as they are; the text below could not hold them.
        printer.write_bytes(chosen.read_bytes(file) if file else chosen.read_body(errors="bytes"))
        return
    text = chosen.read_resource(file, DEFAULT_LIMITS.max_body_bytes) if file else chosen.read_body()
    if as_data:
        printer.print_answer(lambda: {"name": chosen.name, "file": file, "content": text}, list, as_data=True)
    else:
        printer.print_text(text)

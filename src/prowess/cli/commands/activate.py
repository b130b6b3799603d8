"""``prowess activate``: the instructions of a skill as a conversation would load them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.session import open_session
from prowess.cli.skill_lookup import load_cli_settings

if TYPE_CHECKING:
    from prowess.cli.options import CatalogFlags


@new_command(
    "activate",
    ("prowess activate csv-report", "its instructions, ready for a model"),
    ("prowess activate deep-review main...HEAD", "as a person's explicit call"),
)
@skill_argument
@click.argument("arguments", nargs=-1, metavar="[ARGS]...")
@catalog_options
@json_option
def command(
    skill: str,
    arguments: tuple[str, ...],
    *,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """Activate a skill and print its instructions; commands in them run if this state of the skill is trusted.

    With ARGS: the text that a person's explicit call with them sends to the model.
    """
    session, name = open_session(load_cli_settings(**where), skill)
    called = session.expand(f"/{name} {' '.join(arguments)}", inline_forks=True) if arguments else ""
    found = session.activate(name)
    text = called or found.instructions
    if as_data:
        printer.print_answer(
            lambda: {
                "name": name,
                "instructions": text,
                "added_tools": list(found.added_tools),
                "location": found.skill.location,
                "issues": [
                    {"code": i.code, "field": i.field, "message": i.message, "hint": i.hint} for i in found.issues
                ],
            },
            list,
            as_data=True,
        )
        return
    printer.print_text(text)
    for issue in found.issues:
        printer.warn(f"[{issue.code}] {issue.message}")

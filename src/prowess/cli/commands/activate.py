"""``prowess activate``: the instructions of a skill as a conversation would load them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from prowess.cli.command import command as new_command
from prowess.cli.options import json_option, settings_of, skill_argument, where_options
from prowess.cli.render import printer
from prowess.cli.session_setup import session_for

if TYPE_CHECKING:
    from prowess.cli.options import Where


@new_command(
    "activate",
    ("prowess activate csv-report", "its instructions, ready for a model"),
    ("prowess activate deep-review main...HEAD", "as a person's explicit call"),
)
@skill_argument
@click.argument("arguments", nargs=-1, metavar="[ARGS]...")
@where_options
@json_option
def command(
    skill: str,
    arguments: tuple[str, ...],
    *,
    where: Where,
    as_data: bool,
) -> None:
    """Activate a skill and print its instructions; commands in them run if this state of the skill is trusted.

    With ARGS: the text that a person's explicit call with them sends to the model.
    """
    session, name = session_for(settings_of(**where), skill)
    called = session.expand(f"/{name} {' '.join(arguments)}", inline_forks=True) if arguments else ""
    found = session.activate(name)
    text = called or found.instructions
    if as_data:
        printer.answer(
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
    printer.exact_text(text)
    for issue in found.issues:
        printer.warn(f"[{issue.code}] {issue.message}")

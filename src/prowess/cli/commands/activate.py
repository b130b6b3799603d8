"""``prowess activate``: prints the instructions of a skill as a model would get them."""

from __future__ import annotations

import click

from prowess.cli.command_class import new_command
from prowess.cli.issues import SKILL_FIELDS, issue_to_dict
from prowess.cli.options import CatalogFlags, catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.session import open_session
from prowess.cli.skill_lookup import load_cli_settings


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
    """Activate a skill and print its instructions. Commands in them run if this state of the skill is trusted.

    With ARGS, print the text that a person's call '/NAME ARGS' sends to the model.
    """
    session, name = open_session(load_cli_settings(**where), skill)
    # A forked skill would become the task of a sub-agent; here its text is wanted.
    called_text = session.expand(f"/{name} {' '.join(arguments)}", inline_forks=True) if arguments else ""
    activation = session.activate(name)
    text = called_text or activation.instructions
    if as_data:
        printer.print_answer(
            lambda: {
                "name": name,
                "instructions": text,
                "added_tools": list(activation.added_tools),
                "location": activation.skill.location,
                "issues": [issue_to_dict(issue, SKILL_FIELDS) for issue in activation.issues],
            },
            list,
            as_data=True,
        )
        return
    printer.print_text(text)
    for issue in activation.issues:
        printer.warn(f"[{issue.code}] {issue.message}")

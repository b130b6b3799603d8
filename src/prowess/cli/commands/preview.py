"""``prowess preview``: prints what a model receives when it loads a skill."""

from __future__ import annotations

import click

from prowess.cli.command_class import new_command
from prowess.cli.issues import SKILL_FIELDS, issue_to_dict
from prowess.cli.options import CatalogFlags, catalog_options, json_option, skill_argument
from prowess.cli.render import printer
from prowess.cli.render.blocks import Verbatim
from prowess.cli.selection import open_session
from prowess.cli.skill_lookup import load_cli_settings
from prowess.conversation.rendering import preview
from prowess.text.tokens import estimate_tokens


@new_command(
    "preview",
    ("prowess preview ./csv-report", "what a model that loads it receives"),
    ("prowess preview deep-review main...HEAD", "what a person's '/deep-review main...HEAD' sends"),
)
@skill_argument
@click.argument("arguments", nargs=-1, metavar="[ARGS]...")
@click.option("--no-run", is_flag=True, help="Leave commands as they are written, even of a trusted skill.")
@catalog_options
@json_option
def command(
    skill: str,
    arguments: tuple[str, ...],
    *,
    no_run: bool,
    where: CatalogFlags,
    as_data: bool,
) -> None:
    """Print what a model receives when it loads a skill. Text that the author did not write is marked.

    NAME is the name of a skill, its folder, or its SKILL.md. With ARGS, show what a person's call '/NAME ARGS' sends.
    Commands of a trusted skill run, as they would for the model.
    """
    session, name = open_session(load_cli_settings(**where), skill, run=not no_run)
    preview_text = preview(session, name, " ".join(arguments) if arguments else None)
    location = session.catalog[name].location
    printer.print_answer(
        lambda: {
            "name": name,
            "location": location,
            "content": preview_text.content,
            "marks": [{"begin": begin, "end": end} for begin, end in preview_text.marks],
            "tokens": estimate_tokens(preview_text.content),
            "added_tools": list(session.active_tools),
            "issues": [issue_to_dict(issue, SKILL_FIELDS) for issue in preview_text.issues],
        },
        lambda: [Verbatim(preview_text.content, preview_text.marks)],
        as_data=as_data,
    )
    # As data the issues are part of the answer.
    for issue in () if as_data else preview_text.issues:
        printer.warn(f"[{issue.code}] {issue.message}")
    printer.note(f"about {estimate_tokens(preview_text.content):,} tokens", quiet=as_data)

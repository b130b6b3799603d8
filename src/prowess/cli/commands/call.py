"""``prowess call``: makes one tool call, as a model would, or lists the tools."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, catalog_options, folder_option, json_option, note_empty_folder
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table
from prowess.cli.selection import open_session
from prowess.cli.skill_lookup import load_cli_settings
from prowess.conversation.acting.scripts import Scripts
from prowess.limits import DEFAULT_LIMITS
from prowess.tools.definitions import parse_arguments
from prowess.tools.dialects import DIALECTS
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    import prowess

_FORK_NOTE = (
    "Nothing ran: the sub-agent is prepared, and the host runs it. --json shows what it would get (under fork); "
    "in a program, Toolset(session, fork=...) runs it (docs/how-to/acting.md)."
)

_JSON_NOTE = 'JSON is an object with the tool\'s parameters, in quotes for the shell: \'{"name": "csv-report"}\''


@new_command(
    "call",
    ('prowess call load_skill \'{"name": "csv-report"}\'', "what a model gets when it loads a skill"),
    ("prowess call", "the tools that a model is offered"),
    ("prowess call run_skill_script - --folder . < call.json", "a script that works in this folder"),
    ('echo \'{"name": "csv-report"}\' | prowess call skill__activate - --dialect skill__activate', "another dialect"),
)
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--dialect", type=click.Choice(list(DIALECTS)), help="The names and shapes of the tools.")
@click.option(
    "--scripts/--no-scripts", default=True, show_default=True, help="Whether scripts of trusted skills may run."
)
@folder_option
@catalog_options
@json_option
def command(
    tool: str | None,
    arguments: str | None,
    *,
    dialect: str | None,
    scripts: bool,
    folder: str | None,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Make one tool call, as a model would, and print the result. Without TOOL, list the tools that a model gets.

    If JSON is '-', the arguments come from standard input. Exit status 1: the result is an error.
    """
    settings = load_cli_settings(dialect=dialect, **where)
    session, _ = open_session(settings)
    name = cast("prowess.DialectName", settings.text("dialect"))  # the toolset refuses an unknown one
    known = DIALECTS.get(name, DIALECTS["prowess"])
    can_run = scripts and known.has_script_tool
    runner = Scripts(settings.text("sandbox"), folder) if can_run else None
    if folder is not None and runner is None:
        raise click.UsageError("--folder has no effect: no script may run, or the dialect has no tool for scripts")
    toolset = Toolset(session, name, fork="host" if known.has_fork_tool else None, scripts=runner)
    if tool is None:
        _show_tools(toolset, as_data=as_data)
        return 0
    # A bound, as for any input: a model cannot send endless arguments either.
    written = sys.stdin.read(DEFAULT_LIMITS.max_file_bytes) if arguments == "-" else arguments or "{}"
    result = toolset.call(tool, written)
    if as_data:
        printer.print_answer(lambda: _to_dict(result), list, as_data=True)
    else:
        _print_result(result, written, folder)
    return 1 if result.is_error else 0


def _print_result(result: prowess.ToolResult, written: str, folder: str | None) -> None:
    """Print what a model gets, and note for the user, who made the call by hand, what they may not expect of it."""
    printer.print_text(result.content)
    if result.is_error and not written.lstrip().startswith("{"):  # a person may write name=value, a model does not
        printer.note(_JSON_NOTE)
    if result.fork is not None:
        printer.note(_FORK_NOTE)
    if "status" in result.data:  # a script has run
        note_empty_folder(parse_arguments(written).get("args") or (), folder)


def _show_tools(toolset: prowess.Toolset, *, as_data: bool) -> None:
    tools = toolset.tools()
    printer.print_answer(
        lambda: {"tools": [tool.to_json_schema() for tool in tools]},
        lambda: [
            Table(
                [
                    ((tool.name, "name"), ", ".join(tool.parameters["properties"]), " ".join(tool.description.split()))
                    for tool in tools
                ],
                cut=True,
            )
        ],
        as_data=as_data,
    )


def _to_dict(result: prowess.ToolResult) -> dict[str, object]:
    fork = result.fork
    prepared = (
        None
        if fork is None
        else {
            "skill": fork.skill_name,
            "task": fork.task,
            "model": fork.model,
            "content": fork.content,
            "allowed_tools": list(fork.allowed_tools),
        }
    )
    return {"content": result.content, "is_error": result.is_error, "data": dict(result.data), "fork": prepared}

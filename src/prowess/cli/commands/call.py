"""``prowess call``: one tool call, as a model would make it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import catalog_options, json_option, load_cli_settings
from prowess.cli.render import printer
from prowess.cli.script_folder import folder_option, note_empty_folder
from prowess.cli.session import open_session
from prowess.discovery.settings import DIALECT_NAMES
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    import prowess
    from prowess.cli.options import CatalogFlags

_FORK_NOTE = (
    "Nothing ran: the sub-agent is prepared, and the host runs it. --json shows what it would be told (under fork); "
    "in a program, Toolset(session, fork=...) runs it (docs/how-to/acting.md)."
)


@new_command(
    "call",
    ('prowess call load_skill \'{"name": "csv-report"}\'', "what a model gets when it loads a skill"),
    ("prowess call", "the tools that a model is offered"),
    ("prowess call run_skill_script - --folder . < call.json", "a script that works in this folder"),
    ('echo \'{"name": "csv-report"}\' | prowess call skill__activate - --dialect skill__activate', "another dialect"),
)
@click.argument("tool", required=False)
@click.argument("arguments", required=False, metavar="[JSON]")
@click.option("--dialect", type=click.Choice(DIALECT_NAMES), help="The names and shapes of the tools.")
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
    """Make one tool call, as a model would, and print the result; without TOOL, the tools that are offered.

    JSON '-' reads the arguments from standard input. Exit status 1: the result is an error.
    """
    from prowess.runtime.acting.scripts import Scripts  # noqa: PLC0415 - what a conversation needs
    from prowess.tools.arguments import parse_arguments  # noqa: PLC0415
    from prowess.tools.dialects import DIALECTS  # noqa: PLC0415
    from prowess.tools.toolset import Toolset  # noqa: PLC0415

    settings = load_cli_settings(dialect=dialect, **where)
    session, _ = open_session(settings)
    spoken = cast("prowess.DialectName", settings.text("dialect"))  # whatever else it says is refused by the toolset
    able = DIALECTS.get(spoken, DIALECTS["prowess"])
    how = Scripts(settings.text("sandbox"), folder) if scripts and able.has_script_tool else None  # type: ignore[arg-type]  # one of its choices
    if folder is not None and how is None:
        raise click.UsageError("nothing would work in --folder: no script may run, or the dialect has no tool for them")
    toolset = Toolset(session, spoken, fork="host" if able.has_fork_tool else None, scripts=how)
    if tool is None:
        _show_tools(toolset, as_data=as_data)
        return 0
    given = _read_arguments(arguments)
    result = toolset.call(tool, given)
    printer.print_answer(lambda: _to_dict(result), list, as_data=as_data)
    if not as_data:
        printer.print_text(result.content)
        if result.fork is not None:
            printer.note(_FORK_NOTE)
        if "status" in result.data:  # a script has run
            note_empty_folder(parse_arguments(given).get("args") or (), folder)
    return 1 if result.is_error else 0


def _read_arguments(arguments: str | None) -> str:
    return sys.stdin.read(DEFAULT_LIMITS.max_file_bytes) if arguments == "-" else arguments or "{}"


def _show_tools(toolset: prowess.Toolset, *, as_data: bool) -> None:
    from prowess.cli.render.blocks import Table  # noqa: PLC0415

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

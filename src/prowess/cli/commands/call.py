"""``prowess call``: one tool call, as a model would make it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from prowess.cli import output
from prowess.cli.command import command as new_command
from prowess.cli.commands.prompt import DIALECTS as KNOWN
from prowess.cli.conversation import session_for
from prowess.cli.options import json_option, settings_of, where_options
from prowess.cli.workplace import folder_option, tell_where
from prowess.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    import prowess
    from prowess.cli.options import Where

_NOTHING_RAN = (
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
@click.option("--dialect", type=click.Choice(KNOWN), help="The names and shapes of the tools.")
@click.option(
    "--scripts/--no-scripts", default=True, show_default=True, help="Whether scripts of trusted skills may run."
)
@folder_option
@where_options
@json_option
def command(
    tool: str | None,
    arguments: str | None,
    *,
    dialect: str | None,
    scripts: bool,
    folder: str | None,
    where: Where,
    as_data: bool,
) -> int:
    """Make one tool call, as a model would, and print the result; without TOOL, the tools that are offered.

    JSON '-' reads the arguments from standard input. Exit status 1: the result is an error.
    """
    from prowess.runtime.scripts import Scripts  # noqa: PLC0415 - what a conversation needs
    from prowess.tools.arguments import parse_arguments  # noqa: PLC0415
    from prowess.tools.dialects import DIALECTS  # noqa: PLC0415
    from prowess.tools.toolset import Toolset  # noqa: PLC0415

    settings = settings_of(dialect=dialect, **where)
    session, _ = session_for(settings)
    spoken = cast("prowess.DialectName", settings.text("dialect"))  # whatever else it says is refused by the toolset
    able = DIALECTS.get(spoken, DIALECTS["prowess"])
    how = Scripts(settings.text("sandbox"), folder) if scripts and able.runs_scripts else None  # type: ignore[arg-type]  # one of its choices
    if folder is not None and how is None:
        raise click.UsageError("nothing would work in --folder: no script may run, or the dialect has no tool for them")
    toolset = Toolset(session, spoken, fork="host" if able.forks else None, scripts=how)
    if tool is None:
        _show_tools(toolset, as_data=as_data)
        return 0
    given = _given(arguments)
    result = toolset.call(tool, given)
    output.answer(lambda: _data(result), list, as_data=as_data)
    if not as_data:
        output.exact_text(result.content)
        if result.fork is not None:
            output.note(_NOTHING_RAN)
        if "status" in result.data:  # a script has run
            tell_where(parse_arguments(given).get("args") or (), folder)
    return 1 if result.is_error else 0


def _given(arguments: str | None) -> str:
    return sys.stdin.read(DEFAULT_LIMITS.max_file_bytes) if arguments == "-" else arguments or "{}"


def _show_tools(toolset: prowess.Toolset, *, as_data: bool) -> None:
    from prowess.cli.blocks import Table  # noqa: PLC0415

    tools = toolset.tools()
    output.answer(
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


def _data(result: prowess.ToolResult) -> dict[str, object]:
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

"""``prowess serve``: skills for MCP clients."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

import prowess
from prowess.cli import output
from prowess.cli.blocks import Table, line
from prowess.cli.client_configurations import CONFIGURATIONS, locate_program
from prowess.cli.command import command as new_command
from prowess.cli.options import home_relative, json_option

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = "PROWESS_MCP_TOKEN"  # noqa: S105 - the name of a variable
_PARTS = ("extension", "tools", "instructions", "prompts")
_ANYWHERE = "127.0.0.1:8848"


@new_command(
    "serve",
    ("prowess serve", "the skills of the standard places, on standard input and output"),
    ("prowess serve skills/ --http", f"those of a folder, on HTTP at {_ANYWHERE}"),
    ("prowess serve --check skills/", "which skills would not be served, and why"),
    ("prowess serve --config codex skills/", "the configuration that has Codex start that server"),
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=click.Path())
@click.option("--http", is_flag=False, flag_value=_ANYWHERE, default=None, metavar="HOST:PORT", help="Serve on HTTP.")
@click.option("--token-file", metavar="FILE", help=f"Holds the token that clients need (or ${_TOKEN}).")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name of this server.")
@click.option("--allow-origin", "origins", multiple=True, metavar="URL", help="Pages that may ask.")
@click.option("--without", multiple=True, type=click.Choice(_PARTS), help="Switch a part off.")
@click.option("--budget", type=click.IntRange(min=1), default=2_000, show_default=True, help="Tokens for the listing.")
@click.option("--no-watch", is_flag=True, help="Do not look for changes.")
@click.option("--check", "only_check", is_flag=True, help="Say which skills would not be served, and why.")
@click.option(
    "--config",
    "client",
    type=click.Choice(list(CONFIGURATIONS)),
    help="Print a client's configuration for this server.",
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    roots: tuple[str, ...],
    *,
    http: str | None,
    token_file: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    without: tuple[str, ...],
    budget: int,
    no_watch: bool,
    only_check: bool,
    client: str | None,
    as_data: bool,
) -> int:
    """Serve the skills below each ROOT (none: the standard places) to an MCP client, until it has enough.

    A client's configuration names this program by its absolute path, as --config prints it, for example:

    \b
      claude mcp add skills -- "$(command -v prowess)" serve ~/skills

    Anything but loopback needs a token. With --check, exit status 1: some would not be served.
    """  # noqa: D301 - the escape tells click to leave the lines as they are
    if http is not None and (os.sep in http or os.path.isdir(http)):
        raise click.UsageError(f"--http takes HOST:PORT, and {http!r} looks like a folder: name folders before --http")
    if client is not None:
        return _print_configuration(context, client)
    if only_check:
        return _check(roots, as_data=as_data)
    prowess.mcp.serve(
        *roots,
        http=http,
        token=os.environ.get(_TOKEN) or prowess.mcp.token_in(token_file),
        hosts=hosts,
        origins=origins,
        ready=lambda url: output.note(f"Serving skills at {url}", quiet=as_data),
        left_out=_telling(roots) if http is not None and not as_data else None,
        budget=budget,
        notice=None if no_watch else "auto",
        **{part: part not in without for part in _PARTS},
    )
    return 0


def _print_configuration(context: click.Context, client: str) -> int:
    """Print what a client's file needs to start this server; on the error stream, where it goes."""
    given = context.params
    if given["http"] is not None or given["only_check"] or given["as_data"]:
        raise click.UsageError(
            "--config is for a server on standard input and output: leave --http, --check and --json out"
        )
    configuration = CONFIGURATIONS[client]
    output.exact_text(configuration.write(locate_program(), _serve_arguments(context)))
    output.note(f"For {configuration.title}: {configuration.place}. {configuration.advice}".rstrip())
    return 0


def _serve_arguments(context: click.Context) -> list[str]:
    """The arguments that start this very server from any folder: absolute folders, and the options that were given."""
    roots = [os.path.abspath(os.path.expanduser(root)) for root in context.params["roots"]]
    for root in roots:
        if not os.path.isdir(root):  # a client would only say that the server has ended
            raise prowess.SourceError(f"there is no folder {root!r}", code="missing-root")
    arguments = ["serve", *roots]
    for option in context.command.params:
        name, value = option.name, context.params.get(option.name or "")
        is_given = context.get_parameter_source(name or "") is ParameterSource.COMMANDLINE
        if not is_given or name in {"roots", "client"}:
            continue
        flag = option.opts[-1]
        if value is True:
            arguments.append(flag)
        else:
            arguments += [
                word for part in (value if isinstance(value, tuple) else (value,)) for word in (flag, str(part))
            ]
    return arguments


def _telling(roots: tuple[str, ...]) -> Callable[[int], None]:
    words = " ".join(("prowess serve --check", *map(quote, roots)))

    def tell(count: int) -> None:
        are = "skill is" if count == 1 else "skills are"
        output.warn(f"{count} {are} not served: {words} says why")

    return tell


def _check(roots: tuple[str, ...], *, as_data: bool) -> int:
    found = prowess.mcp.check(*roots)
    rows = [
        ((issue.code, "bad"), (home_relative(refused.location), "name"), issue.message, (issue.hint, "dim"))
        for refused in found
        for issue in refused.issues
    ]
    output.answer(
        lambda: {
            "refused": [
                {
                    "location": refused.location,
                    "issues": [
                        {"code": i.code, "field": i.field, "message": i.message, "hint": i.hint} for i in refused.issues
                    ],
                }
                for refused in found
            ]
        },
        lambda: [Table(rows)] if rows else [line(("Every skill would be served.", "good"))],
        as_data=as_data,
    )
    return 1 if found else 0

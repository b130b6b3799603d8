"""``prowess serve``: skills for MCP clients."""

from __future__ import annotations

import os
import sys
from shlex import quote
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

import prowess
from prowess.cli.client_configurations import CONFIGURATIONS, locate_program
from prowess.cli.command_class import new_command
from prowess.cli.lock_states import LockStates, suggest_sync, warn_lock_problems
from prowess.cli.options import json_option, shorten_path
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.spec.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prowess.cli.render.blocks import Block

_TOKEN_VARIABLE = "PROWESS_MCP_TOKEN"  # noqa: S105 - the name of a variable
_PARTS = ("extension", "tools", "instructions", "prompts")
_DEFAULT_ADDRESS = "127.0.0.1:8848"
_NO_LISTING = "none"
_WAITING_NOTE = (
    "Waiting for an MCP client on standard input and output; Ctrl-C ends it. Clients start this command themselves, by "
    "what 'prowess serve --config CLIENT' prints; '--http' makes a server that clients connect to."
)


@new_command(
    "serve",
    ("prowess serve", "the skills of the standard places, on standard input and output"),
    ("prowess serve skills/ --http", f"those of a folder, on HTTP at {_DEFAULT_ADDRESS}"),
    ("prowess serve --check skills/", "which skills would not be served, and why, with totals"),
    ("prowess serve --config codex skills/", "the configuration that has Codex start that server"),
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=click.Path())
@click.option(
    "--http", is_flag=False, flag_value=_DEFAULT_ADDRESS, default=None, metavar="HOST:PORT", help="Serve on HTTP."
)
@click.option("--token-file", metavar="FILE", help=f"Holds the token that clients need (or ${_TOKEN_VARIABLE}).")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further name of this server, without a port."
)
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="URL", help="Pages that may ask, such as https://app.example."
)
@click.option("--without", multiple=True, type=click.Choice(_PARTS), help="Switch a part off.")
@click.option(
    "--listing",
    default="instructions,tools",
    metavar="PLACES",
    show_default=True,
    help="Where models are told of the skills: instructions, tools, both, or none.",
)
@click.option("--budget", type=click.IntRange(min=1), default=1_000, show_default=True, help="Tokens in each place.")
@click.option(
    "--max-chars", type=click.IntRange(min=1), default=4_000, show_default=True, help="Characters in each place."
)
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
    listing: str,
    budget: int,
    max_chars: int,
    no_watch: bool,
    only_check: bool,
    client: str | None,
    as_data: bool,
) -> int:
    """Serve the skills below each ROOT (none: the standard places) to an MCP client, until it has enough.

    A client's configuration names this program by its absolute path, as --config prints it, for example:

    \b
      claude mcp add skills -- "$(command -v prowess)" serve ~/skills

    Anything but loopback needs a token. With --check, exit status 1: the skills extension would
    leave some out; tools, prompts and the listing serve every skill that loads.
    """  # noqa: D301 - the escape tells click to leave the lines as they are
    if http is not None and (os.sep in http or os.path.isdir(http)):
        raise click.UsageError(f"--http takes HOST:PORT, and {http!r} looks like a folder: name folders before --http")
    if client is not None:
        return _print_configuration(context, client)
    if only_check:
        return _check_served(roots, as_data=as_data)
    if http is None and sys.stdin.isatty():
        printer.note(_WAITING_NOTE, quiet=as_data)
    prowess.mcp.serve(
        *roots,
        http=http,
        token=os.environ.get(_TOKEN_VARIABLE) or prowess.mcp.token_in(token_file),
        hosts=hosts,
        origins=origins,
        ready=lambda url: printer.note(f"Serving skills at {url}", quiet=as_data),
        left_out=None if as_data else _make_reporter(roots),
        listing=() if listing.strip() == _NO_LISTING else [place.strip() for place in listing.split(",")],
        budget=budget,
        max_chars=max_chars,
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
    printer.print_text(configuration.write(locate_program(), _collect_arguments(context)))
    printer.note(f"For {configuration.title}: {configuration.place}. {configuration.advice}".rstrip())
    return 0


def _collect_arguments(context: click.Context) -> list[str]:
    """The arguments that start this very server from any folder: absolute folders, and the options that were given."""
    roots = [os.path.abspath(os.path.expanduser(root)) for root in context.params["roots"]]
    for root in roots:
        if not os.path.isdir(root):  # a client would only say that the server has ended
            raise prowess.SourceError(f"there is no folder {root!r}", code="missing-root")
        if not _is_utf8(root):
            raise prowess.SourceError(f"{root!r} is not UTF-8, and no client's configuration can hold it: rename it")
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


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _make_reporter(roots: tuple[str, ...]) -> Callable[[prowess.mcp.LeftOut], None]:
    words = " ".join(("prowess serve --check", *map(quote, roots)))

    def report_left_out(left_out: prowess.mcp.LeftOut) -> None:
        extension, broken = (format_count(number, "skill") for number in left_out)
        said = [f"the skills extension leaves out {extension}"] if left_out.extension else []
        said += [f"{broken} cannot be loaded"] if left_out.broken else []
        printer.warn(f"{', and '.join(said)}: {words} says why")

    return report_left_out


def _check_served(roots: tuple[str, ...], *, as_data: bool) -> int:
    survey = prowess.mcp.survey(*roots)
    if not roots:
        verified = LockStates()
        warn_lock_problems(verified)
        if absent := suggest_sync(verified=verified):
            printer.warn(absent)
    printer.print_answer(
        lambda: {
            "loaded": survey.loaded,
            "served": survey.served,
            "refused": [
                {
                    "location": refused.location,
                    "loads": refused.loads,
                    "issues": [
                        {"code": i.code, "field": i.field, "message": i.message, "hint": i.hint} for i in refused.issues
                    ],
                }
                for refused in survey.refused
            ],
        },
        lambda: _survey_to_blocks(survey, roots),
        as_data=as_data,
    )
    return 1 if survey.refused else 0


def _survey_to_blocks(survey: prowess.mcp.Survey, roots: tuple[str, ...]) -> Iterator[Block]:
    """A line for each finding and one with the totals; no table, since its columns are as wide as the longest text."""
    for refused in survey.refused:
        for issue in refused.issues:
            subject = f"{issue.field}: " if issue.field else ""
            where = f"{shorten_path(refused.location)}: "
            yield line((where, "name"), (f"error[{issue.code}] ", "bad"), f"{subject}{issue.message}")
            yield line(("= ", "dim"), issue.hint, indent=2)
    if not survey.refused and not survey.loaded:
        looked = ", ".join(map(shorten_path, roots)) or "the standard places ('prowess list' names them)"
        yield line((f"There are no skills: nothing would be served. Looked in: {looked}", "warn"))
        return
    if not survey.refused:
        yield line((f"Every skill would be served: {format_count(survey.served, 'skill')}.", "good"))
        return
    broken = sum(not refused.loads for refused in survey.refused)
    rest = f"{broken:,} {'is' if broken == 1 else 'are'} not served at all."
    yield line(
        f"Tools, prompts and the listing would serve {format_count(survey.loaded, 'skill')}; the skills extension "
        f"would serve {survey.served:,} and leave out {len(survey.refused) - broken:,}; {rest}"
    )

"""``prowess serve``: serves skills to MCP clients, or prints how a client starts such a server."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

import prowess
from prowess.cli.command_class import new_command
from prowess.cli.issues import SKILL_FIELDS, issue_to_dict
from prowess.cli.lock_states import LazyLockStates, suggest_sync, warn_lock_problems
from prowess.cli.options import group_options, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.files.paths import shorten_path
from prowess.text.escapes import dump_json
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


_SERVER_NAME = "skills"
"""The name of the server in every configuration."""


class _ClientConfiguration(NamedTuple):
    """How one client learns to start a server."""

    title: str
    place: str
    """The file, or the kind of program, that the text goes into."""
    write: Callable[[str, Sequence[str]], str]
    """Returns the text for the path of the program and its arguments."""
    advice: str = ""
    """What a person has to do besides, if anything."""


def _json_writer(table: str, **fields: object) -> Callable[[str, Sequence[str]], str]:
    """Return a writer of JSON with the server in ``table``; ``fields`` are what the client needs besides."""

    def write(program: str, arguments: Sequence[str]) -> str:
        server: dict[str, Any] = {**fields, "command": program, "args": list(arguments)}
        return dump_json({table: {_SERVER_NAME: server}})

    return write


def _write_toml(program: str, arguments: Sequence[str]) -> str:
    """Return the table of Codex in TOML."""
    # Without 'required' Codex leaves out a server that fails to start, and says nothing.
    rows = (
        f"[mcp_servers.{_SERVER_NAME}]",
        f"command = {_quote_string(program)}",
        f"args = {_quote_list(arguments)}",
        "required = true",
    )
    return "\n".join(rows)


def _quote_string(text: str) -> str:
    """Return a string literal that TOML and Python both read, with invisible characters escaped."""
    return f'"{"".join(map(_escape_char, text))}"'


def _escape_char(char: str) -> str:
    """Return a character as it is written in a string of TOML or Python."""
    # JSON escapes a character beyond 16 bits as two halves, which TOML and Python do not join.
    escaped = dump_json(char)[1:-1]
    return f"\\U{ord(char):08x}" if char > "\uffff" and escaped != char else escaped


def _quote_list(strings: Sequence[str]) -> str:
    return f"[{', '.join(map(_quote_string, strings))}]"


def _write_openai_agents(program: str, arguments: Sequence[str]) -> str:
    """Return a program for openai-agents."""
    # The package waits five seconds for a server by default; a busy machine needs more.
    return f"""from agents.mcp import MCPServerStdio

server = MCPServerStdio(
    params={{
        "command": {_quote_string(program)},
        "args": {_quote_list(arguments)},
    }},
    name="{_SERVER_NAME}",
    client_session_timeout_seconds=30,
)"""


def _write_pydantic_ai(program: str, arguments: Sequence[str]) -> str:
    """Return a program for pydantic-ai."""
    # With cached tools the agent would not learn of new skills. The package waits five seconds for a server by default;
    # a busy machine needs more.
    return f"""from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

server = MCPToolset(
    StdioTransport(
        command={_quote_string(program)},
        args={_quote_list(arguments)},
    ),
    id="{_SERVER_NAME}",
    cache_tools=False,
    init_timeout=30,
)"""


CONFIGURATIONS = {
    # Without alwaysLoad the model has to search for a tool before it can call it.
    "claude-code": _ClientConfiguration(
        "Claude Code",
        ".mcp.json in a project; for all projects, mcpServers in ~/.claude.json",
        _json_writer("mcpServers", type="stdio", alwaysLoad=True),
        "Claude Code asks once whether the servers of a project's .mcp.json may start.",
    ),
    "claude-desktop": _ClientConfiguration(
        "Claude Desktop",
        "claude_desktop_config.json (Settings, Developer, Edit Config)",
        _json_writer("mcpServers"),
        "Quit and start Claude Desktop after a change of the file.",
    ),
    "codex": _ClientConfiguration("Codex", "~/.codex/config.toml", _write_toml),
    "cursor": _ClientConfiguration(
        "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in a project", _json_writer("mcpServers")
    ),
    "gemini": _ClientConfiguration(
        "Gemini CLI",
        "~/.gemini/settings.json, or .gemini/settings.json in a project",
        _json_writer("mcpServers"),
        "Gemini CLI starts no server in a folder that is not trusted: /permissions trusts it.",
    ),
    "openai-agents": _ClientConfiguration(
        "openai-agents",
        "a program",
        _write_openai_agents,
        "Connect it (async with server), then Agent(mcp_servers=[server]).",
    ),
    "pydantic-ai": _ClientConfiguration(
        "pydantic-ai", "a program", _write_pydantic_ai, "Then Agent(…, toolsets=[server])."
    ),
    "vscode": _ClientConfiguration(
        "VS Code",
        ".vscode/mcp.json in a project, or the user's own file (MCP: Open User Configuration)",
        _json_writer("servers", type="stdio"),
        "VS Code asks once whether the server may start.",
    ),
    "zed": _ClientConfiguration("Zed", "settings.json (zed: open settings file)", _json_writer("context_servers")),
}
"""The configurations by the names that ``prowess serve --config`` takes."""


def _locate_program() -> str:
    """Return the absolute path of the installed ``prowess``: the running one, or the one beside this Python."""
    # Links are not resolved: an installer may put a link on PATH and replace what it points to.
    started = Path(sys.argv[0])
    return (
        os.path.abspath(started)
        if started.stem == "prowess" and started.is_file()
        else str(Path(sysconfig.get_path("scripts"), "prowess"))
    )


_TOKEN_VARIABLE = "PROWESS_MCP_TOKEN"  # noqa: S105 - the name of a variable
_PARTS = ("extension", "tools", "instructions", "prompts")
_DEFAULT_ADDRESS = "127.0.0.1:8848"
_NO_LISTING = "none"
_WAITING_NOTE = (
    "Waiting for an MCP client on standard input and output; Ctrl-C ends it. Clients start this command themselves, by "
    "what 'prowess serve --config CLIENT' prints; '--http' makes a server that clients connect to."
)


class _HttpFlags(NamedTuple):
    """Where a server listens on HTTP, and who may ask it."""

    http: str | None
    token_file: str | None
    hosts: tuple[str, ...]
    origins: tuple[str, ...]


_http_options = group_options(
    "connection",
    _HttpFlags,
    http=click.option(
        "--http", is_flag=False, flag_value=_DEFAULT_ADDRESS, default=None, metavar="HOST:PORT", help="Serve on HTTP."
    ),
    token_file=click.option(
        "--token-file", metavar="FILE", help=f"A file with the token that clients need (or ${_TOKEN_VARIABLE})."
    ),
    hosts=click.option(
        "--allow-host",
        "hosts",
        multiple=True,
        metavar="NAME",
        help="A further host name of this server, without a port.",
    ),
    origins=click.option(
        "--allow-origin",
        "origins",
        multiple=True,
        metavar="URL",
        help="The origin of web pages that may ask, such as https://app.example.",
    ),
)


class _ListingFlags(NamedTuple):
    """Where models read which skills there are, and how long that text may be."""

    listing: str
    budget: int
    max_chars: int

    @property
    def places(self) -> list[str]:
        """The places that were named; none for the word ``none``."""
        return [] if self.listing.strip() == _NO_LISTING else [place.strip() for place in self.listing.split(",")]


_listing_options = group_options(
    "listing",
    _ListingFlags,
    listing=click.option(
        "--listing",
        default="instructions,tools",
        metavar="PLACES",
        show_default=True,
        help="Where models read which skills there are: instructions, tools, both, or none.",
    ),
    budget=click.option(
        "--budget",
        type=click.IntRange(min=1),
        default=1_000,
        show_default=True,
        help="How many tokens each place may have.",
    ),
    max_chars=click.option(
        "--max-chars",
        type=click.IntRange(min=1),
        default=4_000,
        show_default=True,
        help="How many characters each place may have.",
    ),
)


@new_command(
    "serve",
    ("prowess serve", "the skills of the standard places, on standard input and output"),
    ("prowess serve skills/ --http", f"those of a folder, on HTTP at {_DEFAULT_ADDRESS}"),
    ("prowess serve --check skills/", "which skills would not be served, and why, with totals"),
    ("prowess serve --config codex skills/", "the configuration that has Codex start that server"),
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=click.Path())
@_http_options
@click.option("--without", multiple=True, type=click.Choice(_PARTS), help="Switch a part off.")
@_listing_options
@click.option("--no-watch", is_flag=True, help="Do not watch the folders for changes.")
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
    connection: _HttpFlags,
    without: tuple[str, ...],
    listing: _ListingFlags,
    no_watch: bool,
    only_check: bool,
    client: str | None,
    as_data: bool,
) -> int:
    """Serve the skills below each ROOT to an MCP client, until it ends the connection.

    Without ROOT, serve the skills of the standard places.

    A client's configuration names this program by its absolute path, as --config prints it, for example:

    \b
      claude mcp add skills -- "$(command -v prowess)" serve ~/skills

    On an address other than loopback, clients need a token. With --check, exit status 1: the skills extension would
    leave some skills out. Tools, prompts and the listing serve every skill that loads.
    """  # noqa: D301 - the escape makes click leave the lines as they are
    http = connection.http
    # The address is optional, so '--http skills/' would take the folder for it.
    if http is not None and (os.sep in http or os.path.isdir(http)):
        raise click.UsageError(f"--http takes HOST:PORT, and {http!r} looks like a folder: name folders before --http")
    if client is not None:
        return _print_configuration(context, client)
    if only_check:
        return _print_survey(roots, as_data=as_data)
    switches = {part: part not in without for part in _PARTS}
    _serve(roots, connection, listing, switches, watch=not no_watch, quiet=as_data)
    return 0


def _serve(
    roots: tuple[str, ...],
    connection: _HttpFlags,
    listing: _ListingFlags,
    switches: dict[str, bool],
    *,
    watch: bool,
    quiet: bool,
) -> None:
    """Serve until the client ends the connection; with ``quiet`` nothing is said on the error stream."""
    # A person started it by hand, and would wonder why it waits.
    if connection.http is None and printer.is_terminal(sys.stdin):
        printer.note(_WAITING_NOTE, quiet=quiet)
    prowess.mcp.serve(
        *roots,
        http=connection.http,
        # Never an option with the token itself: every user sees the arguments of a process.
        token=os.environ.get(_TOKEN_VARIABLE) or prowess.mcp.token_in(connection.token_file),
        hosts=connection.hosts,
        origins=connection.origins,
        ready=lambda url: printer.note(f"Serving skills at {url}", quiet=quiet),
        left_out=None if quiet else _make_reporter(roots),
        listing=listing.places,
        budget=listing.budget,
        max_chars=listing.max_chars,
        notice="auto" if watch else None,
        **switches,
    )


def _print_configuration(context: click.Context, client: str) -> int:
    """Print the text that makes a client start this server. A note on the error stream says into which file it goes."""
    params = context.params
    if params["http"] is not None or params["only_check"] or params["as_data"]:
        raise click.UsageError(
            "--config is for a server on standard input and output: leave --http, --check and --json out"
        )
    configuration = CONFIGURATIONS[client]
    printer.print_text(configuration.write(_locate_program(), _collect_arguments(context)))
    printer.note(f"For {configuration.title}: {configuration.place}. {configuration.advice}".rstrip())
    return 0


def _collect_arguments(context: click.Context) -> list[str]:
    """Return arguments that start this server from any folder: absolute folders, and the options that were given."""
    from prowess.mcp.serve import require_folder

    roots = [os.path.abspath(os.path.expanduser(root)) for root in context.params["roots"]]
    for root in roots:
        require_folder(root)  # found out now: a client would only say that the server has ended
        if not _is_utf8(root):
            raise prowess.SourceError(f"{root!r} is not UTF-8, and no client's configuration can hold it: rename it")
    arguments = ["serve", *roots]
    # Only what was typed: a default may change with the next version, and the client's file would pin the old one.
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
    command_line = " ".join(("prowess serve --check", *map(quote, roots)))

    def report_left_out(left_out: prowess.mcp.LeftOut) -> None:
        extension, broken = (format_count(number, "skill") for number in left_out)
        if not any(left_out):
            places = ", ".join(map(shorten_path, roots)) or "the standard places ('prowess list' names them)"
            printer.warn(f"there are no skills yet, and new ones are served as they come; looked in: {places}")
            return
        parts = [f"the skills extension leaves out {extension}"] if left_out.extension else []
        parts += [f"{broken} cannot be loaded"] if left_out.broken else []
        printer.warn(f"{', and '.join(parts)}: {command_line} says why")

    return report_left_out


def _print_survey(roots: tuple[str, ...], *, as_data: bool) -> int:
    survey = prowess.mcp.survey(*roots)
    if not roots:
        # Only the standard places have lock files.
        lock_states = LazyLockStates()
        warn_lock_problems(lock_states)
        if absent := suggest_sync(lock_states=lock_states):
            printer.warn(absent)
    printer.print_answer(
        lambda: {
            "loaded": survey.loaded,
            "served": survey.served,
            "refused": [
                {
                    "location": refused.location,
                    "loads": refused.loads,
                    "issues": [issue_to_dict(issue, SKILL_FIELDS) for issue in refused.issues],
                }
                for refused in survey.refused
            ],
        },
        lambda: _survey_to_blocks(survey, roots),
        as_data=as_data,
    )
    return 1 if survey.refused else 0


def _survey_to_blocks(survey: prowess.mcp.Survey, roots: tuple[str, ...]) -> Iterator[Block]:
    """Return a line for each finding and one with the totals."""
    # No table: its columns would be as wide as the longest message.
    for refused in survey.refused:
        for issue in refused.issues:
            subject = f"{issue.field}: " if issue.field else ""
            location = f"{shorten_path(refused.location)}: "
            yield line((location, "name"), (f"error[{issue.code}] ", "bad"), f"{subject}{issue.message}")
            yield line(("= ", "dim"), issue.hint, indent=2)
    if not survey.refused and not survey.loaded:
        places = ", ".join(map(shorten_path, roots)) or "the standard places ('prowess list' names them)"
        yield line((f"There are no skills: nothing would be served. Looked in: {places}", "warn"))
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

"""The command line of ``prowess``: it finds the command that was named, runs it, and ends with an exit status.

Start-up time is the rule here: this module loads click, the table of commands and the printer, nothing else. The module
of a command is loaded when the command is called. The bench has a row for ``prowess list``, and
tests/cli/test_frame.py lists what each command may load.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from prowess import __version__
from prowess.cli.entry_point import ABOUT, COMMANDS, COMMANDS_BY_NAME, GROUPS, render_overview
from prowess.cli.render import printer
from prowess.errors import SkillError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# 70 is EX_SOFTWARE of sysexits.h. 130 and 141 are 128 and a signal, as in a shell: SIGINT and SIGPIPE.
OK, NO, USAGE, FAILED, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 70, 130, 141
EXIT_STATUSES = {
    OK: "the command succeeded; for `check`, `eval`, `verify` and others that test something: the answer is yes",
    NO: "the answer is no: there are findings, nothing was found, something differs, a call failed, or you said no",
    USAGE: "the command line is malformed",
    FAILED: "the command failed: the error names the file, the reason, and what to do",
    BUG: "a mistake in Prowess itself: please report it",
    INTERRUPTED: "the command was interrupted",
    BROKEN_PIPE: "the program that read the output ended first",
}
"""What each exit status means. ``run-script`` ends with the status of the script instead."""

_SYNONYMS = {
    **dict.fromkeys(("uninstall", "rm", "delete"), "remove"),
    **dict.fromkeys(("add", "get"), "install"),
    **dict.fromkeys(("lint", "validate"), "check"),
    "ls": "list",
    "upgrade": "update",
    "init": "new",
    "create": "new",
    "info": "show",
    "cat": "read",
    "activate": "preview",
}
"""Names that other programs give to our commands. By spelling alone, ``uninstall`` would suggest ``install``."""


class _PipeClosedError(Exception):
    """The program that read the output closed the pipe."""


class LazyGroup(click.Group):
    """A click group that takes its commands from the table, and imports the module of a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the overview."""
        return [entry.name for group in GROUPS for entry in COMMANDS if entry.group == group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with that name from its module, or ``None`` if there is none."""
        entry = COMMANDS_BY_NAME.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = import_module(f"prowess.cli.commands.{entry.module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command, or fail with the names of similar ones."""
        if args and args[0] not in COMMANDS_BY_NAME and not args[0].startswith("-"):
            from difflib import get_close_matches

            meant = _SYNONYMS.get(args[0])
            close = [meant] if meant else get_close_matches(args[0], COMMANDS_BY_NAME, n=3)
            meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else " See 'prowess' for the commands."
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the names of the commands that begin so, without importing any module of theirs."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(e.name, help=e.summary) for e in COMMANDS if e.name.startswith(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the overview, which comes from the table alone: no command is imported."""
        formatter.write(render_overview())

    def invoke(self, ctx: click.Context) -> object:
        """Run the command. A closed pipe becomes our own error, since click would end with its own status."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosedError from None

    def main(self, args: Sequence[str] | None = None, *_: Any, **options: Any) -> NoReturn:
        """Run a command line and exit with its status."""
        words = list(sys.argv[1:] if args is None else args)
        if words[:1] == ["help"]:
            words = [*words[1:], "--help"]
        _open_closed_streams()
        # Not click's standalone mode, which prints errors and chooses statuses itself.
        options.pop("standalone_mode", None)
        sys.exit(_run_to_status(lambda: super(LazyGroup, self).main(words, standalone_mode=False, **options), words))


def _open_closed_streams() -> None:
    """Replace streams that the shell closed (``>&-``) by one that goes nowhere, so that printing does not fail."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _run_to_status(call: Callable[[], object], words: list[str]) -> int:
    """Run a command line and return its exit status; any error goes to the error stream."""
    try:
        status = call()
        printer.flush()
    except BaseException as error:  # noqa: BLE001 - the edge: everything that goes wrong ends here, and is reported
        # What follows -- belongs to a script, and says nothing about our own output.
        return _report_error(error, as_json="--json" in words[: words.index("--") if "--" in words else None])
    return status if isinstance(status, int) else OK


def _report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error and return its exit status."""
    status = BUG
    if isinstance(error, SystemExit):  # click's own end: of completion, or of a pipe that was closed while it wrote
        status = (
            # click puts a PacifyFlushWrapper around the stream when its reader went away.
            BROKEN_PIPE if "Pacify" in type(sys.stdout).__name__ else error.code if isinstance(error.code, int) else OK
        )
    elif isinstance(error, BrokenPipeError | _PipeClosedError):
        printer.discard_output()
        status = BROKEN_PIPE
    elif isinstance(error, click.Abort | KeyboardInterrupt):
        printer.print_interruption()
        status = INTERRUPTED
    elif isinstance(error, click.UsageError):
        printer.print_usage_error(error, as_json=as_json)
        status = USAGE
    elif isinstance(error, SkillError | OSError):
        printer.print_error(error if isinstance(error, SkillError) else _from_os_error(error), as_json=as_json)
        status = FAILED
    else:
        printer.print_traceback(error)
    return status


def _from_os_error(error: OSError) -> SkillError:
    return SkillError(error.strerror or str(error), os.fsdecode(error.filename or ""), "unreadable")


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not ctx.resilient_parsing:
        printer.print_line(f"prowess {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}, help=ABOUT
)
@click.option("--version", is_flag=True, callback=_show_version, expose_value=False, is_eager=True, help="The version.")
@click.pass_context
def root(ctx: click.Context) -> None:
    """Print the overview if no command was named."""
    if ctx.invoked_subcommand is None:
        printer.print_own_text(render_overview())


def run() -> NoReturn:
    """Run the command line of this process, and exit with its status."""
    root.main(prog_name="prowess")

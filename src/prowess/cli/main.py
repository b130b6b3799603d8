"""The ``prowess`` command: finds the command that was named, and ends with a status that says how it went."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from prowess.cli.command_table import COMMANDS, COMMANDS_BY_NAME, GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from prowess.errors import SkillError

OK, NO, USAGE, FAILED, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 70, 130, 141
EXIT_STATUSES = {
    OK: "done; for `check`, `eval`, `verify` and the like: the answer is yes",
    NO: "the answer is no: findings, a query that found nothing, a difference, a call that was refused",
    USAGE: "the command line makes no sense",
    FAILED: "it could not be done: the error says what, where, and what to do",
    BUG: "a mistake in Prowess itself: please report it",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "whoever read the output went away",
}
"""What an exit status means; ``run-script`` ends with the status of the script."""

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
}
"""What other programs call our commands; ``uninstall`` is spelled like ``install`` and means its opposite."""

_ABOUT = "Find, check, write, install and run Agent Skills."


class _PipeClosedError(Exception):
    """Whoever read the output went away."""


class LazyGroup(click.Group):
    """A group whose commands are in the table, and are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Every name, in the order of the overview."""
        return [entry.name for group in GROUPS for entry in COMMANDS if entry.group == group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, its module imported now."""
        entry = COMMANDS_BY_NAME.get(cmd_name)
        if entry is None:
            return None
        from importlib import import_module  # noqa: PLC0415 - once a command

        command: click.Command = import_module(f"prowess.cli.commands.{entry.module}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command, or an error that names those spelled like it."""
        if args and args[0] not in COMMANDS_BY_NAME and not args[0].startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only when something went wrong

            meant = _SYNONYMS.get(args[0])
            close = [meant] if meant else get_close_matches(args[0], COMMANDS_BY_NAME, n=3)
            meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else " See 'prowess' for the commands."
            ctx.fail(f"No such command {args[0]!r}.{meant}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:  # noqa: ARG002 - click's signature
        """The names of the commands, without importing any."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only for completion

        return [CompletionItem(e.name, help=e.summary) for e in COMMANDS if e.name.startswith(incomplete)]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The overview, from the table alone."""
        formatter.write(render_overview())

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a pipe that was closed ends everything, in our own way."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _PipeClosedError from None

    def main(self, args: Sequence[str] | None = None, *_: Any, **options: Any) -> NoReturn:  # noqa: ANN401
        """Run a command line to its end."""
        words = list(sys.argv[1:] if args is None else args)
        _open_closed_streams()
        options.pop("standalone_mode", None)
        sys.exit(_run_to_status(lambda: super(LazyGroup, self).main(words, standalone_mode=False, **options), words))


def _open_closed_streams() -> None:
    """Have somewhere to write to where the shell closed a stream (``>&-``): what is said there is said to nobody."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


def _run_to_status(call: Callable[[], object], words: list[str]) -> int:
    """The status of a command line; whatever went wrong is told on the error stream."""
    from prowess.cli.render import printer  # noqa: PLC0415 - after the imports of a process that only shows its version

    try:
        status = call()
        printer.flush()
    except BaseException as error:  # noqa: BLE001 - the edge: everything that goes wrong ends here, and is told
        return _report_error(error, as_json="--json" in words[: words.index("--") if "--" in words else None])
    return status if isinstance(status, int) else OK


def _report_error(error: BaseException, *, as_json: bool) -> int:
    """Say what went wrong; the status for it."""
    from prowess.cli.render import printer  # noqa: PLC0415
    from prowess.errors import SkillError  # noqa: PLC0415

    status = BUG
    if isinstance(error, SystemExit):  # click's own end: of completion, or of a pipe that was closed while it wrote
        status = (
            BROKEN_PIPE if "Pacify" in type(sys.stdout).__name__ else error.code if isinstance(error.code, int) else OK
        )
    elif isinstance(error, BrokenPipeError | _PipeClosedError):
        printer.discard_output()
        status = BROKEN_PIPE
    elif isinstance(error, click.Abort | KeyboardInterrupt):
        printer.print_interrupted()
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
    from prowess.errors import SkillError  # noqa: PLC0415

    return SkillError(error.strerror or str(error), os.fsdecode(error.filename or ""), "unreadable")


def render_overview() -> str:
    """What ``prowess`` alone prints: every command, grouped."""
    width = max(len(entry.name) for entry in COMMANDS) + 2
    rows = [f"prowess: {_ABOUT}", ""]
    for group in GROUPS:
        own = [f"  {entry.name:{width}}{entry.summary}" for entry in COMMANDS if entry.group == group]
        rows += [f"{group}:", *own, ""] if own else []
    rows.append("prowess COMMAND --help shows options and examples.")
    rows.append("--json gives data instead of text.")
    rows.append("New here? prowess demo")
    return "\n".join(rows) + "\n"


def _show_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's
    if value and not ctx.resilient_parsing:
        from prowess import __version__  # noqa: PLC0415 - it is loaded already
        from prowess.cli.render import printer  # noqa: PLC0415

        printer.print_line(f"prowess {__version__}")
        ctx.exit()


@click.group(
    cls=LazyGroup, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}, help=_ABOUT
)
@click.option("--version", is_flag=True, callback=_show_version, expose_value=False, is_eager=True, help="The version.")
@click.pass_context
def root(ctx: click.Context) -> None:
    """The command line as a whole."""
    if ctx.invoked_subcommand is None:
        from prowess.cli.render import printer  # noqa: PLC0415

        printer.print_own_text(render_overview())


def run() -> NoReturn:
    """Carry out the command line of this process; the entry point."""
    root.main(prog_name="prowess")

"""``prowess run-script``: runs a script of a trusted skill in a sandbox."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import (
    CatalogFlags,
    catalog_options,
    complete_file,
    folder_option,
    json_option,
    note_empty_folder,
    skill_argument,
)
from prowess.cli.render import printer
from prowess.cli.skill_lookup import find_skill_and_warn, load_cli_settings
from prowess.conversation.acting.scripts import Scripts
from prowess.conversation.acting.trust import Trust

if TYPE_CHECKING:
    import prowess

TIMEOUT_STATUS = 124
"""The exit status of a script that reached a limit; the ``timeout`` program uses this number too."""


@new_command(
    "run-script",
    ("prowess trust grant csv-report", "first: nothing runs without it"),
    ("prowess run-script csv-report scripts/profile.py -- --help", "then; what follows -- is the script's"),
    ("prowess run-script csv-report scripts/profile.py --folder . data.csv", "working in this folder"),
    context_settings={"ignore_unknown_options": False},
)
@skill_argument
@click.argument("script", shell_complete=complete_file)
@click.argument("arguments", nargs=-1, metavar="[ARGS]...")
@folder_option
@click.option(
    "--sandbox",
    type=click.Choice(("auto", "bwrap", "landlock", "none")),
    help="How the script is isolated; 'none' has to be named.",
)
@click.option("--network", is_flag=True, help="Let the script use the network.")
@click.option("--stdin", "with_stdin", is_flag=True, help="Pass standard input on to the script.")
@catalog_options
@json_option
def command(
    skill: str,
    script: str,
    arguments: tuple[str, ...],
    *,
    folder: str | None,
    sandbox: str | None,
    network: bool,
    with_stdin: bool,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Run a script of a skill that is trusted as it is now: from a private copy, in a sandbox, within limits.

    The exit status is that of the script, 124 if it reached a limit, or 3 if it did not run.
    """
    settings = load_cli_settings(sandbox=sandbox, **where)
    chosen = find_skill_and_warn(settings, skill)
    runner = Scripts(sandbox=settings.text("sandbox"), folder=folder, network=network)
    # One byte more than allowed, so that the runner notices that it is too much.
    script_input = sys.stdin.buffer.read(runner.limits.max_script_input_bytes + 1) if with_stdin else b""
    result = runner.run(chosen, script, arguments, stdin=script_input, trust=Trust())
    printer.print_answer(lambda: _to_dict(result), list, as_data=as_data)
    if not as_data:
        _print_output(result)
        note_empty_folder(arguments, folder)
    # A script that a signal ended, or that ends with a status of ours, becomes a plain failure.
    return TIMEOUT_STATUS if result.limit else result.status if 0 <= result.status < TIMEOUT_STATUS else 1


def _to_dict(result: prowess.ScriptResult) -> dict[str, object]:
    names = ("status", "stdout", "stderr", "seconds", "sandbox", "limit", "stdout_cut", "stderr_cut")
    return {**{name: getattr(result, name) for name in names}, "sandbox_gaps": list(result.sandbox_gaps)}


def _print_output(result: prowess.ScriptResult) -> None:
    if result.stdout:
        printer.print_text(result.stdout)
    if result.stderr:
        printer.print_text(result.stderr, error=True)
    for gap in result.sandbox_gaps:
        printer.warn(f"sandbox {result.sandbox}: {gap}")
    if result.limit:
        printer.warn(f"stopped at its limit of {result.limit} after {result.seconds:.1f} s")

"""``prowess find``: finds skills to install in the configured indexes."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.install_options import network_options
from prowess.cli.issues import issue_to_dict
from prowess.cli.options import json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, line
from prowess.cli.skill_lookup import load_cli_settings
from prowess.errors import SourceError
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    import prowess
    from prowess.install.installer import Installer


@new_command(
    "find",
    ("prowess find fill a pdf form", "in the indexes that the setting 'indexes' names"),
    ("prowess find invoices --index owner/repo --limit 3", "in this repository alone"),
)
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--index", "indexes", multiple=True, metavar="ADDRESS", help="Ask this index instead of the configured ones."
)
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many to show at most.")
@network_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    words: tuple[str, ...],
    *,
    indexes: tuple[str, ...],
    limit: int,
    installer: Installer,
    as_data: bool,
) -> int:
    """Find the skills of the configured indexes that fit WORDS, best first, each with the command that installs it.

    An index is the address of a site that publishes skills, or of a repository. The words stay on this machine. Each
    index that did not answer is named, with the reason. Exit status 1: nothing fits. 3: nothing fits, and an index
    did not answer.
    """
    chosen = load_cli_settings(indexes=indexes).names("indexes")
    if not chosen:
        raise SourceError("no index is configured: there is nowhere to look", code="no-indexes")
    with printer.show_progress("asking the indexes"):
        result = installer.find(" ".join(words), chosen, limit)
    # An install from these indexes needs the same flags. They come from the context, since the command itself gets an
    # installer in place of them.
    names = {"allow_http": "--allow-http", "allow_private": "--allow-private"}
    flags = tuple(flag for name, flag in names.items() if ctx.params[name])
    printer.print_answer(lambda: _to_dict(result, flags), lambda: _to_blocks(result, flags), as_data=as_data)
    if not as_data:
        printer.print_issues(result.issues)
    for issue in result.unanswered:
        printer.warn(f"{issue.path} did not answer: [{issue.code}] {issue.message}")
    if not result.hits and not result.unanswered:
        among = f"{format_count(result.skills, 'skill')} of {format_count(len(chosen), 'index', 'indexes')}"
        printer.note(f"Nothing among {among} fits.", quiet=as_data)
    return 0 if result.hits else 3 if result.unanswered else 1


def _install_command(hit: prowess.IndexHit, flags: tuple[str, ...]) -> str:
    """Return the command that installs a hit."""
    # Quoted: an index may choose any name for a skill, and people paste this into a shell.
    return shlex.join(("prowess", "install", hit.index, "--skill", hit.name, *flags))


def _to_dict(result: prowess.IndexSearch, flags: tuple[str, ...]) -> dict[str, object]:
    return {
        "hits": [
            {
                "name": hit.name,
                "description": hit.description,
                "score": round(hit.score, 4),
                "index": hit.index,
                "install": _install_command(hit, flags),
            }
            for hit in result.hits
        ],
        "unanswered": [
            {"index": issue.path, "code": issue.code, "message": issue.message} for issue in result.unanswered
        ],
        "issues": [issue_to_dict(issue) for issue in result.issues],
        "skills": result.skills,
        "fitting": result.fitting,
    }


def _to_blocks(result: prowess.IndexSearch, flags: tuple[str, ...]) -> Iterator[Block]:
    for hit in result.hits:
        yield line((hit.name, "name"), f"  {' '.join(hit.description.split())}", cut=True)
        yield line(_install_command(hit, flags), indent=4)
    left_out = result.fitting - len(result.hits)
    if left_out > 0:
        yield line((f"and {left_out:,} more: --limit {result.fitting} shows them", "dim"))

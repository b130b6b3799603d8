"""``prowess ui``: serves the console, local pages about skills, or writes them as a static site."""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import SEARCHED_AGENTS, group_options, json_option, make_agents_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import line
from prowess.cli.skill_lookup import load_cli_settings
from prowess.files.paths import shorten_path
from prowess.serving.bind import token_in
from prowess.text.quantities import format_count
from prowess.web import check_extra

_TOKEN_VARIABLE = "PROWESS_UI_TOKEN"  # noqa: S105 - the name of a variable


class _ServerFlags(NamedTuple):
    """Where the console listens, and who may look."""

    bind: str | None
    token_file: str | None
    hosts: tuple[str, ...]


_server_options = group_options(
    "server",
    _ServerFlags,
    bind=click.option(
        "--bind", metavar="HOST:PORT", help="Where to listen, instead of a free port on loopback (127.0.0.1)."
    ),
    token_file=click.option(
        "--token-file", metavar="FILE", help=f"A file with the token of the first address (or ${_TOKEN_VARIABLE})."
    ),
    hosts=click.option(
        "--allow-host", "hosts", multiple=True, metavar="NAME", help="A further host name, without a port."
    ),
)


@new_command(
    "ui",
    ("prowess ui", "the skills of the standard places; open the address that it prints"),
    ("prowess ui skills/ --read-only", "those below a folder, without any way to change something"),
    ("prowess ui skills/ --export public/", "the same pages as files, for a team's own site"),
)
@click.argument("roots", metavar="[ROOT]...", nargs=-1, type=click.Path(file_okay=False))
@_server_options
@click.option("--read-only", is_flag=True, help="Only show: refuse every change.")
@click.option("--export", metavar="FOLDER", type=click.Path(file_okay=False), help="Write the pages into a folder.")
@click.option(
    "--results",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Show the runs in a file of 'prowess eval --results'.",
)
@make_agents_option(SEARCHED_AGENTS)
@click.option("--no-project", is_flag=True, help="Leave the project's skills out.")
@click.option("--no-watch", is_flag=True, help="Do not watch the folders for changes.")
@json_option
def command(
    roots: tuple[str, ...],
    *,
    server: _ServerFlags,
    read_only: bool,
    export: str | None,
    results: str | None,
    agents: tuple[str, ...],
    no_project: bool,
    no_watch: bool,
    as_data: bool,
) -> None:
    """Show the skills below each ROOT on local pages, until Ctrl-C.

    Without ROOT, show the skills of the standard places. Open the address that is printed: it has a token, without
    which nobody sees the pages. On an address other than loopback, name a token yourself.

    With --results, the page of a skill lists its runs with a model, and the page of a run has its transcript, its
    answer and the files that it left.

    --export writes the pages that only show something as files instead, which work without a server.
    """
    check_extra()
    from prowess.web.library import open_library, open_results

    # One of the two, each with what it needs: an export loads no server, and the first page waits for no export.
    if export is None:
        from prowess.web.app import DEFAULT_BIND, run_console
    else:
        from prowess.web.export import export_site
    settings = load_cli_settings(agents=agents, project=False if no_project else None)
    opened = open_library(
        roots,
        agents=settings.names("agents"),
        project=bool(settings["project"]),
        budget=settings.number("budget"),
        watch=not no_watch and export is None,
        eval_results=results or "",
    )
    with opened as library:
        if export is not None:
            with printer.show_progress("writing"):
                pages = export_site(library, export)
            _print_export(pages, export, as_data=as_data)
            return
        run_console(
            library,
            read_only=read_only,
            bind=server.bind or DEFAULT_BIND,
            # Never an option with the token itself: every user sees the arguments of a process.
            token=os.environ.get(_TOKEN_VARIABLE) or token_in(server.token_file),
            hosts=server.hosts,
            results=open_results(library.limits),
            ready=partial(_print_address, as_data=as_data),
        )


def _print_export(pages: int, folder: str, *, as_data: bool) -> None:
    path = os.path.abspath(folder)
    printer.print_answer(
        lambda: {"folder": path, "pages": pages, "address": None},
        lambda: [line(("Wrote ", "good"), f"{format_count(pages, 'page')}: open {shorten_path(path)}/index.html")],
        as_data=as_data,
    )


def _print_address(address: str, *, as_data: bool) -> None:
    printer.print_answer(
        lambda: {"folder": None, "pages": 0, "address": address},
        lambda: [line("Open ", (address, "name")), line(("Ctrl-C ends it.", "dim"))],
        as_data=as_data,
    )
    printer.flush()  # a program that started this reads the address from a pipe

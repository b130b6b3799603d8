"""``--recursive``: a command that is run for every project in the working folder and below it, as in a monorepo."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli.main import FAILED, OK
from prowess.cli.render import printer
from prowess.cli.render.blocks import Line, Title
from prowess.errors import InstallError, SkillError
from prowess.files.directory import Folder, exists
from prowess.install.manifest import MANIFEST_FILE
from prowess.limits import DEFAULT_LIMITS
from prowess.lockfile.read import LOCK_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

_SKIPPED_NAMES = frozenset(("node_modules", "__pycache__"))

recursive_option = click.option(
    "--recursive", is_flag=True, help="Do so for every project in this folder and below it, as in a monorepo."
)


def run_in_projects(*, as_data: bool) -> int:
    """Run the current command in every project in the working folder and below it; return the highest status.

    A project that fails does not stop the others.
    """
    ctx = click.get_current_context()
    if ctx.params.get("user") or ctx.params.get("everything"):
        raise click.UsageError("--recursive means projects: leave --user and --all out", ctx)
    top = os.getcwd()
    folders = [*_find_projects(top)]
    rows: list[dict[str, object]] = []
    try:
        for folder in folders:
            row = _run_in_project(ctx, folder, os.path.relpath(folder, top).replace(os.sep, "/"), as_data=as_data)
            rows.append(row)
    finally:
        os.chdir(top)
    if as_data:
        printer.print_answer(lambda: {"projects": rows}, lambda: (), as_data=True)
    if not folders:
        printer.note(f"no {MANIFEST_FILE} and no {LOCK_FILE} here or below")
    return max((int(str(row["status"])) for row in rows), default=OK)


def _run_in_project(ctx: click.Context, folder: str, path: str, *, as_data: bool) -> dict[str, object]:
    """Run the command in one project, and return what came of it as data."""
    if not as_data:
        printer.print_blocks([Title(path, "")])
        printer.flush()  # what comes on the error stream is about this project
    os.chdir(folder)
    error: SkillError | None = None
    with printer.keep_answers() as answers:
        try:
            status = ctx.invoke(ctx.command, **{**ctx.params, "recursive": False}) or OK
        except SkillError as raised:
            error, status = raised, FAILED
    if error is not None and not as_data:
        printer.print_error(error)
    if not as_data:
        printer.print_blocks([Line()])
        printer.flush()
    failure = {} if error is None else {"error": {"code": error.code, "message": error.message, "path": error.path}}
    answer = {"answer": answers[-1]} if answers else {}
    return {"path": path, "status": status, **answer, **failure}


def _find_projects(top: str) -> Iterator[str]:
    """Yield the folders with a manifest or a lock file, each before those in it.

    Hidden folders, links and other repositories are left out: a submodule has owners of its own.
    """
    waiting = [top]
    left = DEFAULT_LIMITS.max_dirs_per_root
    while waiting:
        folder = waiting.pop()
        left -= 1
        if left < 0:
            message = f"there are more than {DEFAULT_LIMITS.max_dirs_per_root:,} folders here"
            raise InstallError(message, top, "too-many-directories")
        if folder != top and exists(os.path.join(folder, ".git")):
            continue
        try:
            with Folder(folder) as opened:
                entries = opened.list_entries(DEFAULT_LIMITS.max_entries_per_folder)
        except OSError as error:
            printer.warn(f"{folder} cannot be listed: {error.strerror}")
            continue
        if {LOCK_FILE, MANIFEST_FILE}.intersection(entries.files):
            yield folder
        names = [name for name in entries.folders if not name.startswith(".") and name not in _SKIPPED_NAMES]
        waiting += (os.path.join(folder, name) for name in reversed(names))

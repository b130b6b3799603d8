"""What the process of a command does; the program of a nursery, which has imported what a server needs."""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def prepare() -> Callable[..., None]:
    """Import what ``prowess serve --http`` imports."""
    for name in (
        "prowess.cli.commands.serve",
        "prowess.mcp.serve",
        "prowess.mcp.server",
        "prowess.mcp.http",
        "uvicorn",
    ):
        importlib.import_module(name)
    return run_command


def run_command(words: list[str], env: dict[str, str]) -> None:
    """Run a command line as the installed program does."""
    os.environ.update(env)
    sys.argv = ["prowess", *words]
    importlib.import_module("prowess.cli.main").run()

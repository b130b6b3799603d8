"""Runs command lines in processes that have imported what a server needs; the program of a fork server."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.cli_processes import run_line

if TYPE_CHECKING:
    from collections.abc import Callable


def prepare() -> Callable[..., None]:
    """Import what ``prowess serve`` imports."""
    for name in (
        "prowess.cli.commands.serve",
        "prowess.mcp.serve",
        "prowess.mcp.server",
        "prowess.mcp.http",
        "uvicorn",
    ):
        importlib.import_module(name)
    return run_line

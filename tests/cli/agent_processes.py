"""Processes that run ``prowess run`` and ``prowess try``: the fork server has imported what the agent is built on."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests import cli_processes

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(__file__)


def prepare() -> Callable[..., None]:
    """Import what the agent imports, and return the function that runs a command line."""
    for name in (
        "prowess.agent.task_run",
        "prowess.agent.models",
        "prowess.agent.transcript",
        "prowess.cli.agent_screen",
    ):
        importlib.import_module(name)
    for name in ("pydantic_ai.models.openai", "pydantic_ai.providers.openai_compatible"):
        importlib.import_module(name)
    return cli_processes.prepare()

"""Sixteen processes at once: no failure but "already installed", one whole version at the end, readers see no half."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.fork_server import fork_server_for

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that begin at once")

ROUNDS = (1, 50)
"""Of the ordinary run, and of the whole one."""


@pytest.mark.sampled(0.4, always={"versions"})
@pytest.mark.parametrize("scenario", ["same", "versions", "remove", "list"])
def test_sixteen_processes_at_once_leave_one_whole_version(tmp_path: Path, scenario: str, full: bool) -> None:
    """They install one skill, or different versions of it, or some install while others remove or list."""
    done = fork_server_for(Path(__file__).parent / "crowd.py").run(str(tmp_path), scenario, ROUNDS[full], seconds=1800)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []

"""What the tests of the agent share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: the agent; pydantic-ai is not installed")

from tests.agent.runs import Scene

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A working folder and a library of skills, with grants of their own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return Scene(tmp_path)

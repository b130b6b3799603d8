"""The library of skills that the tests of all adapters share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.skill_library import write_library

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """The folder ``skills`` with the skills of ``write_library``; examples look for a folder with that name."""
    return write_library(tmp_path / "skills")

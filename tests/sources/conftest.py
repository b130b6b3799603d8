"""What the tests of sources share: a way to write a skill in a line."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path`` and get its path; the name is the folder's."""

    def write(folder: str, *, body: str = "Do it.\n") -> Path:
        path = tmp_path / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {path.parent.name}\ndescription: Does it.\n---\n{body}", encoding="utf-8")
        return path

    return write

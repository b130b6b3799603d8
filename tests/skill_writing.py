"""A way to write a skill in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path`` and get its folder; the name is the folder's unless rows say otherwise."""

    def write(folder: str, rows: str | None = None, body: str = "Do it.\n", *, file: str = "SKILL.md") -> Path:
        path = tmp_path / folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = f"name: {path.parent.name}\ndescription: Does {path.parent.name}.\n" if rows is None else rows
        path.write_bytes(f"---\n{rows}---\n{body}".encode())
        return path.parent

    return write

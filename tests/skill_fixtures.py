"""A fixture that writes a skill in one line, and what tests ask of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import prowess


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a SKILL.md into a folder below ``tmp_path`` and returns the folder.

    The name of the skill is the name of the folder unless ``rows`` give other frontmatter.
    """

    def write(folder: str, rows: str | None = None, body: str = "Do it.\n", *, file: str = "SKILL.md") -> Path:
        path = tmp_path / folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = f"name: {path.parent.name}\ndescription: Does {path.parent.name}.\n" if rows is None else rows
        path.write_bytes(f"---\n{rows}---\n{body}".encode())
        return path.parent

    return write


def preloaded(session: prowess.Session) -> dict[str, str]:
    """The instructions of the active skills that stand in the prompt from the start, by name."""
    active = session.moment().visible_active.items()
    return {name: entry.loaded.instructions for name, entry in active if entry.preloaded}

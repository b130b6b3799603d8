"""The tests of this room write skills in one line, and search with a cache folder of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from prowess.files.identity import is_settled
from tests.skill_fixtures import put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["put"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, which does not exist yet."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a skill into the library ``tmp_path / "skills"`` and returns its SKILL.md."""

    def write_skill(name: str, description: str = "", body: str = "Do it.\n", head: str = "") -> Path:
        path = tmp_path / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        fields = f"name: {name}\ndescription: {description or f'Does {name}.'}\n{head}"
        path.write_text(f"---\n{fields}---\n{body}", encoding="utf-8")
        return path

    return write_skill


@pytest.fixture
def settle(tmp_path: Path) -> Callable[[], None]:
    """A function that returns once the times of all skills are old enough to be relied on: 50 ms at most."""

    def wait() -> None:
        for path in (tmp_path / "skills").rglob("SKILL.md"):
            while not is_settled(path.stat()):
                continue

    return wait

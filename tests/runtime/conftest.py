"""What the tests of sessions share: a way to write a skill in a line, and the catalogue of what was written."""

from collections.abc import Callable
from pathlib import Path

import pytest

import prowess


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path/skills`` and get its path; the name is the folder's unless another is given."""

    def write(
        folder: str,
        *,
        tools: str = "",
        body: str = "Do it.",
        extra: str = "",
        name: str | None = None,
        description: str = "Does it.",
    ) -> Path:
        path = tmp_path / "skills" / folder / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [f"name: {path.parent.name if name is None else name}", f"description: {description}"]
        rows += [f"allowed-tools: {tools}"] if tools else []
        rows += [extra] if extra else []
        head = "\n".join(rows)
        path.write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")
        return path

    return write


@pytest.fixture
def scanned(tmp_path: Path) -> Callable[..., prowess.Catalog]:
    """The catalogue of ``tmp_path/skills`` as it is now, mounted as ``skills``; some of its folders preloaded."""

    def load(*preloaded: str) -> prowess.Catalog:
        root = tmp_path / "skills"
        return prowess.Catalog.from_sources(
            [
                prowess.Source.directory(root, mount_as="skills"),
                *(prowess.Source.directory(root / folder, preload=True) for folder in preloaded),
            ]
        )

    return load

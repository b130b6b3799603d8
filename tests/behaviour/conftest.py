"""Fixtures of the behaviour tests: a function that writes a skill in one line, and a home folder."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a SKILL.md below ``tmp_path`` and returns its path.

    The name of the skill is the name of the folder unless another name is given.
    """

    def write(
        folder: str,
        *,
        name: str | None = None,
        description: str = "Does one thing.",
        fields: str = "",
        body: str = "Do it.\n",
        text: str | bytes | None = None,
        file: str = "SKILL.md",
    ) -> Path:
        path = tmp_path / folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            named = path.parent.name if name is None else name
            text = f"---\nname: {named}\ndescription: {description}\n{fields}---\n{body}"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder for one test. No environment variable moves a folder of skills elsewhere."""
    folder = tmp_path / "home"
    folder.mkdir()
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(folder))
    for variable in ("XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    return folder

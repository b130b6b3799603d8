"""What the behaviour tests share: a way to write a skill in a line."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    """Write a SKILL.md below ``tmp_path`` and get its path; the name is the folder's unless another is given."""

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

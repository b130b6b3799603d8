"""What the documentation of the five systems says, as cases that a program checks.

A case has the words of the documentation, a check of what Prowess does, and where it differs on purpose, the words in
which ``coming-from.md`` or the manifest says so. ``test_documented.py`` runs every case and counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import prowess

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any


class Case(NamedTuple):
    """A statement of a system's documentation, and the expression that shows what Prowess does."""

    quote: str
    """Words of the documentation; or the number in the manifest of a behaviour that other pages of it document."""
    check: Callable[[World], object]
    differs: str = ""
    """Where Prowess does something else: words of the page, or the number in the manifest of the difference."""


class World:
    """An empty working folder, in which a check makes its skills."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(
        self,
        path: str = "skills/pdf",
        *,
        name: str = "",
        description: str = "Fills forms.",
        fields: str = "",
        body: str = "Fill it.\n",
        text: str | bytes = "",
    ) -> Path:
        """Write the SKILL.md of the folder ``path``, and return its path."""
        file = self.folder / path / "SKILL.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = text or f"---\nname: {name or file.parent.name}\ndescription: {description}\n{fields}---\n{body}"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def write(self, path: str, content: str = "text\n") -> Path:
        """Write any other file, and return its path."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return file

    def scan(self, root: str = "skills", **options: Any) -> prowess.Catalog:
        """Return the catalogue of a folder."""
        return prowess.scan(self.folder / root, **options)

    def session(self, **options: Any) -> prowess.Session:
        """Return a session over the skills in ``skills``, without a selector."""
        return prowess.Session(self.scan(), **options)

    def toolset(self, dialect: prowess.DialectName, *arguments: Any, **options: Any) -> prowess.Toolset:
        """Return a toolset over the skills in ``skills``."""
        return prowess.Toolset(self.session(), dialect, *arguments, **options)


def raised(function: Callable[..., object], *arguments: Any, **options: Any) -> prowess.SkillError | None:
    """Return the error that a call raises; ``None`` when it returns."""
    try:
        function(*arguments, **options)
    except prowess.SkillError as error:
        return error
    return None

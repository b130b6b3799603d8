"""The table of modules in ``docs/explanation/architecture.md``, made from the first line of each module's docstring.

``make manual`` writes it; a test compares the page with what this module makes.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "prowess"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
BEGIN, END = "<!-- modules: begin -->\n", "<!-- modules: end -->\n"


def write_table(page: str) -> str:
    """Return the page with the table of modules between its two marks."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return head + BEGIN + "".join(_iter_lines()) + END + tail


def _iter_lines() -> Iterator[str]:
    for room in _find_rooms():
        title = room.relative_to(SOURCE).as_posix()
        yield f"\n### {'prowess' if title == '.' else title}\n\n"
        yield f"{_read_summary(room / '__init__.py')}\n\n| module | what it is |\n|---|---|\n"
        for path in sorted(room.glob("*.py")):
            if path.name != "__init__.py":
                yield f"| `{path.name}` | {_escape(_read_summary(path))} |\n"
    yield "\n"


def _find_rooms() -> list[Path]:
    """Return the folders of all packages by name; an outer package comes before those inside it."""
    return sorted(path.parent for path in SOURCE.rglob("__init__.py"))


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _read_summary(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(write_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

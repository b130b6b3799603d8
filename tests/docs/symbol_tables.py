"""The tables of other systems' symbols: ``make manual`` writes them into ``docs`` from ``symbols.toml``.

A check is an expression that is evaluated in a working folder with ``skills/``, ``broken/`` and ``acting/`` of the
examples. ``catalog`` is ``prowess.scan("skills")``, ``skill`` its ``csv-report``, ``session`` a new session over it
with ``tools=["Read"]``, ``toolset(dialect, **options)`` a toolset over another one; the other names are functions of
``test_coming_from.py``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GUIDE, PAGE = ROOT / "docs" / "how-to" / "coming-from.md", ROOT / "docs" / "reference" / "symbols.md"
SYSTEMS = {
    "go-skill": "Go `skill`",
    "promptkit": "PromptKit",
    "docker-agent": "docker-agent",
    "drover-skills": "@drover/skills",
    "llm-agents-from-scratch": "llm_agents_from_scratch",
}
"""Each system's key in ``symbols.toml`` and its name in the pages."""
_INTRODUCTION = """\
# Symbols of other systems, checked

{} symbols are documented by the five systems that [coming-from.md](../how-to/coming-from.md) is about. Each row has
what Prowess has for it, and an expression that the tests evaluate and that must be true, in a folder with the skills of
`examples/`: `catalog` is `prowess.scan("skills")`, `skill` its `csv-report`, `session` a new session with
`tools=["Read"]`, `toolset(dialect)` a toolset over one. This page is made by `make manual`.
"""
_TABLE = re.compile(r"(<!-- symbols of ([a-z-]+) -->\n).*?(<!-- end of symbols -->)", re.DOTALL)


class Symbol(NamedTuple):
    """One symbol of another system, its counterpart as Markdown, and the check of that."""

    system: str
    symbol: str
    prowess: str
    check: str


def load_symbols() -> tuple[Symbol, ...]:
    """Every row of ``symbols.toml``, in its order."""
    text = Path(__file__).with_name("symbols.toml").read_text(encoding="utf-8")
    return tuple(Symbol(system, **row) for system, rows in tomllib.loads(text).items() for row in rows)


def write_table(system: str) -> str:
    """The table from a system's symbols to those of Prowess."""
    rows = [_row(f"`{one.symbol}`", one.prowess) for one in load_symbols() if one.system == system]
    return "".join((_row(SYSTEMS[system], "Prowess"), "|---|---|\n", *rows))


def fill_guide(text: str) -> str:
    """The guide with every table made anew between its two comments."""
    return _TABLE.sub(lambda match: match[1] + write_table(match[2]) + match[3], text)


def write_page() -> str:
    """The page of all symbols with their checks."""
    symbols = load_symbols()
    parts = [_INTRODUCTION.format(len(symbols))]
    for system, name in SYSTEMS.items():
        rows = [_row(f"`{one.symbol}`", one.prowess, f"`{one.check}`") for one in symbols if one.system == system]
        table = "".join((_row("symbol", "Prowess", "check"), "|---|---|---|\n", *rows))
        parts.append(f"## {name}: {len(rows)}\n\n{table}")
    return "\n".join(parts)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
    GUIDE.write_text(fill_guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")

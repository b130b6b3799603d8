"""The tables of other systems' symbols. ``make manual`` writes them into ``docs`` from ``symbols.toml``.

The check of a row is a Python expression. The tests evaluate it in a working folder with copies of ``skills/``,
``broken/`` and ``acting/`` from ``examples/``. It may use these names:

- ``catalog``: ``prowess.scan("skills")``
- ``skill``: the skill ``csv-report`` of that catalogue
- ``session``: a new session over that catalogue with ``tools=["Read"]``
- ``toolset(dialect, **options)``: a toolset over another such session
- ``empty_toolset(dialect, **options)``: a toolset over a session without skills
- ``with_readme``: the skill ``deep-review``, with a README.md and a hidden file beside its SKILL.md

The other names that it may use are functions of ``test_coming_from.py``.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.behaviour.documented_systems import write_counts

ROOT = Path(__file__).resolve().parents[2]
GUIDE, PAGE = ROOT / "docs" / "how-to" / "coming-from.md", ROOT / "docs" / "reference" / "symbols.md"
SYSTEMS = {
    "go-skill": "Go `skill`",
    "promptkit": "PromptKit",
    "docker-agent": "docker-agent",
    "drover-skills": "@drover/skills",
    "llm-agents-from-scratch": "llm_agents_from_scratch",
}
"""The key of each system in ``symbols.toml``, and its name in the pages."""
_INTRODUCTION = """\
# Symbols of other systems, checked

The five systems of [coming-from.md](../how-to/coming-from.md) document {} symbols, {} of them only in newer versions.
Each row names the counterpart in Prowess, and a check: an expression that must be true. The tests evaluate it in a
folder with the skills of `examples/`.
There `catalog` is `prowess.scan("skills")`, `skill` is its skill `csv-report`, `session` is a new session with
`tools=["Read"]`, `toolset(dialect)` is a toolset over such a session and `empty_toolset(dialect)` one over a session
without skills, and `with_readme` is a skill with a README.md and a file `.hidden`. `make manual` writes this page.

## Statements of their documentation

The files `tests/behaviour/documented_*.py` have what the documentation of each system says, in its own words, each with
a check by the public API, with the arguments that the tables below name. A test compares them with the documentation,
sentence by sentence. Most of them hold here too. The others differ on purpose, as
[coming-from.md](../how-to/coming-from.md) or `tests/behaviour/manifest.toml` says. The statements of
llm_agents_from_scratch are checked through its own names, which `tests/behaviour/llm_agents_shim.py` gives to parts of
Prowess.

{}"""
_TABLE = re.compile(r"(<!-- symbols of ([a-z-]+) -->\n).*?(<!-- end of symbols -->)", re.DOTALL)


class Symbol(NamedTuple):
    """One symbol of another system, its counterpart in Prowess as Markdown, and the check of the counterpart."""

    system: str
    symbol: str
    prowess: str
    check: str
    newer: bool = False
    """Whether only newer versions of that system document it."""

    @property
    def cell(self) -> str:
        """The symbol as a cell of a table."""
        return f"`{self.symbol}` (newer)" if self.newer else f"`{self.symbol}`"


def load_symbols() -> tuple[Symbol, ...]:
    """Return every row of ``symbols.toml``, in its order."""
    text = Path(__file__).with_name("symbols.toml").read_text(encoding="utf-8")
    return tuple(Symbol(system, **row) for system, rows in tomllib.loads(text).items() for row in rows)


def write_table(system: str) -> str:
    """Return the table of a system's symbols and their counterparts in Prowess, as Markdown."""
    rows = [_row(one.cell, one.prowess) for one in load_symbols() if one.system == system]
    return "".join((_row(SYSTEMS[system], "Prowess"), "|---|---|\n", *rows))


def fill_guide(text: str) -> str:
    """Return the text of the guide with every table between its two comments written anew."""
    return _TABLE.sub(lambda match: match[1] + write_table(match[2]) + match[3], text)


def write_page() -> str:
    """Return the page of all symbols with their checks, as Markdown."""
    symbols = load_symbols()
    parts = [_INTRODUCTION.format(len(symbols), sum(one.newer for one in symbols), write_counts())]
    for system, name in SYSTEMS.items():
        rows = [_row(one.cell, one.prowess, f"`{one.check}`") for one in symbols if one.system == system]
        table = "".join((_row("symbol", "Prowess", "check"), "|---|---|---|\n", *rows))
        parts.append(f"## {name}: {len(rows)}\n\n{table}")
    return "\n".join(parts)


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(write_page(), encoding="utf-8")
    GUIDE.write_text(fill_guide(GUIDE.read_text(encoding="utf-8")), encoding="utf-8")

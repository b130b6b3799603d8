"""What skills could do, for a person who decides: facts with file and line."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from prowess.authoring.security import FACT_TITLES
from prowess.cli.render.blocks import Block, Line, Title, line
from prowess.files.paths import shorten_path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.authoring.security import SecurityReport

_MAX_SHOWN = 12
"""How many facts of a kind are shown; ``--json`` has all of them."""


def report_to_dict(report: SecurityReport) -> dict[str, object]:
    """Return what a skill could do as data."""
    facts = [{"kind": one.kind, "value": one.value, "path": one.path, "line": one.line} for one in report.facts]
    return {"name": report.name, "location": report.location, "facts": facts}


def report_to_blocks(report: SecurityReport) -> Iterator[Block]:
    """Return what a skill could do, for people."""
    yield Title(report.name, shorten_path(report.location))
    if not report.facts:
        yield line("it names nothing that it could run, fetch, read or install", indent=2)
    for kind, group in groupby(report.facts, lambda fact: fact.kind):
        facts = [*group]
        yield line((f"{FACT_TITLES[kind]}:", "warn"), indent=2)
        for fact in facts[:_MAX_SHOWN]:
            yield line(" ".join(fact.value.split()), (f"  {fact.path}:{fact.line}", "dim"), indent=4, cut=True)
        if len(facts) > _MAX_SHOWN:
            yield line((f"and {len(facts) - _MAX_SHOWN} more; --json has all of them", "dim"), indent=4)
    yield Line()

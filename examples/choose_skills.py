"""Which of 400 skills a model sees: all of them, what fits a budget, and what fits a request.

Run it: ``python examples/choose_skills.py``.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import prowess

SKILLS = Path(__file__).resolve().parent / "skills"
TASKS = "archive check compare count explain export file import merge print rename sort split summarize tag"
THINGS = (
    "addresses budgets calendars contacts contracts drawings forms invoices letters maps measurements meetings minutes "
    "offers orders photos plans prices receipts recordings reports samples shifts surveys tickets timesheets"
)


def make_library() -> prowess.Catalog:
    """Return the skills of the folder, and one for each task with each thing."""
    made = [
        prowess.Source.inline(
            f"{task}-{things}", f"Helps to {task} {things}. Use when somebody wants to {task} {things}.", "Do it."
        )
        for task, things in product(TASKS.split(), THINGS.split())
    ]
    return prowess.Catalog.from_sources([prowess.Source.directory(SKILLS), *made])


def main() -> None:
    """Print what the listing costs in each way, and why a skill is in it."""
    catalog = make_library()
    everything = prowess.render_catalog(catalog, style="text")
    print(f"{len(catalog)} skills, listed whole: about {prowess.estimate_tokens(everything):,} tokens")

    toolset = prowess.Toolset(prowess.Session(catalog), budget=1_000)
    toolset.prompt()
    report = toolset.report()
    print(f"within 1,000 tokens: {len(report.shown)} skills, {len(report.dropped)} of them without a description")

    request = "Which columns of this csv file have gaps?"
    toolset.prompt(request)
    report = toolset.report()
    print(f"for {request!r}: {len(report.shown)} skills, {len(report.dropped)} of them without a description")
    print(f"  csv-report: {report.reasons['csv-report']}")
    print(f"  sort-receipts: {report.reasons['sort-receipts']}")


if __name__ == "__main__":
    main()

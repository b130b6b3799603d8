"""``prowess search``: lists the skills that fit a query."""

from __future__ import annotations

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, catalog_options, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Table, line
from prowess.cli.skill_lookup import load_catalog, load_cli_settings, suggest_sync_for
from prowess.spec.quantities import format_count


@new_command(
    "search",
    ("prowess search fill a pdf form", "the words of a request"),
    ("prowess search csv --limit 3 --json", "the three best, as data"),
)
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many to show at most.")
@catalog_options
@json_option
def command(
    query: tuple[str, ...],
    *,
    limit: int,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """Search names, descriptions and tags for the words of QUERY, best first. Exit status 1: nothing fits."""
    settings = load_cli_settings(**where)
    # A skill that is recorded but not here may be the one that is searched for.
    if absent := suggest_sync_for(settings):
        printer.warn(absent)
    catalog = load_catalog(settings)
    # All of them, so that the answer can say how many it leaves out.
    matches = catalog.search(" ".join(query), max(len(catalog), 1))
    hits, left_out = matches[:limit], len(matches) - limit
    printer.print_answer(
        lambda: {
            "hits": [
                {"name": h.name, "description": h.description, "score": round(h.score, 4), "location": h.skill.location}
                for h in hits
            ]
        },
        lambda: [
            Table(
                [((h.name, "name"), (f"{h.score:.2f}", "dim"), " ".join(h.description.split())) for h in hits], cut=True
            ),
            *([line((f"and {left_out:,} more: --limit {len(matches)} shows them", "dim"))] if left_out > 0 else []),
        ],
        as_data=as_data,
    )
    if not hits:
        printer.note(f"Nothing among {format_count(len(catalog), 'skill')} fits.", quiet=as_data)
    return 0 if hits else 1

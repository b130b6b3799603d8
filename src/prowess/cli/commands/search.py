"""``prowess search``: lists the skills that fit a request, and prepares a library for that."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from prowess.cli.command_class import new_command
from prowess.cli.options import CatalogFlags, catalog_options, json_option
from prowess.cli.render import printer
from prowess.cli.render.blocks import Block, Table, line
from prowess.cli.search_modes import MODE_WORDS, prepare_catalog, suggest_meaning
from prowess.cli.skill_lookup import load_catalog, load_settings_to_show, note_folders_here, suggest_sync_for
from prowess.files.paths import shorten_path
from prowess.search.encoder import has_encoder
from prowess.text.quantities import format_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import prowess
    from prowess.literals import SearchMode, Semantic


@new_command(
    "search",
    ("prowess search fill a pdf form", "the words of a request"),
    ("prowess search fill a pdf form --why", "with the reason for each skill"),
    ("prowess search csv --limit 3 --json", "the three best, as data"),
    ("prowess search --prepare", "make the index now, and with the extra 'semantic' the vectors for meaning"),
)
@click.argument("query", nargs=-1)
@click.option("--limit", type=click.IntRange(1), default=10, show_default=True, help="How many to show at most.")
@click.option("--why", is_flag=True, help="Show why each skill fits: by which words, or by meaning.")
@click.option("--words", "only_words", is_flag=True, help="Go by words alone, also if meaning is prepared.")
@click.option("--prepare", is_flag=True, help="Index every skill first, also by meaning if that is installed.")
@catalog_options
@json_option
def command(
    query: tuple[str, ...],
    *,
    limit: int,
    why: bool,
    only_words: bool,
    prepare: bool,
    where: CatalogFlags,
    as_data: bool,
) -> int:
    """List the skills that fit QUERY, a request in your own words, best first.

    Its words are looked for in names, descriptions, tags and instructions. If the extra 'semantic' is installed and the
    skills are prepared, meaning counts too. --prepare prepares them, with or without QUERY. That takes about five
    seconds for a hundred skills, and later only for those that are new or changed. An interrupt loses nothing. The
    index is kept in your cache folder.

    Exit status 1: nothing fits.
    """
    if not query and not prepare:
        raise click.UsageError("Missing argument 'QUERY...'.")
    settings = load_settings_to_show(**where)
    # A skill that is recorded but not here may be the one that is searched for.
    if absent := suggest_sync_for(settings):
        printer.warn(absent)
    catalog = load_catalog(settings)
    semantic: Semantic = False if only_words else "auto"
    mode: SearchMode = prepare_catalog(catalog, semantic=semantic) if prepare else "words"
    if not query:
        return _print_preparation(catalog, mode, only_words=only_words, as_data=as_data)
    with printer.show_progress("searching"):  # the first search of a library indexes it
        # All of them, so that the answer can say how many it leaves out.
        matches = catalog.search(" ".join(query), max(len(catalog), 1), semantic=semantic)
    hits = matches[:limit]
    printer.print_answer(
        lambda: _to_dict(hits, matches.mode, len(catalog)),
        lambda: _to_blocks(hits, len(matches), why=why),
        as_data=as_data,
    )
    if not catalog:
        _note_no_skills(catalog, query, quiet=as_data)
        return 1
    note_folders_here(hit.skill for hit in hits)
    if not hits:
        printer.note(f"Nothing among {format_count(len(catalog), 'skill')} fits.", quiet=as_data)
    # Whoever has not installed the extra reads of it only where it may have helped, or where somebody wants to know.
    if why or not hits or has_encoder():
        _note_mode(matches.mode, quiet=as_data or only_words)
    return 0 if hits else 1


def _note_no_skills(catalog: prowess.Catalog, query: Sequence[str], *, quiet: bool) -> None:
    """Say where no skills were found, and how to search a folder that somebody wrote among the words."""
    looked = ", ".join(shorten_path(place.path) for place in catalog.places)
    folder = next((word for word in query if os.path.isdir(word)), "FOLDER")
    printer.note(f"No skills found. Looked in: {looked}", quiet=quiet)
    printer.note(f"To search in a folder, name it: --dir {folder}", quiet=quiet)


def _note_mode(mode: SearchMode, *, quiet: bool) -> None:
    if advice := suggest_meaning(mode):
        printer.note(advice, quiet=quiet)


def _print_preparation(catalog: prowess.Catalog, mode: SearchMode, *, only_words: bool, as_data: bool) -> int:
    if not catalog:
        _note_no_skills(catalog, (), quiet=as_data)
    skills = format_count(len(catalog), "skill")
    printer.print_answer(
        lambda: _to_dict((), mode, len(catalog)),
        lambda: [line(("Prepared: ", "good"), f"searches among {skills} go by {MODE_WORDS[mode]}.")],
        as_data=as_data,
    )
    _note_mode(mode, quiet=as_data or only_words or not catalog)
    return 0


def _to_dict(hits: Sequence[prowess.SearchHit], mode: SearchMode, skills: int) -> dict[str, object]:
    return {
        "mode": mode,
        "skills": skills,
        "hits": [
            {
                "name": hit.name,
                "description": hit.description,
                "score": round(hit.score, 4),
                "why": hit.why,
                "location": hit.skill.location,
            }
            for hit in hits
        ],
    }


def _to_blocks(hits: Sequence[prowess.SearchHit], fitting: int, *, why: bool) -> Iterator[Block]:
    if why:
        for hit in hits:
            yield line((hit.name, "name"), f"  {' '.join(hit.description.split())}", cut=True)
            yield line((hit.why, "dim"), indent=4)
    else:
        rows = [((hit.name, "name"), " ".join(hit.description.split())) for hit in hits]
        yield Table(rows, cut=True)
    if fitting > len(hits):
        yield line((f"and {fitting - len(hits):,} more: --limit {fitting} shows them", "dim"))

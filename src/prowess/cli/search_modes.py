"""What searches go by, words or meaning too: the preparation of it, and the advice to people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.cli.render import printer
from prowess.hints import explain_extra
from prowess.search.encoder import has_encoder

if TYPE_CHECKING:
    import prowess
    from prowess.literals import SearchMode, Semantic

MODE_WORDS: dict[SearchMode, str] = {"words": "words", "words+meaning": "words and meaning"}
"""Each mode in the words of a sentence."""


def prepare_catalog(catalog: prowess.Catalog, *, semantic: Semantic = "auto") -> SearchMode:
    """Index all skills, with a progress bar, and return what searches go by.

    After an interrupt a note says that what was prepared is kept.
    """
    try:
        with printer.show_progress("preparing the search"):
            return catalog.prepare_search(semantic=semantic)
    except KeyboardInterrupt:
        printer.note("What was prepared is kept: the next time, the preparation goes on from there.")
        raise


def suggest_meaning(mode: SearchMode) -> str:
    """Return how searches would go by meaning too; ``""`` if they do."""
    if mode == "words+meaning":
        return ""
    if has_encoder():
        return "Not all skills are prepared, so words alone counted; with --prepare it searches by meaning too."
    return f"This searched by words alone; to search by meaning too, {explain_extra('semantic')}"

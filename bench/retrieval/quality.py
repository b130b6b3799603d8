"""How often search finds the right skill, by plain full-text search, by words, and by words and meaning."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from bench.retrieval import bare
from bench.retrieval.data import place_of
from bench.retrieval.scores import DEPTH, MEASURES, average_values, judge_ranking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import prowess
    from bench import table
    from bench.retrieval.data import PoolSkill, Request
    from bench.retrieval.meaning import Semantic
    from bench.retrieval.scores import Values

    Ranker = Callable[[Request], Sequence[int]]

WORDS, MEANING = "words", "words and meaning"
BARS = {WORDS: (0.48, 0.66, 0.77), MEANING: (0.57, 0.76, 0.86)}
"""What hit@1, recall@5 and recall@20 must at least be over all requests."""
HEAD: table.Row = ("ranked by", "requests", "number", *MEASURES, "demanded", "")


def split_requests(requests: Sequence[Request]) -> dict[str, list[int]]:
    """Return the places of all requests, then those of each kind and of each script."""
    parts: dict[str, list[int]] = {"all": list(range(len(requests)))}
    for field in ("kind", "script"):
        for value in sorted({getattr(request, field) for request in requests}):
            parts[f"{field} {value}"] = [
                place for place, request in enumerate(requests) if getattr(request, field) == value
            ]
    return parts


def rank_barely(skills: Sequence[PoolSkill]) -> dict[str, Ranker]:
    """Return the floors: plain full-text search without and with the bodies."""
    heads, wholes = sqlite3.connect(":memory:"), sqlite3.connect(":memory:")
    bare.make_table(heads, ((skill.name, skill.description) for skill in skills), with_body=False)
    rows = ((skill.name, skill.description, skill.body[: bare.BODY_CHARACTERS]) for skill in skills)
    bare.make_table(wholes, rows, with_body=True)
    return {
        "plain FTS5: names, descriptions": lambda request: bare.rank_request(
            heads, request.text, DEPTH, bare.HEAD_WEIGHTS
        ),
        "plain FTS5: with bodies": lambda request: bare.rank_request(wholes, request.text, DEPTH),
    }


def rank_by_words(catalog: prowess.Catalog) -> Ranker:
    """Return the ranking of ``catalog.search`` without meaning."""
    catalog.prepare_search(semantic=False)
    return lambda request: _search(catalog, request, semantic=False, mode="words")


def rank_by_meaning(catalog: prowess.Catalog, semantic: Semantic) -> Ranker:
    """Return the ranking of ``catalog.search`` with meaning, in a library that is prepared for it."""
    return lambda request: _search(catalog, request, semantic=semantic(request), mode="words+meaning")


def _search(
    catalog: prowess.Catalog, request: Request, *, semantic: bool | prowess.Encoder, mode: prowess.SearchMode
) -> list[int]:
    hits = catalog.search(request.text, limit=DEPTH, semantic=semantic)
    assert hits.mode == mode, hits.mode
    return [place_of(hit.skill) for hit in hits]


def judge_all(requests: Sequence[Request], rank: Ranker) -> list[Values]:
    """Return what the ranking achieves for each request."""
    # One fold after the other, because a catalogue has the vectors of one encoder in memory at a time.
    order = sorted(range(len(requests)), key=lambda place: requests[place].fold)
    values = {place: judge_ranking(requests[place], rank(requests[place])) for place in order}
    return [values[place] for place in range(len(requests))]


def table_rows(what: str, requests: Sequence[Request], values: Sequence[Values]) -> Iterator[table.Row]:
    """Yield the rows of one ranking: all requests, then each part of them."""
    for part, held in split_requests(requests).items():
        scores = average_values([requests[place] for place in held], [values[place] for place in held])
        bars = BARS.get(what) if part == "all" else None
        demanded = " / ".join(f"{bar:.2f}".removeprefix("0") for bar in bars) if bars else ""
        kept = bars is not None and all(score.mean >= bar for score, bar in zip(scores, bars, strict=False))
        verdict = ("PASS" if kept else "UNDER") if bars else ""
        yield (what, part, f"{len(held):,}", *map(str, scores), f"≥ {demanded}" if bars else "", verdict)

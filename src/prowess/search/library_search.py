"""A request to a library: its skills by words, or by words and meaning, each checked before it is returned."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from prowess.search.ranking import (
    COMPARED_ROWS,
    LEAST_COSINE,
    MIXED_BY_MEANING,
    MIXED_BY_WORDS,
    WordRanking,
    lower_copies,
    mix_scores,
)
from prowess.search.terms import split_request

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from prowess.literals import SearchMode, Semantic
    from prowess.search.encoder import Encoder
    from prowess.search.index_database import IndexRow
    from prowess.search.library import SearchLibrary
    from prowess.search.library_index import LibraryIndex
    from prowess.search.ranking import RowPlace
    from prowess.search.vectors import Vectors, VectorTable

    RankedSkill = tuple[str, float, Callable[[], str]]

_SPARE_ROWS = 10
"""Rows that are ranked beyond those that are asked for, since some may belong to skills that this catalogue lacks."""


# The classes here are not named tuples, because each of those would add to the time of a process's first search.


class Ranking:
    """The skills that fit a request, the best first, and what the search went by.

    Each skill is a tuple: its name, its score, and a function that finds out the reason.
    """

    __slots__ = ("mode", "skills")

    def __init__(self, skills: list[RankedSkill], mode: SearchMode) -> None:
        self.skills = skills
        self.mode = mode


class _Request:
    """A request: its words, its vector if meaning counts, and which skills may be returned."""

    __slots__ = ("among", "encoder", "limit", "vector", "words")

    def __init__(self, words: list[str], among: Collection[str] | None, limit: int) -> None:
        self.words = words
        self.among = among
        self.limit = limit
        self.vector: Vectors | None = None
        self.encoder = ""


class _Match:
    """A row that fits a request, and what of it fits."""

    __slots__ = ("has_meaning", "has_words", "name", "place", "score", "state")

    def __init__(self, place: RowPlace, row: IndexRow, score: float) -> None:
        self.place = place
        self.name = row.name
        self.state = row.state
        self.score = score
        self.has_words = True
        self.has_meaning = False


def rank_library(
    index: LibraryIndex, text: str, among: Collection[str] | None, limit: int, semantic: Semantic | Encoder
) -> Ranking:
    """Return at most ``limit`` skills that fit the request ``text``, the best first; of ``among`` alone, if given.

    Raises ``SourceError`` when ``semantic`` asks for meaning, and an encoder is not installed or vectors are missing.
    """
    from prowess.search import preparation

    request = _Request(split_request(text), among, limit)
    encoder = preparation.find_prepared_encoder(index, semantic) if _may_use_meaning(index, semantic) else None
    if encoder is not None and request.words:
        is_auto = semantic == "auto"
        request.vector = preparation.encode_or_warn(encoder, text) if is_auto else encoder.encode_requests([text])[0]
        request.encoder = encoder.name
        encoder = None if request.vector is None else encoder
    matches = index.run(lambda: _rank(index, request)) if request.words and limit > 0 else []
    if encoder is not None and request.words and request.vector is None:
        # A skill has changed since, or the file of the index is a new one: a skill has no vector any more.
        return rank_library(index, text, among, limit, semantic)
    explainer = _Explainer(index, request.words, matches)
    skills = [(match.name, match.score, explainer.make_reason(match)) for match in matches]
    return Ranking(skills, "words" if encoder is None else "words+meaning")


def _may_use_meaning(index: LibraryIndex, semantic: Semantic | Encoder) -> bool:
    # An encoder takes long to load. Where nothing was ever prepared, nobody needs to know whether one is installed.
    return semantic is not False and (semantic != "auto" or index.run(index.list_encoders) != [])


def _rank(index: LibraryIndex, request: _Request) -> list[_Match]:
    index.bring_up_to_date()
    if not index.databases:
        return []
    depth = request.limit + _SPARE_ROWS
    may_refresh = True
    while True:
        generations = () if request.vector is None else index.get_generations()
        if request.vector is not None and not index.has_all_vectors(request.encoder):
            request.vector = None
            return []
        matched = _match_rows(index, request, depth, generations)
        if matched is None:
            continue
        hits, changed = _check_matches(index.library, matched.matches, request.limit)
        has_moved = may_refresh and any(_may_have_moved(index.library, row) for row in matched.namesakes)
        if may_refresh and (changed or has_moved):
            may_refresh = False
            index.refresh(changed)
            index.bring_up_to_date(has_moved=has_moved)
        elif len(hits) == request.limit or matched.count < depth:
            return hits
        else:
            depth = sys.maxsize


def _may_have_moved(library: SearchLibrary, row: IndexRow) -> bool:
    """Return whether a row of a file elsewhere says that the file of this library's skill may have no row of its own.

    The file elsewhere has changed or is gone, or it is the same file by another name (a hard link): a catalogue that
    has either name has the same fingerprint.
    """
    return library.has_other_state(row.key, row.state) or library.is_current(row.name, row.state)


class _MatchedRows:
    """The rows that fit a request, before their files are looked at.

    ``count`` is the number of rows that were ranked, and ``matches`` are those of skills that may be returned, best
    first. ``namesakes`` are rows of files elsewhere that have the name of a skill of this library.
    """

    __slots__ = ("count", "matches", "namesakes")

    def __init__(self, count: int, matches: list[_Match], namesakes: list[IndexRow]) -> None:
        self.count = count
        self.matches = matches
        self.namesakes = namesakes


def _match_rows(
    index: LibraryIndex, request: _Request, depth: int, generations: tuple[int, ...]
) -> _MatchedRows | None:
    """Rank at least ``depth`` rows; ``None`` when meaning counts and the rows are not of these generations any more."""
    with index.read():
        # Another process may have written a row without a vector since: then half of the vectors would count.
        if request.vector is not None and index.get_generations() != generations:
            return None
        ranking = WordRanking(
            index.databases, request.words, index.library.limits.max_request_terms, index.get_counts()
        )
        table: VectorTable | None = None
        cosines: dict[RowPlace, float] = {}
        if request.vector is None:
            scores = words = ranking.rank(depth)
        else:
            words = ranking.rank(max(depth, MIXED_BY_WORDS))
            table = index.get_vectors(request.encoder)
            cosines = table.find_nearest(request.vector, max(depth, MIXED_BY_MEANING), words)
            scores = mix_scores(words, cosines, max(depth, COMPARED_ROWS))
        rows = index.get_rows(scores)
    matches, namesakes = [], []
    for place, row in rows.items():
        if request.among is not None and row.name not in request.among:
            continue
        if index.is_own_row(row):
            matches.append(_Match(place, row, scores[place]))
        elif index.library.get_key(row.name) is not None:
            namesakes.append(row)
    matches.sort(key=_order)
    if table is not None:
        for match in matches:
            match.has_words = match.place in words
            match.has_meaning = cosines.get(match.place, 0.0) >= LEAST_COSINE
        _lower_copies(matches, table)
    return _MatchedRows(len(scores), matches, namesakes)


def _order(match: _Match) -> tuple[float, str]:
    return -match.score, match.name


def _lower_copies(matches: list[_Match], table: VectorTable) -> None:
    """Lower the scores of matches that are like better ones, and sort them again."""
    likeness = table.measure_likeness([match.place for match in matches[:COMPARED_ROWS]])
    for match, score in zip(matches, lower_copies([match.score for match in matches], likeness), strict=True):
        match.score = score
    matches.sort(key=_order)


def _check_matches(library: SearchLibrary, matches: list[_Match], limit: int) -> tuple[list[_Match], list[str]]:
    """The first ``limit`` matches whose files are as they were when they were indexed, and the names of the others."""
    hits: list[_Match] = []
    changed: list[str] = []
    for match in matches:
        if len(hits) == limit:
            break
        if library.is_current(match.name, match.state):
            hits.append(match)
        else:
            changed.append(match.name)
    return hits, changed


class _Explainer:
    """The reasons why skills fit one request. The words are looked up for all of them when the first is asked for."""

    def __init__(self, index: LibraryIndex, words: list[str], matches: list[_Match]) -> None:
        self._index = index
        self._words = words
        self._matches = matches
        self._matched: dict[RowPlace, list[str]] | None = None

    def make_reason(self, match: _Match) -> Callable[[], str]:
        """Return a function that returns the reason for one match."""
        return lambda: self._explain(match)

    def _explain(self, match: _Match) -> str:
        if self._matched is None:
            # A hit that another process got by a fork cannot ask the index any more.
            self._matched = {} if self._index.is_inherited else self._index.run(self._find_words)
        words = ", ".join(self._matched.get(match.place, ()))
        parts = [f"words: {words}" if words else "words"] if match.has_words else []
        return "; ".join([*parts, *(["meaning"] if match.has_meaning else [])])

    def _find_words(self) -> dict[RowPlace, list[str]]:
        matched: dict[RowPlace, list[str]] = {}
        for number, database in enumerate(self._index.databases):
            ids = [row for place, row in (match.place for match in self._matches if match.has_words) if place == number]
            for word in self._words[: self._index.library.limits.max_request_terms]:
                for row in database.find_term_rows(word, ids):
                    matched.setdefault((number, row), []).append(word)
        return matched

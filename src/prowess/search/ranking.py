"""The order of skills for a request, by their words and their meaning, and a search over a listing in memory.

The numbers here were chosen by measurement, with `make bench-retrieval`.
"""

from __future__ import annotations

import sys
from math import log
from typing import TYPE_CHECKING

from prowess.search.index_database import EVERY_ROW, IndexDatabase, quote_terms
from prowess.search.terms import SkillText, split_request, tags_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.limits import Limits
    from prowess.search.index_database import WordQuery, WordTable
    from prowess.search.terms import Searchable

    TermCounts = dict[tuple[WordTable, str], int]
    "How many texts of a table have a term."
    RowPlace = tuple[int, int]
    "The index that has a row, by its number, and the id of the row in it."


_PARTS: tuple[tuple[WordTable, str, float], ...] = (
    ("heads", "4.0, 2.0, 0.0", 1.0),
    ("texts", "8.0, 4.0, 2.0, 0.0", 1.5),
)
"""The tables of words, each with the weights of its columns and the share of its scores."""
_LEAST_PRESELECTED, _PRESELECTED_PER_ROW = 2_500, 4
"""Rows that the rarest terms of a request have together, at least and for each row that is asked for; only these are
scored. Rows that have nothing but the common terms of a request are hardly ever among the best, and scoring them takes
most of the time of a plain query."""
_MAX_COUNTED_TERMS = 512  # of a whole document as a request, no more words than this are looked up
_MAX_COUNTED_ROWS = 5_000  # a term that more rows have is common, however many more they are
_LEAST_WEIGHT = 1e-6  # as in FTS5: a term that more than half of the rows have counts for nearly nothing
WORDS_SHARE = 0.3
"""How much of a score comes from words where meaning counts too; the rest comes from the cosine."""
LEAST_COSINE = 0.25
"""How near the meaning of a skill must be for a hit without a word in common."""
MIXED_BY_WORDS, MIXED_BY_MEANING = 1_000, 100
"""Rows with the best words, and rows with the nearest meaning, that are compared by both."""
LIKE_COSINE = 0.4
"""How near the meaning of a skill must be to that of a better one for its score to be lowered."""
COPY_LOSS = 0.2
"""The share of its score that a copy of a better skill loses; what is less alike loses less."""
COMPARED_ROWS = 60
"""Rows with the best scores that are compared with each other. Those behind them lose as much as copies do."""


class WordRanking:
    """The rows of some indexes that have words of one request, scored so that the scores can be compared.

    The first index is the large one. The rows of any other get the scores that they would have in it.
    """

    def __init__(self, indexes: Sequence[IndexDatabase], words: Sequence[str], most: int, counts: TermCounts) -> None:
        """``most``: how many of the words count. ``counts``: how many rows have a word, as far as that is known."""
        self._indexes = indexes
        self._counts = counts
        # Counting takes a while, and is needed only to leave something out, or to weigh terms in two indexes alike.
        self._is_small = len(indexes) == 1 and len(words) <= most and indexes[0].get_last_id() <= _LEAST_PRESELECTED
        self.terms = list(words) if self._is_small else self._find_rarest(words[:_MAX_COUNTED_TERMS], most)

    def _find_rarest(self, words: Sequence[str], most: int) -> list[str]:
        """Return the ``most`` words that are in the fewest rows, but in any."""
        totals = {word: sum(self._count(table, word) for table, _, _ in _PARTS) for word in words}
        return sorted(filter(totals.__getitem__, words), key=totals.__getitem__)[:most]

    def _count(self, table: WordTable, term: str) -> int:
        """Return how many texts of a table, in all indexes, have a term."""
        key = (table, term)
        if key not in self._counts:
            # How common a common term is counts only where two indexes must weigh it alike.
            most = _MAX_COUNTED_ROWS if len(self._indexes) == 1 else sys.maxsize
            self._counts[key] = sum(index.count_matches(table, term, most) for index in self._indexes)
        return self._counts[key]

    def rank(self, limit: int) -> dict[RowPlace, float]:
        """The scores of at most ``limit`` rows of the first index, and of all rows of the others that have a term."""
        preselected = max(_LEAST_PRESELECTED, _PRESELECTED_PER_ROW * limit)
        queries = [query for query in (self._make_query(part, preselected) for part in _PARTS) if query[1]]
        if not queries:
            return {}
        scores = {(0, row): score for row, score in self._indexes[0].rank_matches(queries, limit)}
        for place in range(1, len(self._indexes)):
            scores.update(self._rank_beside(place))
        return scores

    def _make_query(self, part: tuple[WordTable, str, float], preselected: int) -> WordQuery:
        table, weights, share = part
        match = quote_terms(self.terms) if self._is_small else self._select_rare(table, preselected)
        return table, match, weights, share

    def _select_rare(self, table: WordTable, most: int) -> str:
        """Return a query for the rows of a table that have a rare term of the request, of which ``most`` rows have one.

        The rarest term counts as rare in any case. Returns ``""`` when no row has a term of the request.
        """
        terms = sorted(
            (term for term in self.terms if self._count(table, term)), key=lambda term: self._count(table, term)
        )
        total = rare = 0
        for term in terms:
            total += self._count(table, term)
            if rare and total > most:
                break
            rare += 1
        match = quote_terms(terms[:rare])
        # A row must have a rare term. Any other term only adds to its score, since each row has one of the rest.
        return f"({match}) AND ({quote_terms((*terms[rare:], EVERY_ROW))})" if rare < len(terms) else match

    def _rank_beside(self, place: int) -> dict[RowPlace, float]:
        """Return the rows of a small index, scored as in the first one.

        BM25 weighs a term by how rare it is among all rows of its index. So each term is ranked by itself here, and its
        weight in the small index is replaced by the one that it has among all rows.
        """
        scores: dict[RowPlace, float] = {}
        index = self._indexes[place]
        for table, weights, share in _PARTS:
            own_texts, all_texts = index.count_texts(table), sum(one.count_texts(table) for one in self._indexes)
            for term in self.terms if own_texts else ():
                matches = index.rank_matches([(table, quote_terms([term]), weights, share)], own_texts)
                factor = _weigh_term(all_texts, self._count(table, term)) / _weigh_term(own_texts, len(matches))
                for row, score in matches:
                    scores[place, row] = scores.get((place, row), 0.0) + score * factor
        return scores


def _weigh_term(rows: int, matches: int) -> float:
    """Return the weight that FTS5 gives to a term which ``matches`` of the rows have."""
    return max(log((rows - matches + 0.5) / (matches + 0.5)), _LEAST_WEIGHT)


def mix_scores(words: dict[RowPlace, float], cosines: dict[RowPlace, float], most: int) -> dict[RowPlace, float]:
    """Return the scores by words and meaning together of the ``most`` rows that have the best.

    A row without a word counts only if its meaning is near.
    """
    best = max(words.values(), default=1.0)
    # Words whose row has no cosine: it was written by another process after the vectors were read.
    scores = {place: WORDS_SHARE * score / best for place, score in words.items()}
    for place, cosine in cosines.items():
        if place in scores or cosine >= LEAST_COSINE:
            scores[place] = scores.get(place, 0.0) + (1 - WORDS_SHARE) * cosine
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:most])


def lower_copies(scores: Sequence[float], likeness: Sequence[float]) -> list[float]:
    """Return the scores of skills, the best first, lowered for each skill that is like a better one.

    ``likeness`` has the cosine of each of the first skills with the nearest better one. When one of several copies is
    not what was asked for, the others are not either. So the places behind it are for skills of another kind.
    """
    losses = [max(0.0, cosine - LIKE_COSINE) / (1 - LIKE_COSINE) * COPY_LOSS for cosine in likeness]
    losses += [COPY_LOSS] * (len(scores) - len(losses))
    return [score * (1 - loss) for score, loss in zip(scores, losses, strict=True)]


def find_missing_words(text: SkillText, request: str) -> tuple[str, ...]:
    """Return the words of a request that a text of a skill does not have, in their order, without stop words."""
    database = IndexDatabase()
    try:
        with database.write():
            row = database.put_row(b"", text)
        return tuple(word for word in split_request(request) if not database.find_term_rows(word, [row]))
    finally:
        database.close()


def rank_listing(skills: Sequence[Searchable], request: str, limits: Limits) -> list[tuple[int, float]]:
    """Return the places in the list of all skills that fit the request, the best first, each with its score."""
    database = IndexDatabase()
    try:
        places: dict[int, int] = {}
        with database.write():
            for place, skill in enumerate(skills):
                text = SkillText(skill.name, skill.description, " ".join(tags_of(skill, limits)))
                places[database.put_row(b"%d" % place, text.cut(limits))] = place
        scores = WordRanking([database], split_request(request), limits.max_request_terms, {}).rank(len(skills))
    finally:
        database.close()
    ranked = [(places[row], score) for (_, row), score in scores.items()]
    return sorted(ranked, key=lambda hit: (-hit[1], skills[hit[0]].name))

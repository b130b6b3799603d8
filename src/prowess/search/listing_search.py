"""A search over what a listing says of skills, as in the index of a site: by words, with an index in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.search.index_database import IndexDatabase
from prowess.search.ranking import WordRanking
from prowess.search.terms import split_request
from prowess.search.texts import SkillText, tags_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.limits import Limits
    from prowess.search.texts import Searchable


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

"""The candidates that a session gives to a selector: skills, with the catalogue whose index can rank them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from prowess.skills.catalog import Catalog

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from prowess.literals import Semantic
    from prowess.skills.search_hits import SearchHits
    from prowess.skills.skill import Skill


class Candidates(tuple["Skill", ...]):  # noqa: SLOT001 - a tuple with slots cannot carry its catalogue
    """The skills of one catalogue that a selector may choose from, in the order of the listing.

    ``catalog`` is the catalogue that they come from. It may have more skills: those that filters hide.
    """

    catalog: Catalog

    def __new__(cls, skills: Iterable[Skill], catalog: Catalog, by_name: Mapping[str, Skill] | None = None) -> Self:
        """Return the candidates; ``by_name`` are the skills by their names, where the caller has them already."""
        self = super().__new__(cls, skills)
        self.catalog = catalog
        if by_name is not None:
            vars(self)["by_name"] = by_name  # in place of what the cached property would compute
        return self

    def __reduce__(self) -> tuple[type[Candidates], tuple[tuple[Skill, ...], Catalog]]:
        """Return how another process makes the candidates again."""
        return Candidates, (tuple(self), self.catalog)

    @cached_property
    def by_name(self) -> Mapping[str, Skill]:
        """The candidates by their names."""
        return {skill.name: skill for skill in self}

    def narrow(self, skills: Iterable[Skill]) -> Candidates:
        """Return those of the candidates that are in ``skills``; their catalogue stays."""
        return Candidates(skills, self.catalog)

    def keep_names(self, names: Iterable[str]) -> Candidates:
        """Return the candidates of these names, sorted by name."""
        return self.narrow(self.by_name[name] for name in sorted(set(names)) if name in self.by_name)

    def rank(self, query: str, limit: int, semantic: Semantic = "auto") -> SearchHits:
        """Return at most ``limit`` of the candidates that fit ``query``, the best first; ``False``: by words alone."""
        among = None if len(self) == len(self.catalog) else self.by_name
        return self.catalog.rank_skills(query, among, limit, semantic=semantic)


class CandidateCache:
    """Makes candidates of plain lists of skills; the last ones are kept, because their search index is expensive."""

    def __init__(self) -> None:
        self._last: Candidates | None = None

    def get_candidates(self, skills: Sequence[Skill]) -> Candidates:
        """Return ``skills`` as candidates: themselves if they are candidates, else with a catalogue of their own."""
        if isinstance(skills, Candidates):
            return skills
        last = self._last
        if last is None or tuple(last) != tuple(skills):
            last = self._last = Candidates(skills, Catalog(skills))
        return last

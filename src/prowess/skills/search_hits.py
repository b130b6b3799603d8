"""What a search of a catalogue returns: the skills that fit, each with its score and the reason, best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prowess.literals import SearchMode
    from prowess.skills.skill import Skill


class SearchHit(tuple["Skill", float]):  # noqa: SLOT001 - it has a reason, and tuples cannot have slots
    """A skill that fits a request, and how well: a higher score is better. It unpacks as these two."""

    _why: str | Callable[[], str]

    def __new__(cls, skill: Skill, score: float, why: str | Callable[[], str] = "") -> Self:
        """``why``: the reason, or a function that finds it out when somebody asks."""
        hit = super().__new__(cls, (skill, score))
        hit._why = why
        return hit

    def __repr__(self) -> str:
        """The skill and the score."""
        return f"SearchHit({self.skill!r}, {self.score!r})"

    def __reduce__(self) -> tuple[type[SearchHit], tuple[Skill, float, str]]:
        """What a pickle holds: the reason too, as text."""
        return SearchHit, (self.skill, self.score, self.why)

    @property
    def skill(self) -> Skill:
        """The skill."""
        return self[0]

    @property
    def score(self) -> float:
        """How well the skill fits."""
        return self[1]

    @property
    def name(self) -> str:
        """The name of the skill."""
        return self.skill.name

    @property
    def description(self) -> str:
        """The description of the skill."""
        return self.skill.description

    @property
    def why(self) -> str:
        """The reason: ``words: form, pdf`` with the words of the request that the skill has, ``meaning``, or both."""
        if not isinstance(self._why, str):
            self._why = self._why()
        return self._why


class SearchHits(tuple[SearchHit, ...]):  # noqa: SLOT001 - it has a mode, and tuples cannot have slots
    """The hits of a search, the best first, as a tuple."""

    mode: SearchMode
    """What the search went by: ``"words"``, or ``"words+meaning"`` where the catalogue is prepared for that."""

    def __new__(cls, hits: Iterable[SearchHit] = (), mode: SearchMode = "words") -> Self:
        made = super().__new__(cls, hits)
        made.mode = mode
        return made

    def __reduce__(self) -> tuple[type[SearchHits], tuple[tuple[SearchHit, ...], SearchMode]]:
        """What a pickle holds."""
        return SearchHits, (tuple(self), self.mode)

"""Skills that a model or a person could confuse: names and descriptions that collide or are too similar."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from prowess.errors import Issue
from prowess.text.quantities import join_first
from prowess.text.spelling import mistyping_forms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits
    from prowess.skills.skill import Skill

_MIN_SHARED_WORDS = 0.8
"""The share of common words from which two descriptions are too similar. Measured on real collections: pairs above it
are copies, translations of one template, or versions of each other."""
_MIN_WORDS = 6  # shorter descriptions share words by chance
_MAX_NAMED = 5  # further skills of a group
_SAME = {
    "duplicate-description": "is the same as that of",
    "confusing-description": "says nearly the same as that of",
}
_WORD = re.compile(r"\w+")
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class SimilarPair(NamedTuple):
    """Two skills that a model or a person could confuse, the earlier one first, and what makes them alike."""

    earlier: Skill
    later: Skill
    code: str
    field: str

    def describe(self, skill: Skill) -> str:
        """Return what the warning about one of the two says."""
        other = self.earlier if skill is self.later else self.later
        if self.code == "duplicate-name":
            return f"{skill.name!r} is also the name of {other.location}"
        place = f"{other.name!r} ({other.location})"
        return f"{skill.name!r} is easily taken for {place}" if self.field == "name" else f"{_SAME[self.code]} {place}"


def similar_issues(skills: Sequence[Skill], limits: Limits) -> Iterator[Issue]:
    """Yield a warning for each pair of ``find_similar_pairs``, about the later skill of the two.

    Skills with similar descriptions are one group with one warning, however many pairs they make: it is about the pair
    that was found first, and names the others.
    """
    described = []
    for pair in find_similar_pairs(skills, limits):
        if pair.field == "description":
            described.append(pair)
        else:
            yield _make_issue(pair, pair.describe(pair.later))
    for group in _group_pairs(described):
        first = group[0]
        named = {id(first.earlier), id(first.later)}
        others = {id(each): each.name for pair in group for each in (pair.earlier, pair.later) if id(each) not in named}
        more = f"; as do {join_first(sorted(others.values()), _MAX_NAMED)}" if others else ""
        yield _make_issue(first, first.describe(first.later) + more)


def _group_pairs(pairs: Sequence[SimilarPair]) -> Iterator[list[SimilarPair]]:
    """Yield the pairs that hang together through skills that they share, in the order in which they were found."""
    leaders: dict[int, int] = {}

    def find_leader(skill: Skill) -> int:
        key = id(skill)
        while (above := leaders.setdefault(key, key)) != key:
            leaders[key] = leaders[above]
            key = leaders[key]
        return key

    for pair in pairs:
        leaders[find_leader(pair.later)] = find_leader(pair.earlier)
    groups: dict[int, list[SimilarPair]] = {}
    for pair in pairs:
        groups.setdefault(find_leader(pair.earlier), []).append(pair)
    yield from groups.values()


def _make_issue(pair: SimilarPair, message: str) -> Issue:
    skill = pair.later
    return Issue(pair.code, pair.field, message, skill.location, skill.frontmatter.lines.get(pair.field, 1), "warning")


def find_similar_pairs(skills: Sequence[Skill], limits: Limits) -> Iterator[SimilarPair]:
    """Yield each pair that collides among the first ``limits.max_compared_skills`` of the skills."""
    # Descriptions are compared in pairs, so the time grows with the square of the number of skills: hence the limit.
    compared = skills[: limits.max_compared_skills]
    yield from _find_duplicate_names(compared)
    yield from _find_confusing_names(compared)
    yield from _find_similar_descriptions(compared)


def _find_duplicate_names(skills: Sequence[Skill]) -> Iterator[SimilarPair]:
    first: dict[str, Skill] = {}
    for skill in skills:
        other = first.setdefault(skill.name, skill)
        if other is not skill:
            yield SimilarPair(other, skill, "duplicate-name", "name")


def _find_confusing_names(skills: Sequence[Skill]) -> Iterator[SimilarPair]:
    """Yield a pair for each name that a person could mistype as an earlier one."""
    by_form: dict[str, Skill] = {}
    for skill in skills:
        forms = mistyping_forms(skill.name)
        candidates = (by_form[form] for form in forms if form in by_form)
        other = next((earlier for earlier in candidates if _is_confusing(earlier.name, skill.name)), None)
        if other is not None:
            yield SimilarPair(other, skill, "confusing-name", "name")
        for form in forms:
            by_form.setdefault(form, skill)


def _is_confusing(one: str, other: str) -> bool:
    """Return whether two names that share a form of a mistyping are likely to be confused."""
    # Names that differ only in a number, such as step-1 and step-2, are a series and not a mistake.
    is_series = one.translate(_WITHOUT_DIGITS) == other.translate(_WITHOUT_DIGITS)
    return one != other and (not is_series or one.casefold() == other.casefold())


def _find_similar_descriptions(skills: Sequence[Skill]) -> Iterator[SimilarPair]:
    words = [(skill, frozenset(_WORD.findall(skill.description.casefold()))) for skill in skills]
    described = [(skill, used) for skill, used in words if len(used) >= _MIN_WORDS]
    for (one, ours), (other, theirs) in combinations(described, 2):
        # Fast path: sets of too different sizes cannot share enough words, and most pairs end here.
        if min(len(ours), len(theirs)) < _MIN_SHARED_WORDS * max(len(ours), len(theirs)):
            continue
        shared = len(ours & theirs)
        if shared < _MIN_SHARED_WORDS * (len(ours) + len(theirs) - shared) or one.name == other.name:
            continue
        is_copy = " ".join(one.description.split()) == " ".join(other.description.split())
        yield SimilarPair(one, other, "duplicate-description" if is_copy else "confusing-description", "description")

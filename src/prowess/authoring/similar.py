"""Skills that a model, or a person, could take for each other: names and descriptions that collide or confuse."""

from __future__ import annotations

import re
import unicodedata
from itertools import combinations
from typing import TYPE_CHECKING

from prowess.errors import Issue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.limits import Limits
    from prowess.skills.skill import Skill

_MIN_SHARED_WORDS = 0.8
"""The share of words that two descriptions have in common when they confuse: measured on real collections, pairs above
it are copies, translations of one template, or versions of each other."""
_MIN_WORDS = 6  # words: shorter descriptions share them by chance
_MIN_NAME_LENGTH = 4  # characters: shorter names are all alike
_WORD = re.compile(r"\w+")
_SEPARATORS = re.compile(r"[-_. ]+")


def similar_issues(skills: Sequence[Skill], limits: Limits) -> Iterator[Issue]:
    """What collides or confuses among the skills; at most ``limits.max_compared_skills`` of them are compared."""
    compared = skills[: limits.max_compared_skills]
    yield from _find_duplicate_names(compared)
    yield from _find_confusing_names(compared)
    yield from _find_similar_descriptions(compared)


def _find_duplicate_names(skills: Sequence[Skill]) -> Iterator[Issue]:
    first: dict[str, Skill] = {}
    for skill in skills:
        other = first.setdefault(skill.name, skill)
        if other is not skill:
            yield _make_issue(skill, "duplicate-name", "name", f"{skill.name!r} is also the name of {other.location}")


def _find_confusing_names(skills: Sequence[Skill]) -> Iterator[Issue]:
    """Names that differ in case, in hyphens, in a plural, or in one letter."""
    seen: dict[str, Skill] = {}
    for skill in skills:
        keys = _make_variants(skill.name)
        other = next((seen[key] for key in keys if key in seen and _is_confusing(seen[key].name, skill.name)), None)
        if other is not None:
            yield _make_issue(
                skill, "confusing-name", "name", f"{skill.name!r} is easily taken for {other.name!r} ({other.location})"
            )
        for key in keys:
            seen.setdefault(key, skill)


def _make_variants(name: str) -> list[str]:
    """The name without what people overlook, and the same without each of its characters."""
    bare = _SEPARATORS.sub("", unicodedata.normalize("NFKC", name).casefold())
    if len(bare) < _MIN_NAME_LENGTH:
        return [bare]
    return [bare, *dict.fromkeys(bare[:at] + bare[at + 1 :] for at in range(len(bare)))]


def _is_confusing(one: str, other: str) -> bool:
    """Names that differ only in a number are a series, not a mistake."""
    digits = str.maketrans("", "", "0123456789")
    return one != other and (one.translate(digits) != other.translate(digits) or one.casefold() == other.casefold())


def _find_similar_descriptions(skills: Sequence[Skill]) -> Iterator[Issue]:
    words = [(skill, frozenset(_WORD.findall(skill.description.casefold()))) for skill in skills]
    told = [(skill, found) for skill, found in words if len(found) >= _MIN_WORDS]
    for (one, ours), (other, theirs) in combinations(told, 2):
        if min(len(ours), len(theirs)) < _MIN_SHARED_WORDS * max(len(ours), len(theirs)):
            continue
        shared = len(ours & theirs)
        if shared < _MIN_SHARED_WORDS * (len(ours) + len(theirs) - shared) or one.name == other.name:
            continue
        same = " ".join(one.description.split()) == " ".join(other.description.split())
        code = "duplicate-description" if same else "confusing-description"
        what = "is the same as that" if same else "says nearly the same as that"
        yield _make_issue(other, code, "description", f"{what} of {one.name!r} ({one.location})")


def _make_issue(skill: Skill, code: str, field: str, message: str) -> Issue:
    return Issue(code, field, message, skill.location, skill.frontmatter.lines.get(field, 1), "warning")

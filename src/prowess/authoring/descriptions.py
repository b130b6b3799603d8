"""Descriptions that do not help a model to choose: those that say nothing, and those that do not say when."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import Issue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.skills.skill import Skill

_MIN_WORDS = 3
_PLACEHOLDER_TEXT = re.compile(r"\W*(?:todo|tbd|fixme|xxx|lorem ipsum|placeholder)\b", re.IGNORECASE)
_EMPTY_WORDS = frozenset(("a", "an", "the", "this", "that", "is", "it", "my", "our", "new", "agent", "skill", "skills"))
_WHEN = re.compile(
    r"\b(?:when|whenever|while|if|before|after|once|during|for|triggers?|triggered|invoke"
    r"|use (?:this|it|to|proactively)|used (?:to|by)|asks?|asked|needs?|wants?|mentions?|requests?)\b",
    re.IGNORECASE,
)
_ENGLISH = re.compile(r"[\x00-\x7f\u2010-\u2bff\ufe0f\U0001f000-\U0001faff]*")
"""Text without letters beyond English ones; which words say "when" is known in no other language here."""


def description_issues(skill: Skill) -> Iterator[Issue]:
    """A warning about a description that says nothing, or a note about one that does not say when to use the skill."""
    text = skill.description
    if not _ENGLISH.fullmatch(text):
        return
    line = skill.peek().lines.get("description", 1)
    if _is_vague(text):
        message = "says nothing about what the skill does"
        yield Issue("vague-description", "description", message, skill.location, line, "warning")
    elif not _WHEN.search(text):
        message = "does not say when to use the skill"
        yield Issue("description-without-when", "description", message, skill.location, line, "info")


def _is_vague(text: str) -> bool:
    words = re.findall(r"[a-z0-9']+", text.lower())
    meant = [word for word in words if word not in _EMPTY_WORDS]
    return _PLACEHOLDER_TEXT.match(text) is not None or len(words) < _MIN_WORDS or not meant

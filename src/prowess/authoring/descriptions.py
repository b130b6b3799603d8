"""Warnings about descriptions that do not help a model to choose: they say nothing, or not when to use the skill."""

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
"""Text without letters beyond English ones. The words that say "when" are known here in English only."""


def description_issues(skill: Skill) -> Iterator[Issue]:
    """Yield a warning about a description that says nothing, or a note about one that does not say when to use it."""
    text, front = skill.description, skill.peek()
    is_from_body = front.raw and "description" not in front.lines  # what the author has to write is reported already
    if is_from_body or not _ENGLISH.fullmatch(text):
        return
    line = front.lines.get("description", 1)
    if _is_vague(text):
        message = "says nothing about what the skill does"
        yield Issue("vague-description", "description", message, skill.location, line, "warning")
    elif not _WHEN.search(text):
        message = "does not say when to use the skill"
        yield Issue("description-without-when", "description", message, skill.location, line, "info")


def _is_vague(text: str) -> bool:
    words = re.findall(r"[a-z0-9']+", text.lower())
    is_empty = all(word in _EMPTY_WORDS for word in words)
    return _PLACEHOLDER_TEXT.match(text) is not None or len(words) < _MIN_WORDS or is_empty

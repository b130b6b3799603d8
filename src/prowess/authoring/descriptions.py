"""Warnings about heads that do not help to choose: they say nothing, not when to use the skill, or far too much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from prowess.errors import Issue
from prowess.search.terms import USUAL_HEAD_REACH, USUAL_HEAD_WORDS, find_words, list_tags, measure_reach
from prowess.skills.search_library import count_label_chars, make_head_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prowess.limits import Limits
    from prowess.skills.skill import Skill

DESCRIPTION_TEMPLATE = (
    "Says what {name} does, in one sentence. Use when somebody asks for it, in the words that they would use."
)
"""The description of a new skill, until its author replaces it."""
PLACEHOLDER_MESSAGE = "is what a new skill says, not what this one does"
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
    begin, _, end = DESCRIPTION_TEMPLATE.partition("{name}")
    if text.startswith(begin) and text.endswith(end):
        yield Issue("placeholder-text", "description", PLACEHOLDER_MESSAGE, skill.location, line, "warning")
    elif _is_vague(text):
        message = "says nothing about what the skill does"
        yield Issue("vague-description", "description", message, skill.location, line, "warning")
    elif not _WHEN.search(text):
        message = "does not say when to use the skill"
        yield Issue("description-without-when", "description", message, skill.location, line, "info")


def keyword_issues(skill: Skill, limits: Limits) -> Iterator[Issue]:
    """Yield a warning for what a search leaves out of a skill, or counts for less, because there is too much of it."""
    front = skill.peek()
    tags, most_tags = len(list_tags(front)), limits.max_indexed_tags
    chars, most_chars = count_label_chars(front, limits), limits.max_indexed_description_chars
    words = find_words(make_head_text(skill).make_index_head())
    messages: list[tuple[str, str]] = []
    if tags > most_tags:
        messages.append(("tags", f"has {tags:,} tags; a search looks at the first {most_tags}"))
    if chars > most_chars:
        what = "the tags, triggers and keywords together have"
        messages.append(("tags", f"{what} {chars:,} characters; a search looks at the first {most_chars:,}"))
    if len(words) > USUAL_HEAD_WORDS:
        what = f"has {len(words):,} different words, with its tags and keywords"
        messages.append(("description", f"{what}; beyond {USUAL_HEAD_WORDS} each of them counts for less in a search"))
    elif measure_reach(words) > USUAL_HEAD_REACH:
        what = "has, with its tags and keywords, many words that requests of every kind have"
        messages.append(("description", f"{what}; each of them counts for less in a search"))
    for field, message in messages:
        line = front.lines.get(field, front.lines.get("metadata", 1))
        yield Issue("too-many-keywords", field, message, skill.location, line, "warning")


def _is_vague(text: str) -> bool:
    words = re.findall(r"[a-z0-9']+", text.lower())
    is_empty = all(word in _EMPTY_WORDS for word in words)
    return _PLACEHOLDER_TEXT.match(text) is not None or len(words) < _MIN_WORDS or is_empty

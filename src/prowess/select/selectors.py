"""Selectors: what narrows the skills that are shown for a query, by tag, by words, or one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prowess.arguments import check_count, check_method, check_texts
from prowess.search.texts import tags_of
from prowess.select.candidates import CandidateCache

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable, Sequence

    from prowess.skills.skill import Skill

DEFAULT_LIMIT = 20
"""How many skills ``LexicalSelector`` shows unless it is told otherwise."""


class SkillQuery(str):
    """What a selector is asked: the text of the request, which it may also take apart as ``text`` and ``kind``."""

    __slots__ = ()
    kind = "skill"
    """What the candidates are. Hosts may ask the same selectors about tools of their own."""

    @property
    def text(self) -> str:
        """The request as a plain string."""
        return str(self)


class Selector(Protocol):
    """Chooses which of the candidates are worth showing for a query, by name; may be asynchronous.

    With ``strict = True`` it is a filter: it is asked without a query too, and after an empty answer nothing is shown.
    Otherwise it only narrows: when it fails or answers with nothing, everything is shown. With ``ordered = True`` the
    listing has the order of the answer, otherwise that of the names.
    """

    def select(self, query: SkillQuery, candidates: Sequence[Skill]) -> Iterable[str] | Awaitable[Iterable[str]]:
        """Return the names to show; a selector that takes a plain ``str`` will do."""
        ...


class ModelDrivenSelector:
    """Shows everything, in the order given: the model decides."""

    strict = False

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:  # noqa: ARG002 - the protocol's signature
        """Return every name."""
        return [skill.name for skill in candidates]


class TagSelector:
    """Shows the skills that have at least one of the tags, in ``tags:`` or ``metadata.tags``; case counts.

    Of a skill with more than ``Limits.max_indexed_tags`` tags, only the first ones count.
    """

    strict = True

    def __init__(self, tags: Iterable[str]) -> None:
        self.tags = tuple(dict.fromkeys(tag.strip() for tag in check_texts(tags, "tags") if tag.strip()))

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:  # noqa: ARG002 - the protocol's signature
        """Return the names of the skills that have one of the tags; none when the selector has no tags."""
        wanted = set(self.tags)
        return [skill.name for skill in candidates if wanted.intersection(tags_of(skill, skill.limits))]


class LexicalSelector:
    """Shows the skills whose words fit the query best. Meaning does not count, also where it is prepared."""

    strict = False

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        check_count(limit, "limit")
        self.limit = limit
        self._plain_lists = CandidateCache()

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return at most ``limit`` names, the best first."""
        hits = self._plain_lists.get_candidates(candidates).rank(query, self.limit, semantic=False)
        return [hit.name for hit in hits]


class SelectorChain:
    """Selectors one after the other, each over what the one before has left: ``SelectorChain(tags, lexical)``."""

    def __init__(self, *selectors: Selector) -> None:
        for index, selector in enumerate(selectors):
            check_method(selector, f"selectors[{index}]", "select", "pass a prowess.Selector")
        self.selectors = selectors

    def select(self, query: str, candidates: Sequence[Skill]) -> list[str]:
        """Return the names that are left at the end; a session asks the selectors of the chain one by one."""
        from prowess.select.ask_selector import ask_selector  # ask_selector imports this module

        return [skill.name for skill in ask_selector(self, query, candidates)]

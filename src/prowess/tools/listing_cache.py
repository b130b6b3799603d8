"""The cache of prompts and tool lists, which all sessions over one catalogue share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from prowess.conversation.moment import CatalogCache

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from prowess.conversation.session import Session
    from prowess.select.budget import BudgetReport
    from prowess.tools.definitions import ToolDefinition

T = TypeVar("T")


class PromptListing(NamedTuple):
    """A prompt, the report of its listing, and the part of the budget that was left for the listing."""

    text: str
    report: BudgetReport
    budget: int | None = None

    def count_tokens(self) -> int:
        """Return the tokens of the prompt, plus those of a listing that stands in a tool's description instead."""
        in_description = 0 if self.report.text in self.text else self.report.tokens
        return self.report.count(self.text) + in_description


class ListingCache(Generic[T]):
    """Keeps texts that were made from catalogues, by everything else that they depend on.

    All sessions share it: 10,000 conversations over one catalogue make their prompt once. Each catalogue keeps the
    ``max_listings`` that were used last.
    """

    def __init__(self) -> None:
        self._cache: CatalogCache[tuple[T]] = CatalogCache()

    def find(self, session: Session, key: Hashable) -> tuple[T] | None:
        """Return what is kept for a session in its current state, in a tuple; ``None`` where nothing is."""
        moment = session.moment()
        return self._cache.find(moment.catalog, (key, moment.listing_key))

    def get_or_make(self, session: Session, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` returns for a session in its current state, kept from an earlier call if possible."""
        moment = session.moment()
        full_key = (key, moment.listing_key)
        kept = self._cache.find(moment.catalog, full_key)
        if kept is not None:
            return kept[0]
        made = make()  # outside of the lock, since it may call code of the host
        # A race: another thread may have changed the session meanwhile, and then the text mixes two states.
        after = session.moment()
        if after.catalog is moment.catalog and after.listing_key == full_key[1]:
            self._cache.store(moment.catalog, full_key, (made,), session.limits.max_listings)
        return made


PROMPT_CACHE: ListingCache[PromptListing] = ListingCache()
WHOLE_CACHE: ListingCache[PromptListing | None] = ListingCache()
"""Prompts in which nothing is shortened; ``None`` for those that do not fit their budget."""
TOOL_CACHE: ListingCache[tuple[ToolDefinition, ...]] = ListingCache()

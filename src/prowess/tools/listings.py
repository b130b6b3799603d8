"""Prompts and lists of tools that were made already, kept for as long as their catalogue and shared by its sessions."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from prowess.runtime.session import Session
    from prowess.select.budget import BudgetReport
    from prowess.skills.catalog import Catalog
    from prowess.tools.definitions import ToolDefinition

T = TypeVar("T")


class PromptListing(NamedTuple):
    """A prompt, the report of its listing, and what of the budget was left for that listing."""

    text: str
    report: BudgetReport
    budget: int | None = None

    def count_tokens(self) -> int:
        """What the prompt costs, with the listing where that stands in the description of a tool instead."""
        elsewhere = 0 if self.report.text in self.text else self.report.tokens
        return self.report.count(self.text) + elsewhere


class ListingCache(Generic[T]):
    """What was made of catalogues, by everything else that it depends on; of each catalogue at most so many.

    Shared by all sessions: 10,000 conversations over one catalogue make their prompt once. A catalogue that nobody
    uses any more takes what was made of it along.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_catalog: WeakKeyDictionary[Catalog, OrderedDict[Hashable, T]] = WeakKeyDictionary()

    def get_or_make(self, session: Session, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` gives for a session in its state of now; made only if it was not before."""
        revision = session.revision  # before anything else: what is kept must have been made in one state
        catalog, whole = session.catalog, (key, session.listing_key())
        with self._lock:
            kept = self._by_catalog.get(catalog)
            if kept is not None and whole in kept:
                kept.move_to_end(whole)
                return kept[whole]
        made = make()
        if session.revision == revision and session.listing_key() == whole[1]:
            self._store(catalog, whole, made, session.limits.max_listings)
        return made

    def _store(self, catalog: Catalog, key: Hashable, made: T, most: int) -> None:
        with self._lock:
            kept = self._by_catalog.setdefault(catalog, OrderedDict())
            kept[key] = made
            while len(kept) > most:
                kept.popitem(last=False)


PROMPT_CACHE: ListingCache[PromptListing] = ListingCache()
TOOL_CACHE: ListingCache[tuple[ToolDefinition, ...]] = ListingCache()

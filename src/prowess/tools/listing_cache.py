"""The cache of prompts and tool lists, which all sessions over one catalogue share."""

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
    ``max_listings`` that were used last. What was made from a catalogue goes with it, as the references are weak.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_catalog: WeakKeyDictionary[Catalog, OrderedDict[Hashable, T]] = WeakKeyDictionary()

    def get_or_make(self, session: Session, key: Hashable, make: Callable[[], T]) -> T:
        """Return what ``make`` returns for a session in its current state, kept from an earlier call if possible."""
        revision = session.revision  # read first: see below
        catalog, full_key = session.catalog, (key, session.listing_key())
        with self._lock:
            entries = self._by_catalog.get(catalog)
            if entries is not None and full_key in entries:
                entries.move_to_end(full_key)
                return entries[full_key]
        made = make()  # outside of the lock, since it may call code of the host
        # A race: another thread may have changed the session meanwhile, and then the text mixes two states.
        if session.revision == revision and session.listing_key() == full_key[1]:
            self._store(catalog, full_key, made, session.limits.max_listings)
        return made

    def _store(self, catalog: Catalog, key: Hashable, made: T, limit: int) -> None:
        with self._lock:
            entries = self._by_catalog.setdefault(catalog, OrderedDict())
            entries[key] = made
            while len(entries) > limit:
                entries.popitem(last=False)


PROMPT_CACHE: ListingCache[PromptListing] = ListingCache()
TOOL_CACHE: ListingCache[tuple[ToolDefinition, ...]] = ListingCache()

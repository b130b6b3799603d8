"""A cache of what was made from catalogues, which all sessions over one catalogue share."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Hashable

    from prowess.skills.catalog import Catalog

T = TypeVar("T")


class CatalogCache(Generic[T]):
    """Keeps values that were made from catalogues, by everything else that they depend on.

    What was made from a catalogue goes with it, as the references are weak; so no value may refer to its catalogue.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_catalog: WeakKeyDictionary[Catalog, OrderedDict[Hashable, T]] = WeakKeyDictionary()

    def find(self, catalog: Catalog, key: Hashable) -> tuple[T] | None:
        """Return the value for a catalogue and a key, in a tuple since it may be ``None``; ``None`` without one."""
        with self._lock:
            values = self._by_catalog.get(catalog)
            if values is None or key not in values:
                return None
            values.move_to_end(key)
            return (values[key],)

    def store(self, catalog: Catalog, key: Hashable, value: T, limit: int) -> None:
        """Keep a value. Each catalogue keeps the ``limit`` values that were used last."""
        with self._lock:
            values = self._by_catalog.setdefault(catalog, OrderedDict())
            values[key] = value
            while len(values) > limit:
                values.popitem(last=False)

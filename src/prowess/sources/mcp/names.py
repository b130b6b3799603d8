"""The names that skills of one MCP server go by: each address keeps its name for as long as the server lists it."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.sources.mcp.entry import McpEntry


class McpNames:
    """``label:name`` for each address; where two addresses have one name, ``-2``, ``-3`` tell them apart.

    Known are the addresses of the last listing, and those that the caller asked for one by one.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._known: dict[str, str] = {}
        self._requested: set[str] = set()
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._lock = Lock()

    def base_name(self, entry: McpEntry) -> str:
        """The name of the skill if no other had it."""
        return f"{self._label}:{entry.name}"

    def name_listed(self, entries: Sequence[McpEntry]) -> dict[str, str]:
        """The name of each skill of a new listing, by address."""
        with self._lock:
            stay = self._requested.union(entry.uri for entry in entries)
            self._known = {uri: name for uri, name in self._known.items() if uri in stay}
            self._taken = set(self._known.values())
            self._numbers.clear()
            return {entry.uri: self._name_entry(entry) for entry in entries}

    def name_requested(self, entry: McpEntry) -> str:
        """The name of a skill that was asked for by its address."""
        with self._lock:
            self._requested.add(entry.uri)
            return self._name_entry(entry)

    def _name_entry(self, entry: McpEntry) -> str:
        known = self._known.get(entry.uri)
        if known is not None:
            return known
        plain = name = self.base_name(entry)
        number = self._numbers.get(plain, 2)
        while name in self._taken:
            name, number = f"{plain}-{number}", number + 1
        self._numbers[plain] = number
        self._taken.add(name)
        self._known[entry.uri] = name
        return name

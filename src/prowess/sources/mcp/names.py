"""The names of the skills of one MCP server. A skill keeps its name for as long as the server lists its address."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.sources.mcp.entry import McpEntry


class McpNames:
    """Gives each address the name ``label:name``; where two addresses have one name, ``-2``, ``-3`` tell them apart.

    It remembers the addresses of the last listing, and those that the caller asked for one by one. Otherwise a server
    could hand the name of one skill to another by listing them in another order.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._known: dict[str, str] = {}
        self._requested: set[str] = set()
        self._taken: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._lock = Lock()

    def base_name(self, entry: McpEntry) -> str:
        """Return the name that a skill has when no other skill has it."""
        return f"{self._label}:{entry.name}"

    def name_all(self, entries: Sequence[McpEntry]) -> dict[str, str]:
        """Return the name of each skill of a new listing, by address."""
        with self._lock:
            remaining = self._requested.union(entry.uri for entry in entries)
            self._known = {uri: name for uri, name in self._known.items() if uri in remaining}
            self._taken = set(self._known.values())
            self._numbers.clear()  # names were given back, so numbers may be free again
            return {entry.uri: self._name_entry(entry) for entry in entries}

    def name_one(self, entry: McpEntry) -> str:
        """Return the name of a skill that the caller asked for by its address."""
        with self._lock:
            self._requested.add(entry.uri)
            return self._name_entry(entry)

    def _name_entry(self, entry: McpEntry) -> str:
        known = self._known.get(entry.uri)
        if known is not None:
            return known
        base = name = self.base_name(entry)
        number = self._numbers.get(base, 2)  # where the last search ended: thousands of equal names stay fast
        while name in self._taken:
            name, number = f"{base}-{number}", number + 1
        self._numbers[base] = number
        self._taken.add(name)
        self._known[entry.uri] = name
        return name

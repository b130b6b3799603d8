"""Skills that came while a client was connected, told once to its model in the answer to a call.

Claude Code and Codex are told that the tools have changed, as every client is, and show their model the listing of
before for as long as the conversation lasts (tests/clients measures it). What a tool answers is the one text that
reaches such a model later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prowess.mcp.listing import write_arrivals

if TYPE_CHECKING:
    from prowess.library.catalog import Catalog
    from prowess.mcp.options import ServeOptions


class Arrivals:
    """The new skills that the one client of a server has not been told of yet."""

    def __init__(self, options: ServeOptions) -> None:
        self._options = options
        self._known: set[str] = set()
        """The names of every skill that was there at some time: one that is written anew is no new one."""
        self._untold: set[str] = set()

    def note_change(self, before: Catalog, after: Catalog) -> None:
        """Take note of what is new in a catalogue that replaces another."""
        # By names alone: this runs between requests, and to ask each of 10,000 skills would parse its head.
        self._known.update(before.names)
        self._untold.update(name for name in after.names if name not in self._known)
        self._known.update(after.names)

    def write_news(self, catalog: Catalog, called: object) -> str:
        """The new skills as a listing, each only once, and ``""`` without any; ``called`` is the one just asked for."""
        untold, self._untold = sorted(self._untold), set()
        skills = (catalog.get(name) for name in untold if name != called)
        return write_arrivals([skill for skill in skills if skill is not None and skill.model_invocable], self._options)

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
        self._known |= _find_names(before)
        self._untold |= _find_names(after) - self._known
        self._known |= self._untold

    def write_news(self, catalog: Catalog, called: object) -> str:
        """The new skills as a listing, each only once, and ``""`` without any; ``called`` is the one just asked for."""
        untold, self._untold = sorted(self._untold - {called}), set()
        skills = [skill for name in untold if (skill := catalog.get(name)) is not None]
        return write_arrivals(skills, self._options)


def _find_names(catalog: Catalog) -> set[str]:
    """The names that a model is shown."""
    return {skill.name for skill in catalog if skill.model_invocable}

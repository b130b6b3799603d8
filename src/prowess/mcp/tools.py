"""Skills for clients that only know tools: the listing in the instructions, and the tools to load and read them.

A connection has no state here: each call stands for itself, so nothing is active and nothing needs to be put aside.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from prowess.library.catalog import Catalog
from prowess.mcp.uris import uri_of
from prowess.runtime.session import Session
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.library.skill import Skill
    from prowess.mcp.shelf import Shelf
    from prowess.tools.definitions import ToolResult

_LEFT_OUT = frozenset(("unload_skill",))
LATER = (
    "This server has skills: instructions for particular tasks. Call search_skills with a few words about a task, or "
    "load_skill with the name of a skill, before you begin."
)


class ModelTools:
    """The tools and the listing for one shelf. ``show_folders``: the client sees the files of this machine."""

    def __init__(self, shelf: Shelf, *, budget: int | None, show_folders: bool) -> None:
        self._shelf = shelf
        self._budget = budget
        self._show_folders = show_folders

    @cached_property
    def _whole(self) -> Toolset:
        return Toolset(Session(self._shelf.catalog), budget=self._budget)

    @cached_property
    def instructions(self) -> str:
        """The listing, within the budget."""
        return self._whole.prompt()

    @cached_property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools to offer."""
        return [cast("dict[str, Any]", tool.to_mcp()) for tool in self._whole.tools() if tool.name not in _LEFT_OUT]

    def call(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call; what goes wrong is an answer too."""
        if name in _LEFT_OUT:
            known = ", ".join(tool["name"] for tool in self.definitions)
            return _answer(f"unknown tool: {name}; known: {known}", is_error=True)
        wanted = arguments.get("name")
        skill = self._shelf.catalog.get(wanted) if isinstance(wanted, str) else None
        toolset = self._whole if skill is None else Toolset(self.session(skill), budget=self._budget)
        result = toolset.call(name, arguments)
        link = [self._link(skill, result)] if skill is not None and result.data.get("type") == "binary" else []
        return _answer(result.content, *link, is_error=result.is_error)

    def session(self, skill: Skill) -> Session:
        """A session with that skill alone: calls do not depend on how many others there are."""
        if self._show_folders:
            return Session(Catalog([skill]))
        shown = skill.known_as(uri_of(self._shelf.path_of(skill)))
        return Session(Catalog([shown]), base_dir=os.sep)

    def _link(self, skill: Skill, result: ToolResult) -> dict[str, Any]:
        path = str(result.data["path"])
        return {"type": "resource_link", "uri": uri_of(self._shelf.path_of(skill), path), "name": path}


def _answer(text: str, *links: dict[str, Any], is_error: bool) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}, *links], "isError": is_error}

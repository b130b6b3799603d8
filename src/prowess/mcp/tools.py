"""Skills for clients that only know tools: the listing, and the tools to load, read and find skills.

A connection has no state here: each call stands for itself, so nothing is active and nothing needs to be put aside.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from prowess.escapes import escape_line
from prowess.mcp.handlers import ensure_current
from prowess.mcp.listing_text import write_listing
from prowess.mcp.uris import make_uri
from prowess.runtime.session import Session
from prowess.skills.catalog import Catalog
from prowess.spec.hidden_characters import to_one_line
from prowess.spec.markup import neutralize_tags
from prowess.tools.content import render_load_result, render_preload_element
from prowess.tools.dialects.prowess import DIALECT
from prowess.tools.toolset import Toolset
from prowess.tools.view import ToolsetOptions, View, may_have_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.errors import Issue
    from prowess.mcp.listing_text import ListingTexts
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition, ToolResult

_LOAD_TOOL = "load_skill"
_CALLABLE_TOOLS = frozenset((_LOAD_TOOL, "read_skill_file", "search_skills"))
"""The tools that a call may name. Search is answered also where it is not offered, since a client may have been told of
it before a change."""
_MAX_NAME_CHARS = 128


class ModelTools:
    """The tools and the listing for one shelf."""

    def __init__(self, shelf: ServedSkills, options: ServeOptions) -> None:
        self._served = shelf
        self._options = options

    @cached_property
    def _session(self) -> Session:
        return Session(self._served.catalog)

    @cached_property
    def _toolset(self) -> Toolset:
        return Toolset(self._session)

    @cached_property
    def listed_skills(self) -> tuple[Skill, ...]:
        """The skills that models are told of, by name."""
        return self._session.eligible()

    @cached_property
    def _texts(self) -> ListingTexts:
        return write_listing(self.listed_skills, self._options)

    @cached_property
    def instructions(self) -> str:
        """What a model is told at first: the listing or where it is, and what is preloaded, which is never cut."""
        preloads = self._session.preloads()
        preloaded = (render_preload_element(replace(one, skill=self.with_shown_folder(one.skill))) for one in preloads)
        return "\n\n".join(block for block in (self._texts.instructions, *preloaded) if block)

    @cached_property
    def definitions(self) -> list[dict[str, Any]]:
        """The tools to offer."""
        view = View(
            self._session, ToolsetOptions(budget=0), lambda: self.listed_skills, lambda: self._texts.needs_search
        )
        tools = (
            tool.describe(view) for tool in DIALECT.tools if tool.name in _CALLABLE_TOOLS and tool.is_offered(view)
        )
        return [cast("dict[str, Any]", self._with_listing(tool).to_mcp()) for tool in tools]

    def _with_listing(self, tool: ToolDefinition) -> ToolDefinition:
        """A tool without the names of skills as values of a parameter; the one that loads, with the listing."""
        properties = {
            key: {word: said for word, said in value.items() if word != "enum"}
            for key, value in tool.parameters["properties"].items()
        }
        listing = self._texts.description if tool.name == _LOAD_TOOL else ""
        return replace(
            tool,
            description=listing or tool.description,
            parameters={**tool.parameters, "properties": properties},
        )

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call; what goes wrong is an answer too."""
        if name not in _CALLABLE_TOOLS:
            known = ", ".join(tool["name"] for tool in self.definitions)
            said = f"known: {known}" if known else "none is offered"
            return _make_result(f"unknown tool: {to_one_line(name[:_MAX_NAME_CHARS])}; {said}", is_error=True)
        wanted = arguments.get("name")
        skill = self._served.catalog.get(wanted) if isinstance(wanted, str) else None
        if skill is None and isinstance(wanted, str) and (failure := self._served.find_failure(wanted)) is not None:
            return _make_result(self._describe_failure(wanted, failure), is_error=True)
        # Of a skill that models do not see the answer is that of an unknown one, which names those that there are.
        toolset = Toolset(self.open_session(skill)) if skill and skill.model_invocable else self._toolset
        result = toolset.call(name, arguments)
        answer = _make_result(result.content, *self._make_links(skill, result), is_error=result.is_error)
        return ensure_current(skill, answer)

    def _describe_failure(self, name: str, failure: Issue) -> str:
        """That a skill is there and cannot be loaded, with the finding and what to do about it."""
        where = f" in {failure.path}{f':{failure.line}' if failure.line else ''}" if self._options.show_folders else ""
        field = f"{failure.field}: " if failure.field else ""
        hint = f". {failure.hint[:1].upper()}{failure.hint[1:]}." if failure.hint else "."
        said = escape_line(f"skill {name[:_MAX_NAME_CHARS]!r} cannot be loaded: {field}{failure.message}{where}{hint}")
        return neutralize_tags(said)

    def open_session(self, skill: Skill) -> Session:
        """A session with that skill alone: calls do not depend on how many others there are."""
        if self._options.show_folders:
            return Session(Catalog([skill]))
        return Session(Catalog([self.with_shown_folder(skill)]), base_dir=os.sep)

    def write_user_call(self, skill: Skill, arguments: str) -> str:
        """What the model receives when a person calls a skill: what loading gives, and how its files are read."""
        session = self.open_session(skill)
        content, _ = render_load_result(session.activate(skill.name), arguments or None, project=session.base_dir)
        how = self._describe_file_access(skill) if may_have_files(skill) else ""
        return f"Use the following skill.\n\n{content}{how}"

    def _describe_file_access(self, skill: Skill) -> str:
        if self._options.tools and skill.model_invocable:
            return "\n\nRead its files with the tool read_skill_file: give the skill's name and a path as listed."
        path = self._served.path_of(skill)
        return f"\n\nIts files are resources below {make_uri(path)}/." if path and self._options.extension else ""

    def with_shown_folder(self, skill: Skill) -> Skill:
        """A skill as clients are to know it: where folders are not shown, by its address, or ``.`` without one."""
        if self._options.show_folders or not skill.folder:
            return skill
        path = self._served.path_of(skill)
        return skill.with_shown_folder(make_uri(path) if path else ".")

    def _make_links(self, skill: Skill | None, result: ToolResult) -> list[dict[str, Any]]:
        """A link to the resource that a file which is no text can be read as, where it is one."""
        base = self._served.path_of(skill) if skill is not None else ""
        if not base or not self._options.extension or result.data.get("type") != "binary":
            return []
        path = str(result.data["path"])
        return [{"type": "resource_link", "uri": make_uri(base, path), "name": path}]


def _make_result(text: str, *links: dict[str, Any], is_error: bool) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}, *links], "isError": is_error}

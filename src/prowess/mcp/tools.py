"""Skills for MCP clients that know only tools: the listing, and the tools to load, read and find skills.

A connection has no state here. Each call stands for itself, so no skill is ever active and none needs to be unloaded.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from prowess.conversation.activation import make_activation, read_activation
from prowess.conversation.rendering import render_load_result, render_preload_element
from prowess.conversation.session import Session
from prowess.mcp.answers import Answer, answer_about_skill
from prowess.mcp.listing_text import write_listing
from prowess.mcp.served_skills import make_uri
from prowess.select.auto import ListingChoice
from prowess.text.escapes import escape_line
from prowess.text.hidden_characters import to_one_line
from prowess.text.markup import neutralize_tags
from prowess.tools.dialect import may_have_files
from prowess.tools.dialects.prowess import DIALECT, answer_about
from prowess.tools.options import ToolsetOptions
from prowess.tools.prompt import View
from prowess.tools.toolset import Toolset

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.errors import Issue
    from prowess.mcp.listing_text import ListingTexts
    from prowess.mcp.options import ServeOptions
    from prowess.mcp.served_skills import ServedSkills
    from prowess.skills.skill import Skill
    from prowess.tools.definitions import ToolDefinition, ToolResult

_LOAD_TOOL = "load_skill"
_SEARCH_TOOL = "search_skills"
_CALLABLE_TOOLS = frozenset((_LOAD_TOOL, "read_skill_file", _SEARCH_TOOL))
"""The tools that a call may name. A search is answered even when it is not offered, since a client may have been told
of it before a change."""
_MAX_NAME_CHARS = 128


class ModelTools:
    """The tools and the listing for one set of served skills; each part is made when it is first asked for."""

    def __init__(self, served: ServedSkills, options: ServeOptions) -> None:
        self._served = served
        self._options = options

    @cached_property
    def _session(self) -> Session:
        return Session(self._served.catalog)

    @cached_property
    def _toolset(self) -> Toolset:
        return Toolset(self._session)

    @cached_property
    def listed_skills(self) -> tuple[Skill, ...]:
        """The skills that models are shown, sorted by name."""
        return self._session.moment().eligible()

    @cached_property
    def _texts(self) -> ListingTexts:
        return write_listing(self.listed_skills, self._options)

    @cached_property
    def instructions(self) -> str:
        """The text in the answer to the handshake: the listing or where it is, then preloaded skills, never cut."""
        preloaded = (
            render_preload_element(replace(activation, skill=self.with_shown_folder(activation.skill)))
            for activation in map(make_activation, self._session.moment().active.values())
        )
        return "\n\n".join(block for block in (self._texts.instructions, *preloaded) if block)

    @cached_property
    def definitions(self) -> list[dict[str, Any]]:
        """The definitions of the tools to offer, as the protocol has them."""
        moment, is_cut = self._session.moment(), self._texts.needs_search
        view = View(self._session, ToolsetOptions(), moment, ListingChoice(), is_cut=is_cut)
        tools = (tool.define(view) for tool in DIALECT.tools if tool.name in _CALLABLE_TOOLS and tool.is_offered(view))
        return [cast("dict[str, Any]", self._with_listing(tool).to_mcp()) for tool in tools]

    def _with_listing(self, tool: ToolDefinition) -> ToolDefinition:
        """Return a tool without skill names as the values of a parameter; the loading tool gets the listing."""
        # Clients keep definitions for long: with such values a skill that came later could not be called.
        properties = {
            key: {keyword: value for keyword, value in schema.items() if keyword != "enum"}
            for key, schema in tool.parameters["properties"].items()
        }
        listing = self._texts.description if tool.name == _LOAD_TOOL else ""
        return replace(
            tool,
            description=listing or tool.description,
            parameters={**tool.parameters, "properties": properties},
        )

    def call_tool(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Return the answer to a call; what goes wrong is an answer too."""
        if name not in _CALLABLE_TOOLS:
            known = ", ".join(tool["name"] for tool in self.definitions)
            offered = f"known: {known}" if known else "none is offered"
            return Answer(
                _make_result(f"unknown tool: {to_one_line(name[:_MAX_NAME_CHARS])}; {offered}", is_error=True)
            )
        wanted = arguments.get("name")
        skill = self._served.catalog.get(wanted) if isinstance(wanted, str) else None
        if skill is None and isinstance(wanted, str) and (failure := self._served.find_failure(wanted)) is not None:
            return Answer(_make_result(self._describe_failure(wanted, failure), is_error=True))
        if skill is None or not skill.model_invocable or name == _SEARCH_TOOL:
            # A skill that models must not see gets the answer for an unknown one, which lists those that they may see.
            result = self._toolset.call(name, arguments)
        else:
            result = answer_about(self.with_shown_folder(skill), name, arguments, self._project)
        return answer_about_skill(
            skill, _make_result(result.content, *self._make_links(skill, result), is_error=result.is_error)
        )

    @property
    def _project(self) -> str:
        """The working folder as clients may know it: with hidden folders it is the root."""
        return os.getcwd() if self._options.show_folders else os.sep

    def _describe_failure(self, name: str, failure: Issue) -> str:
        """Return the message that a skill exists and cannot be loaded, with the reason and what to do about it."""
        where = f" in {failure.path}{f':{failure.line}' if failure.line else ''}" if self._options.show_folders else ""
        field = f"{failure.field}: " if failure.field else ""
        hint = f". {failure.hint[:1].upper()}{failure.hint[1:]}." if failure.hint else "."
        reason = f"{field}{failure.message}{where}{hint}"
        return neutralize_tags(escape_line(f"skill {name[:_MAX_NAME_CHARS]!r} cannot be loaded: {reason}"))

    def write_user_call(self, skill: Skill, arguments: str) -> str:
        """Return what the model receives when a person calls a skill: its instructions, and how to read its files."""
        activation = read_activation(self.with_shown_folder(skill))
        content, _ = render_load_result(activation, arguments or None, project=self._project)
        access = self._describe_file_access(skill) if may_have_files(skill) else ""
        return f"Use the following skill.\n\n{content}{access}"

    def _describe_file_access(self, skill: Skill) -> str:
        if self._options.tools and skill.model_invocable:
            return "\n\nRead its files with the tool read_skill_file: give the skill's name and a path as listed."
        path = self._served.path_of(skill)
        return f"\n\nIts files are resources below {make_uri(path)}/." if path and self._options.extension else ""

    def with_shown_folder(self, skill: Skill) -> Skill:
        """Return a skill as clients may know it: when folders are hidden, with its address as its folder, or ``.``."""
        if self._options.show_folders or not skill.folder:
            return skill
        path = self._served.path_of(skill)
        return skill.with_shown_folder(make_uri(path) if path else ".")

    def _make_links(self, skill: Skill | None, result: ToolResult) -> list[dict[str, Any]]:
        """Return a link to the resource of a binary file, when the extension serves that skill; else nothing."""
        base = self._served.path_of(skill) if skill is not None else ""
        if not base or not self._options.extension or result.data.get("type") != "binary":
            return []
        path = str(result.data["path"])
        return [{"type": "resource_link", "uri": make_uri(base, path), "name": path}]


def _make_result(text: str, *links: dict[str, Any], is_error: bool) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": text}, *links], "isError": is_error}

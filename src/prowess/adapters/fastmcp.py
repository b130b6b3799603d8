"""Skills inside your own FastMCP server: ``Skills().mount(FastMCP("mine"))``.

A client with a session (protocols before 2026-07-28) is one conversation. Later protocols have no sessions: a call is a
conversation of its own, unless ``find_key`` names one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prowess.adapters.core import refuse_second_skills, require_package

require_package("fastmcp", "fastmcp>=4.1")

from fastmcp.server.dependencies import get_context
from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import InputRequiredToolResult, Tool, ToolResult
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import PrivateAttr

from prowess.adapters.mounting import MCPClient, MountedSkills

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastmcp import Context, FastMCP

    from prowess.tools.definitions import ToolDefinition

    FindKey = Callable[[Context], str | None]


class Skills(MountedSkills):
    """Skills for the clients of a server of the package fastmcp."""

    def mount(self, server: FastMCP, *, find_key: FindKey | None = None) -> FastMCP:
        """Add the skill tools and the listing to a server; return the server.

        ``find_key``: returns the key of the conversation that a call belongs to, such as a name for the user whom the
        server authenticated, or ``None``, which makes the call a conversation of its own. What happens to a tool of the
        same name is the server's own rule (``on_duplicate``).
        """
        refuse_second_skills([self, *(each.skills for each in server.middleware if isinstance(each, SkillsMiddleware))])
        find_key = find_key or (lambda context: self.find_session_key(context.session))
        for tool in self.tools(find_key):
            server.add_tool(tool)
        server.add_middleware(SkillsMiddleware(self, find_key))
        return server

    def tools(self, find_key: FindKey | None = None) -> list[SkillTool]:
        """Return the skill tools as tools of FastMCP."""
        find_key = find_key or (lambda context: self.find_session_key(context.session))
        return [make_tool(self, definition, find_key) for definition in self.list_mounted_tools()]


class SkillTool(Tool):
    """One skill tool."""

    _skills: Skills = PrivateAttr()
    _find_key: FindKey = PrivateAttr()

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Return the result of a call, or the question that a person has to answer first."""
        context = get_context()
        key = self._find_key(context)
        state, request_id = context.request_state, context.request_id
        client = MCPClient(context.session, key, context.input_responses, state, request_id, context=context)
        result = await self._skills.answer_call(self.name, arguments, client=client)
        if isinstance(result, CallToolResult):
            return ToolResult.from_mcp_result(result)
        return InputRequiredToolResult(input_required=result)


def make_tool(skills: Skills, definition: ToolDefinition, find_key: FindKey) -> SkillTool:
    """Return a skill tool as a tool of FastMCP."""
    tool = SkillTool(
        name=definition.name,
        title=definition.title or None,
        description=definition.description,
        parameters=definition.to_json_schema()["parameters"],
        annotations=ToolAnnotations(read_only_hint=definition.read_only),
    )
    tool._skills, tool._find_key = skills, find_key  # noqa: SLF001 - pydantic takes no private fields when it makes one
    return tool


class SkillsMiddleware(Middleware):
    """Tells clients of the skills as they are now: in the instructions, and in the description of load_skill."""

    def __init__(self, skills: Skills, find_key: FindKey) -> None:
        self.skills = skills
        self._find_key = find_key

    async def on_initialize(self, context: Any, call_next: Any) -> Any:
        """Add the listing to the instructions, in the handshake of protocols before 2026-07-28."""
        return self._with_instructions(await call_next(context), context)

    async def on_discover(self, context: Any, call_next: Any) -> Any:
        """Add the listing to the instructions, in the protocol since 2026-07-28."""
        return self._with_instructions(await call_next(context), context)

    async def on_list_tools(self, context: Any, call_next: Any) -> Sequence[Tool]:
        """Bring the description of load_skill up to date."""
        client = context.fastmcp_context
        now = self.skills.list_client_tools(self.skills.find_scope_key(self._find_key, client), client)
        return [
            tool.model_copy(update={"description": now[tool.name].description}) if isinstance(tool, SkillTool) else tool
            for tool in await call_next(context)
            if not isinstance(tool, SkillTool) or tool.name in now
        ]

    def _with_instructions(self, result: Any, context: Any) -> Any:
        client = context.fastmcp_context
        if isinstance(result, dict):
            said = self.skills.add_instructions(
                result.get("instructions"), self.skills.find_scope_key(self._find_key, client), client
            )
            return {**result, "instructions": said}
        if result is None:
            return None
        said = self.skills.add_instructions(
            result.instructions, self.skills.find_scope_key(self._find_key, client), client
        )
        return result.model_copy(update={"instructions": said})

"""Skills inside your own MCP server: ``Skills().mount(MCPServer("mine"))``.

A client with a session (protocols before 2026-07-28) is one conversation. Later protocols have no sessions: a call is a
conversation of its own, unless ``find_key`` names one.
"""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

from prowess.adapters.core import refuse_second_skills, require_package

require_package("mcp_types", "mcp>=2.3")

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations

from prowess.adapters.mounting import MCPClient, MountedSkills

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

    from prowess.tools.definitions import ToolDefinition

    FindKey = Callable[[Context[Any, Any]], str | None]

_TYPES = {"string": str, "integer": int, "array": list[str]}
"""What the parameters of skill tools are in Python."""


class Skills(MountedSkills):
    """Skills for the clients of an ``MCPServer`` of the package mcp."""

    def mount(self, server: MCPServer[Any], *, find_key: FindKey | None = None) -> MCPServer[Any]:
        """Add the skill tools and the listing to a server; return the server.

        ``find_key``: returns the key of the conversation that a call belongs to, such as a name for the user whom the
        server authenticated, or ``None``, which makes the call a conversation of its own. Raises ``ValueError`` when
        the server has a tool of the same name as a skill tool.
        """
        definitions = self.list_mounted_tools()
        ours = (getattr(getattr(each, "func", None), "__self__", None) for each in server.middleware)
        refuse_second_skills([self, *ours])
        taken = {tool.name for tool in server._tool_manager.list_tools()}  # noqa: SLF001 - the public way is a coroutine
        if both := sorted(taken & {definition.name for definition in definitions}):
            raise ValueError(f"the server has a tool {both[0]!r} already; rename it before you mount skills")
        find_key = find_key or (lambda ctx: self.find_session_key(ctx.request_context.session))
        for definition in definitions:
            self._add_tool(server, definition, find_key)
        server.middleware.append(partial(self._tell_of_skills, server, find_key))
        return server

    def tools(self) -> list[dict[str, Any]]:
        """Return the skill tools in the shape of the protocol's ``tools/list``."""
        return [dict(definition.to_mcp()) for definition in self.list_mounted_tools()]

    def _add_tool(self, server: MCPServer[Any], definition: ToolDefinition, find_key: FindKey) -> None:
        async def run(ctx: Context[Any, Any], **arguments: Any) -> CallToolResult | InputRequiredResult:
            session = ctx.request_context.session
            state, context = ctx.request_state, ctx.request_context
            client = MCPClient(session, find_key(ctx), ctx.input_responses, state, ctx.request_id, context=context)
            given = {key: value for key, value in arguments.items() if value is not None}
            return await self.answer_call(definition.name, given, client=client)

        # MCPServer reads arguments by the signature of a function. Clients get the schema from _tell_of_skills.
        run.__signature__ = _make_signature(definition)  # type: ignore[attr-defined]
        server.add_tool(
            run,
            name=definition.name,
            title=definition.title or None,
            description=definition.description,
            annotations=ToolAnnotations(read_only_hint=definition.read_only),
            structured_output=False,
        )

    async def _tell_of_skills(
        self, server: MCPServer[Any], find_key: FindKey, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Tell a client of the skills as they are now: in the instructions, and in the description of load_skill."""
        result = await call_next(ctx)
        if not isinstance(result, dict):
            return result
        context = Context(request_context=ctx, mcp_server=server)
        if ctx.method in {"initialize", "server/discover"}:
            key = self.find_scope_key(find_key, context)
            return {**result, "instructions": self.add_instructions(result.get("instructions"), key, ctx)}
        if ctx.method == "tools/list":
            ours = {definition.name for definition in self.list_mounted_tools()}
            now = self.list_client_tools(self.find_scope_key(find_key, context), ctx)
            tools = [tool for tool in result["tools"] if tool["name"] not in ours or tool["name"] in now]
            return {**result, "tools": [_describe_tool(tool, now.get(tool["name"])) for tool in tools]}
        return result


def _describe_tool(tool: dict[str, Any], definition: ToolDefinition | None) -> dict[str, Any]:
    return tool if definition is None else {**tool, **definition.to_mcp()}


def _make_signature(definition: ToolDefinition) -> inspect.Signature:
    """Return the signature of a function that takes the parameters of a tool, and the context."""
    # None is required here: what a model forgets, the skill tool says in its own words.
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=_TYPES[schema["type"]], default=None)
        for name, schema in definition.parameters["properties"].items()
    ]
    context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=Context)
    return inspect.Signature([context, *parameters])

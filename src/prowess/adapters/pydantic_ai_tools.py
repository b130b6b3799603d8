"""Skill tools as Pydantic AI describes tools: their definitions, and arguments that nobody judges before the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool

if TYPE_CHECKING:
    from pydantic_ai.tools import RunContext
    from pydantic_ai.toolsets import AbstractToolset

    from prowess.tools.definitions import ToolDefinition as SkillTool

_UNPARSED = "\0unparsed"
"""The name of the only argument where a model's arguments are no JSON object: the text as it came."""
SKILL_TOOL_MARK = {"prowess": "skill-tool"}
"""The metadata by which a skill tool is known, whatever name it has in a run."""


def describe_tool(tool: SkillTool) -> ToolDefinition:
    """Return a skill tool as Pydantic AI describes one."""
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.to_json_schema()["parameters"],
        sequential=not tool.parallel,
        metadata=SKILL_TOOL_MARK,
    )


def is_skill_tool(tool: ToolDefinition) -> bool:
    """Return whether a tool of a run is a skill tool, whatever name it has there."""
    return (tool.metadata or {}).items() >= SKILL_TOOL_MARK.items()


def make_tool(toolset: AbstractToolset[Any], definition: ToolDefinition, ctx: RunContext[Any]) -> ToolsetTool[Any]:
    """Return a tool of a toolset that takes any arguments: whoever answers the call judges them."""
    return ToolsetTool(toolset=toolset, tool_def=definition, max_retries=ctx.max_retries, args_validator=AnyArguments())


def get_arguments(tool_args: dict[str, Any]) -> Any:
    """Return the arguments of a call as the model sent them, which ``AnyArguments`` let through."""
    return tool_args.get(_UNPARSED, tool_args)


class AnyArguments:
    """Lets every text and value through to the skill tool, which answers bad arguments with a result."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        """Return the text as the only argument; the conversation parses it."""
        return {_UNPARSED: input if isinstance(input, str) else bytes(input)}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:
        """Return the arguments as they are."""
        return input if isinstance(input, dict) else {_UNPARSED: input}

"""A program with the package mcp: what tools export goes into its types as it is."""

from mcp import types

import prowess


def listed(toolset: prowess.Toolset) -> types.ListToolsResult:
    """The answer to ``tools/list``."""
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool.to_mcp()) for tool in toolset.tools()])


def called(toolset: prowess.Toolset, name: str, arguments: dict[str, object]) -> types.CallToolResult:
    """The answer to ``tools/call``."""
    result = toolset.call(name, arguments)
    text = types.TextContent(type="text", text=result.content)
    return types.CallToolResult.model_validate({"content": [text], "isError": result.is_error})


def read_only(toolset: prowess.Toolset) -> list[str]:
    """What the shape holds, read back."""
    return [tool.to_mcp()["name"] for tool in toolset.tools() if tool.to_mcp()["annotations"]["readOnlyHint"]]

"""A program with the package mcp: what tools export goes into its types as it is."""

from mcp import types

import prowess


def listed(toolset: prowess.Toolset) -> types.ListToolsResult:
    """The answer to ``tools/list``."""
    return types.ListToolsResult(tools=[types.Tool.model_validate(tool.to_mcp()) for tool in toolset.tools()])


def called(toolset: prowess.Toolset, name: str, arguments: dict[str, object]) -> types.CallToolResult:
    """The answer to ``tools/call``."""
    return types.CallToolResult.model_validate(toolset.call(name, arguments).to_mcp())


def has_failed(toolset: prowess.Toolset, name: str) -> bool:
    """What the shape of a result holds, read back."""
    result = toolset.call(name).to_mcp()
    failed: bool = result["isError"]
    return failed and [block["type"] for block in result["content"]] == ["text"]


def read_only(toolset: prowess.Toolset) -> list[str]:
    """What the shape holds, read back."""
    return [tool.to_mcp()["name"] for tool in toolset.tools() if tool.to_mcp()["annotations"]["readOnlyHint"]]

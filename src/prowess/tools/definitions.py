"""A tool as a model is told of it, in the shapes that providers want, and what a call gives back."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.runtime.fork import PreparedFork
    from prowess.tools.shapes import AnthropicTool, JsonSchemaTool, McpTool, OpenAIResponsesTool, OpenAITool


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool: its name, what it does, its parameters as JSON Schema, and whether calls may run side by side."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    parallel: bool = True
    title: str = ""
    read_only: bool = True
    output: Mapping[str, Any] | None = None
    """What a result looks like, as JSON Schema, where it is JSON."""

    def to_json_schema(self) -> JsonSchemaTool:
        """Name, description and parameters."""
        return {"name": self.name, "description": self.description, "parameters": self._schema()}

    def to_openai(self) -> OpenAITool:
        """For the Chat Completions API."""
        return {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self._schema()},
        }

    def to_openai_responses(self) -> OpenAIResponsesTool:
        """For the Responses API; not strict, which it would otherwise be: some parameters may be left out."""
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self._schema(),
            "strict": False,
        }

    def to_anthropic(self) -> AnthropicTool:
        """For the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self._schema()}

    def to_mcp(self) -> McpTool:
        """For the Model Context Protocol's ``tools/list``."""
        shape: McpTool = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self._schema(),
            "annotations": {"readOnlyHint": self.read_only},
        }
        if self.title:
            shape["title"] = self.title
        if self.output:
            shape["outputSchema"] = deepcopy(dict(self.output))
        return shape

    def _schema(self) -> dict[str, Any]:
        return deepcopy(dict(self.parameters))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives: text for the model, whether it is an error, and the same as data for the host."""

    content: str
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    fork: PreparedFork | None = None
    """What the host is to run as a sub-agent, where it asked for that (``fork="host"``)."""


def text(description: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON Schema keywords
    """A string parameter."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def schema(properties: Mapping[str, Any], required: tuple[str, ...], *, closed: bool = False) -> dict[str, Any]:
    """An object of parameters; ``closed``: no others are allowed."""
    made: dict[str, Any] = {"type": "object", "properties": dict(properties), "required": list(required)}
    if closed:
        made["additionalProperties"] = False
    return made

"""A tool as a model is told of it, in the shapes that providers want, and what a call gives back."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from prowess.tools.media import find_media

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prowess.runtime.acting.trust_request import TrustRequest
    from prowess.runtime.fork import PreparedFork
    from prowess.tools.media import Media
    from prowess.tools.shapes import (
        AnthropicTool,
        AnthropicToolResult,
        JsonSchemaTool,
        McpResult,
        McpText,
        McpTool,
        OpenAIMessage,
        OpenAIResponsesOutput,
        OpenAIResponsesTool,
        OpenAITool,
        OpenAIToolMessage,
    )


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
        return {"name": self.name, "description": self.description, "parameters": self._copy_schema()}

    def to_openai(self, *, strict: bool = False) -> OpenAITool:
        """For the Chat Completions API; ``strict``: with a schema that the model is held to."""
        function = {
            "name": self.name,
            "description": self.description,
            "parameters": self._make_parameters(strict=strict),
        }
        return cast(
            "OpenAITool", {"type": "function", "function": {**function, **({"strict": True} if strict else {})}}
        )

    def to_openai_responses(self, *, strict: bool = False) -> OpenAIResponsesTool:
        """For the Responses API; ``strict``: with a schema that the model is held to.

        Without it, ``strict`` is ``False`` and not left out: the API takes schemas for strict ones that do not say so.
        """
        return {
            "type": "function",
            "name": self.name,
            "description": self.description,
            "parameters": self._make_parameters(strict=strict),
            "strict": strict,
        }

    def _make_parameters(self, *, strict: bool) -> dict[str, Any]:
        return make_strict(self._copy_schema()) if strict else self._copy_schema()

    def to_anthropic(self) -> AnthropicTool:
        """For the Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self._copy_schema()}

    def to_mcp(self) -> McpTool:
        """For the Model Context Protocol's ``tools/list``."""
        shape: McpTool = {
            "name": self.name,
            "description": self.description,
            "inputSchema": self._copy_schema(),
            "annotations": {"readOnlyHint": self.read_only},
        }
        if self.title:
            shape["title"] = self.title
        if self.output:
            shape["outputSchema"] = deepcopy(dict(self.output))
        return shape

    def _copy_schema(self) -> dict[str, Any]:
        return deepcopy(dict(self.parameters))


def copy_definition(tool: ToolDefinition) -> ToolDefinition:
    """The same tool with schemas of its own, which its holder may change."""
    output = None if tool.output is None else deepcopy(dict(tool.output))
    return replace(tool, parameters=deepcopy(dict(tool.parameters)), output=output)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives: text for the model, whether it is an error, and the same as data for the host."""

    content: str
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    fork: PreparedFork | None = None
    """What the host is to run as a sub-agent, where it asked for that (``fork="host"``)."""
    pending: TrustRequest | None = None
    """What a person is to decide on before the call does anything (``Trust(policy="defer")``); nothing has run."""

    def to_anthropic(self, tool_use_id: str) -> AnthropicToolResult:
        """The ``tool_result`` block for the Messages API; an image or a PDF is a block in it."""
        media = (one.to_anthropic() for one in self._find_media())
        return {
            "type": "tool_result",
            "tool_use_id": tool_use_id,
            "content": [{"type": "text", "text": self.content}, *media],
            "is_error": self.is_error,
        }

    def to_openai(self, tool_call_id: str) -> list[OpenAIMessage]:
        """The messages for the Chat Completions API: that of the tool, and one of the user's with an image or a PDF.

        That API takes only text from tools. Answer all calls of one turn with their tool messages first.
        """
        answer: OpenAIToolMessage = {"role": "tool", "tool_call_id": tool_call_id, "content": self.content}
        parts = [one.to_openai() for one in self._find_media()]
        return [answer, {"role": "user", "content": parts}] if parts else [answer]

    def to_openai_responses(self, call_id: str) -> OpenAIResponsesOutput:
        """The output item for the Responses API; an image or a PDF is a part of it."""
        parts = [one.to_openai_responses() for one in self._find_media()]
        return {
            "type": "function_call_output",
            "call_id": call_id,
            "output": [{"type": "input_text", "text": self.content}, *parts] if parts else self.content,
        }

    def to_mcp(self) -> McpResult:
        """The result for the Model Context Protocol's ``tools/call``; an image or a PDF is a block in it."""
        text: McpText = {"type": "text", "text": self.content}
        return {"content": [text, *(one.to_mcp() for one in self._find_media())], "isError": self.is_error}

    def _find_media(self) -> tuple[Media, ...]:
        media = find_media(self.data)
        return () if media is None else (media,)


def make_strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that OpenAI's strict mode takes: objects are closed, all is required, what was optional may be null."""
    made = dict(schema)
    if "items" in made:
        made["items"] = make_strict(made["items"])
    if "properties" in made:
        required = made.get("required", ())
        inner = {key: make_strict(value) for key, value in made["properties"].items()}
        made["properties"] = {k: value if k in required else _make_nullable(value) for k, value in inner.items()}
        made |= {"required": list(inner), "additionalProperties": False}
    return made


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    choice = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choice}


def string_schema(description: str = "", **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON Schema keywords
    """A string parameter."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def object_schema(properties: Mapping[str, Any], required: tuple[str, ...], *, closed: bool = False) -> dict[str, Any]:
    """An object of parameters; ``closed``: no others are allowed."""
    made: dict[str, Any] = {"type": "object", "properties": dict(properties), "required": list(required)}
    if closed:
        made["additionalProperties"] = False
    return made

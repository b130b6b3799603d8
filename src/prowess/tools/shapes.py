"""The shapes that providers want tools in, as types.

For a type checker they are the types of the providers' own packages, so that an export goes into their calls as it is,
whichever version of them is installed; a copy here would stop fitting with the next optional key that they add. Where a
package is not installed, its shape is unknown to the checker. At run time none of them is imported: a plain
``TypedDict`` says what an export holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict


class JsonSchemaTool(TypedDict):
    """A tool with its parameters as JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class McpAnnotations(TypedDict):
    """What a client is told about a tool besides its schema."""

    readOnlyHint: bool


class McpTool(TypedDict):
    """A tool as the Model Context Protocol's ``tools/list`` has it."""

    name: str
    title: NotRequired[str]
    description: str
    inputSchema: dict[str, Any]
    outputSchema: NotRequired[dict[str, Any]]
    annotations: McpAnnotations


if TYPE_CHECKING:
    from anthropic.types import ToolParam as AnthropicTool
    from openai.types.chat import ChatCompletionFunctionToolParam as OpenAITool
    from openai.types.responses import FunctionToolParam as OpenAIResponsesTool
else:

    class OpenAITool(TypedDict):
        """A tool for OpenAI's Chat Completions API."""

        type: Literal["function"]
        function: JsonSchemaTool

    class OpenAIResponsesTool(TypedDict):
        """A tool for OpenAI's Responses API."""

        type: Literal["function"]
        name: str
        description: str
        parameters: dict[str, Any]
        strict: bool | None

    class AnthropicTool(TypedDict):
        """A tool for Anthropic's Messages API."""

        name: str
        description: str
        input_schema: dict[str, Any]


__all__ = ["AnthropicTool", "JsonSchemaTool", "McpAnnotations", "McpTool", "OpenAIResponsesTool", "OpenAITool"]

"""The shapes that providers take tools and the results of calls in, as types.

A type checker sees the types of the providers' own packages, so an export fits their calls whichever version is
installed; a copy here would stop fitting with the next optional key that they add. When a package is not installed,
its shape is unknown to the checker. At run time no package is imported, and these types are plain dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict


class JsonSchemaTool(TypedDict):
    """A tool with its parameters as JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]


class McpAnnotations(TypedDict):
    """Hints about a tool, besides its schema."""

    readOnlyHint: bool


class McpTool(TypedDict):
    """A tool as the Model Context Protocol's ``tools/list`` has it."""

    name: str
    title: NotRequired[str]
    description: str
    inputSchema: dict[str, Any]
    outputSchema: NotRequired[dict[str, Any]]
    annotations: McpAnnotations


class McpText(TypedDict):
    """A block of text in a result."""

    type: Literal["text"]
    text: str


class McpImage(TypedDict):
    """A block with an image in a result, in base64."""

    type: Literal["image"]
    data: str
    mimeType: str


class McpBlob(TypedDict):
    """A file in a result, in base64."""

    uri: str
    mimeType: str
    blob: str


class McpResource(TypedDict):
    """A block with a file in a result."""

    type: Literal["resource"]
    resource: McpBlob


McpMedia = McpImage | McpResource


class McpResult(TypedDict):
    """The result of the Model Context Protocol's ``tools/call``."""

    content: list[McpText | McpMedia]
    isError: bool


if TYPE_CHECKING:
    from anthropic import types as anthropic
    from openai.types import chat, responses
    from openai.types.responses import response_input_param

    AnthropicMedia: TypeAlias = anthropic.ImageBlockParam | anthropic.DocumentBlockParam
    AnthropicTool: TypeAlias = anthropic.ToolParam
    AnthropicToolResult: TypeAlias = anthropic.ToolResultBlockParam
    OpenAIMedia: TypeAlias = chat.ChatCompletionContentPartParam
    OpenAIResponsesMedia: TypeAlias = responses.ResponseInputFileContentParam | responses.ResponseInputImageContentParam
    OpenAIResponsesOutput: TypeAlias = response_input_param.FunctionCallOutput
    OpenAIResponsesTool: TypeAlias = responses.FunctionToolParam
    OpenAITool: TypeAlias = chat.ChatCompletionFunctionToolParam
    OpenAIToolMessage: TypeAlias = chat.ChatCompletionToolMessageParam
    OpenAIUserMessage: TypeAlias = chat.ChatCompletionUserMessageParam
else:
    AnthropicMedia = AnthropicTool = AnthropicToolResult = dict[str, Any]
    OpenAIMedia = OpenAITool = OpenAIToolMessage = OpenAIUserMessage = dict[str, Any]
    OpenAIResponsesMedia = OpenAIResponsesOutput = OpenAIResponsesTool = dict[str, Any]

OpenAIMessage = OpenAIToolMessage | OpenAIUserMessage

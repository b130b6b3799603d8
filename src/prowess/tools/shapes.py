"""The shapes that providers take tools and the results of calls in, as types.

A type checker sees the types of the providers' own packages, so an export fits their calls whichever version is
installed; a copy here would stop fitting with the next optional key that they add. When a package is not installed,
its shape is unknown to the checker. At run time no package is imported: a plain ``TypedDict`` says what an export
holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict


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
    from anthropic.types import DocumentBlockParam, ImageBlockParam
    from anthropic.types import ToolParam as AnthropicTool
    from anthropic.types import ToolResultBlockParam as AnthropicToolResult
    from openai.types.chat import ChatCompletionContentPartParam as OpenAIMedia
    from openai.types.chat import ChatCompletionFunctionToolParam as OpenAITool
    from openai.types.chat import ChatCompletionToolMessageParam as OpenAIToolMessage
    from openai.types.chat import ChatCompletionUserMessageParam as OpenAIUserMessage
    from openai.types.responses import FunctionToolParam as OpenAIResponsesTool
    from openai.types.responses import ResponseInputFileContentParam, ResponseInputImageContentParam
    from openai.types.responses.response_input_param import FunctionCallOutput as OpenAIResponsesOutput

    AnthropicMedia = ImageBlockParam | DocumentBlockParam
    OpenAIResponsesMedia = ResponseInputImageContentParam | ResponseInputFileContentParam
else:
    AnthropicMedia = OpenAIMedia = OpenAIResponsesMedia = dict[str, Any]

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

    class AnthropicToolResult(TypedDict):
        """The result of a call for Anthropic's Messages API: a block of a user's message."""

        type: Literal["tool_result"]
        tool_use_id: str
        content: list[dict[str, Any]]
        is_error: bool

    class OpenAIToolMessage(TypedDict):
        """The result of a call for OpenAI's Chat Completions API: a message."""

        role: Literal["tool"]
        tool_call_id: str
        content: str

    class OpenAIUserMessage(TypedDict):
        """A user's message with an image or a PDF document, which a tool cannot return in that API."""

        role: Literal["user"]
        content: list[dict[str, Any]]

    class OpenAIResponsesOutput(TypedDict):
        """The result of a call for OpenAI's Responses API: an item of the input."""

        type: Literal["function_call_output"]
        call_id: str
        output: str | list[dict[str, Any]]


OpenAIMessage = OpenAIToolMessage | OpenAIUserMessage

__all__ = [
    "AnthropicMedia",
    "AnthropicTool",
    "AnthropicToolResult",
    "JsonSchemaTool",
    "McpAnnotations",
    "McpBlob",
    "McpImage",
    "McpMedia",
    "McpResource",
    "McpResult",
    "McpText",
    "McpTool",
    "OpenAIMedia",
    "OpenAIMessage",
    "OpenAIResponsesMedia",
    "OpenAIResponsesOutput",
    "OpenAIResponsesTool",
    "OpenAITool",
    "OpenAIToolMessage",
    "OpenAIUserMessage",
]

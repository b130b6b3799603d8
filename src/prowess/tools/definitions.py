"""The definition of a tool, the arguments of a call and its result, in the shapes of providers."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote

from prowess.errors import SkillError
from prowess.text.escapes import escape_line
from prowess.text.markup import CONTENT_TAG, USER_CALL_TAG, neutralize_tags

if TYPE_CHECKING:
    from prowess.conversation.acting.trust_request import TrustRequest
    from prowess.conversation.fork import PreparedFork
    from prowess.tools.shapes import (
        AnthropicMedia,
        AnthropicTool,
        AnthropicToolResult,
        JsonSchemaTool,
        McpMedia,
        McpResult,
        McpText,
        McpTool,
        OpenAIMedia,
        OpenAIMessage,
        OpenAIResponsesMedia,
        OpenAIResponsesOutput,
        OpenAIResponsesTool,
        OpenAITool,
        OpenAIToolMessage,
    )


PDF_TYPE = "application/pdf"
_MAX_ERROR_LENGTH = 2_000
_KEPT_END_LENGTH = 128  # the end of a message says what to do, so the middle is cut


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool: its name, what it does, its parameters as JSON Schema, and whether calls may run in parallel."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    parallel: bool = True
    title: str = ""
    read_only: bool = True
    output: Mapping[str, Any] | None = None
    """The JSON Schema of a result, for a tool whose results are JSON."""

    def to_json_schema(self) -> JsonSchemaTool:
        """Return name, description and parameters."""
        return {"name": self.name, "description": self.description, "parameters": self._copy_schema()}

    def to_openai(self, *, strict: bool = False) -> OpenAITool:
        """Return the tool for the Chat Completions API; ``strict``: with a schema that the model is held to."""
        plain = self.to_json_schema()
        function = {**plain, "parameters": make_strict(plain["parameters"]), "strict": True} if strict else plain
        return cast("OpenAITool", {"type": "function", "function": function})

    def to_openai_responses(self, *, strict: bool = False) -> OpenAIResponsesTool:
        """Return the tool for the Responses API; ``strict``: with a schema that the model is held to."""
        plain = self.to_json_schema()
        parameters = make_strict(plain["parameters"]) if strict else plain["parameters"]
        # "strict": False is written out, because the API takes a schema without it for a strict one.
        return cast("OpenAIResponsesTool", {"type": "function", **plain, "parameters": parameters, "strict": strict})

    def to_anthropic(self) -> AnthropicTool:
        """Return the tool for Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self._copy_schema()}

    def to_mcp(self) -> McpTool:
        """Return the tool for the Model Context Protocol's ``tools/list``."""
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
        # A copy, since the caller may change what it gets, and the definition is frozen.
        return deepcopy(dict(self.parameters))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call: text for the model, whether it is an error, and data for the host."""

    content: str
    is_error: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)
    fork: PreparedFork | None = None
    """The fork that the host has to run as a sub-agent (only with ``fork="host"``)."""
    pending: TrustRequest | None = None
    """What a person has to decide before the call does anything (``Trust(policy="defer")``); nothing has run."""

    def to_anthropic(self, tool_use_id: str) -> AnthropicToolResult:
        """Return the ``tool_result`` block for the Messages API; an image or a PDF is a block in it."""
        media = (file.to_anthropic() for file in find_media(self.data))
        return {
            "type": "tool_result",
            "tool_use_id": tool_use_id,
            "content": [{"type": "text", "text": self.content}, *media],
            "is_error": self.is_error,
        }

    def to_openai(self, tool_call_id: str) -> list[OpenAIMessage]:
        """Return the messages for the Chat Completions API: the tool's, and a user's one with an image or a PDF.

        That API takes only text from tools. Answer all calls of one turn with their tool messages first.
        """
        answer: OpenAIToolMessage = {"role": "tool", "tool_call_id": tool_call_id, "content": self.content}
        parts = [file.to_openai() for file in find_media(self.data)]
        return [answer, {"role": "user", "content": parts}] if parts else [answer]

    def to_openai_responses(self, call_id: str) -> OpenAIResponsesOutput:
        """Return the output item for the Responses API; an image or a PDF is a part of it."""
        parts = [file.to_openai_responses() for file in find_media(self.data)]
        return {
            "type": "function_call_output",
            "call_id": call_id,
            "output": [{"type": "input_text", "text": self.content}, *parts] if parts else self.content,
        }

    def to_mcp(self) -> McpResult:
        """Return the result for the Model Context Protocol's ``tools/call``; an image or a PDF is a block in it."""
        text: McpText = {"type": "text", "text": self.content}
        return {"content": [text, *(file.to_mcp() for file in find_media(self.data))], "isError": self.is_error}


def make_strict(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for OpenAI's strict mode: objects are closed, optional properties required but nullable."""
    strict = dict(schema)
    if "items" in strict:
        strict["items"] = make_strict(strict["items"])
    if "properties" in strict:
        required = strict.get("required", ())
        inner = {key: make_strict(value) for key, value in strict["properties"].items()}
        strict["properties"] = {k: value if k in required else _make_nullable(value) for k, value in inner.items()}
        strict |= {"required": list(inner), "additionalProperties": False}
    return strict


def _make_nullable(schema: dict[str, Any]) -> dict[str, Any]:
    choice = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **choice}


def string_schema(description: str = "", **more: Any) -> dict[str, Any]:
    """Return the schema of a string; ``more`` are further keywords of JSON Schema."""
    return {"type": "string", **({"description": description} if description else {}), **more}


def object_schema(
    properties: Mapping[str, Any], required: tuple[str, ...] = (), *, closed: bool = False
) -> dict[str, Any]:
    """Return the schema of an object; ``closed``: it allows no further properties."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    if closed:
        schema["additionalProperties"] = False
    return schema


def text_schema(required: Mapping[str, str], *, closed: bool = False, **optional: str) -> dict[str, Any]:
    """Return the schema of an object of strings, each with its description."""
    properties = {name: string_schema(description) for name, description in {**required, **optional}.items()}
    return object_schema(properties, tuple(required), closed=closed)


def sanitize_error(result: ToolResult) -> ToolResult:
    """Return an error as a model receives it: at most 2,000 characters, without the tags around instructions.

    Errors quote names of folders, files and skills, and what a model sent. That text must decide neither how long a
    result is, nor where instructions seem to begin or end.
    """
    content = neutralize_tags(result.content, CONTENT_TAG, USER_CALL_TAG)
    if len(content) > _MAX_ERROR_LENGTH:
        content = content[: _MAX_ERROR_LENGTH - _KEPT_END_LENGTH] + " … " + content[-_KEPT_END_LENGTH:]
    data = {key: value[:_MAX_ERROR_LENGTH] if isinstance(value, str) else value for key, value in result.data.items()}
    return ToolResult(content, is_error=True, data=data)


def error_result(message: str, **data: Any) -> ToolResult:
    """Return a result that is an error, with ``data`` for the host."""
    return ToolResult(message, is_error=True, data=data)


def describe_error(error: Exception) -> str:
    """Return the message of an error on one line."""
    return escape_line(error.message if isinstance(error, SkillError) else str(error))


def render_plain_error(_tool: str, error: Exception) -> ToolResult:
    """Return a result with the message alone; many dialects show errors so."""
    return error_result(describe_error(error), reason=getattr(error, "code", "bad-arguments"))


# -- files that models can see -----------------------------------------------------------------------------------------


class Media(NamedTuple):
    """A file that models can see: its type and content, and the skill and the path that it was read from."""

    media_type: str
    base64: str
    skill: str
    path: str

    @property
    def name(self) -> str:
        """The name of the file, without its folders."""
        return self.path.rpartition("/")[2]

    @property
    def content(self) -> bytes:
        """The file itself."""
        return b64decode(self.base64)

    @property
    def url(self) -> str:
        """The file as a ``data:`` address."""
        return f"data:{self.media_type};base64,{self.base64}"

    def to_anthropic(self) -> AnthropicMedia:
        """Return a block for a ``tool_result`` of the Messages API."""
        source = {"type": "base64", "media_type": self.media_type, "data": self.base64}
        block = {"type": "document", "title": self.name} if self.media_type == PDF_TYPE else {"type": "image"}
        return cast("AnthropicMedia", {**block, "source": source})

    def to_openai(self) -> OpenAIMedia:
        """Return a part of a user's message for the Chat Completions API."""
        return (
            {"type": "file", "file": {"filename": self.name, "file_data": self.url}}
            if self.media_type == PDF_TYPE
            else {"type": "image_url", "image_url": {"url": self.url}}
        )

    def to_openai_responses(self) -> OpenAIResponsesMedia:
        """Return a part of a function's output for the Responses API."""
        return (
            {"type": "input_file", "filename": self.name, "file_data": self.url}
            if self.media_type == PDF_TYPE
            else {"type": "input_image", "image_url": self.url, "detail": "auto"}
        )

    def to_mcp(self) -> McpMedia:
        """Return a block of a tool's result for the Model Context Protocol."""
        if self.media_type == PDF_TYPE:
            uri = f"skill://{quote(self.skill, safe='')}/{quote(self.path)}"
            return {"type": "resource", "resource": {"uri": uri, "mimeType": self.media_type, "blob": self.base64}}
        return {"type": "image", "data": self.base64, "mimeType": self.media_type}


def find_media(data: Mapping[str, Any]) -> tuple[Media, ...]:
    """Return the file in the data of a result, if there is one that models can see."""
    return (Media(data["media_type"], data["base64"], data["skill"], data["path"]),) if "media_type" in data else ()


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_CHARS = 1_000_000  # beyond it, parsing alone would hold up the host


class BadArgumentsError(Exception):
    """The arguments of a call are wrong; the message is for the model."""


def parse_arguments(given: Mapping[str, Any] | str | bytes | None) -> dict[str, Any]:
    """Return the arguments as a dictionary; raises ``BadArgumentsError`` when they are not an object with names."""
    if given is None or given in ("", b""):
        return {}
    if isinstance(given, (str, bytes)):
        if len(given) > _MAX_CHARS:
            raise BadArgumentsError("the arguments are too long")
        try:
            given = json.loads(given)
        except (ValueError, RecursionError) as error:  # a few kilobytes of "[" exhaust the stack
            raise BadArgumentsError(f"not JSON: {error}") from None
    # Fast path: nearly all arguments are dictionaries, and a check against an abstract class is slow.
    if type(given) is not dict and not isinstance(given, Mapping):
        raise BadArgumentsError("expected an object with named parameters")
    for value in given.values():
        if isinstance(value, str) and not value.isascii() and _LONE_SURROGATE.search(value):
            # Half of a character cannot be encoded as UTF-8: it would fail later, in a file name or a log.
            raise BadArgumentsError("a value holds an unpaired surrogate")
    return dict(given)


def required_text(arguments: Mapping[str, Any], key: str) -> str:
    """Return a string parameter; raises ``BadArgumentsError`` when it is missing, empty or not a string."""
    value = optional_text(arguments, key)
    if not value:
        raise BadArgumentsError(f"{key} is required")
    return value


def optional_text(arguments: Mapping[str, Any], key: str) -> str:
    """Return a string parameter, ``""`` when it is absent; raises ``BadArgumentsError`` when it is not a string."""
    value = arguments.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadArgumentsError(f"{key} must be a string")
    return value


def optional_count(arguments: Mapping[str, Any], key: str, default: int, least: int = 0) -> int:
    """Return a whole number, ``default`` when it is absent; raises ``BadArgumentsError`` when it is below ``least``."""
    value = arguments.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadArgumentsError(f"{key} must be a whole number, {least} or more")
    return value

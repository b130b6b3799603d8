"""Skills for Anthropic's own client: the whole loop of an agent over the Messages API in one call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from prowess.adapters.core import require_package
from prowess.adapters.message_skills import MessageSkills, RunStream
from prowess.adapters.message_types import (
    CallEvent,
    ChildEvent,
    HostTool,
    ModelCall,
    ModelReply,
    PartialRun,
    PendingCall,
    ResultEvent,
    RunResult,
    TextEvent,
    Usage,
    find_last_reply,
    parse_object,
)

require_package("anthropic", "anthropic>=0.60")


if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from prowess.adapters.message_types import Message, ReplyEnding
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.shapes import AnthropicTool


__all__ = [
    "CallEvent",
    "ChildEvent",
    "HostTool",
    "ModelCall",
    "PartialRun",
    "PendingCall",
    "ResultEvent",
    "RunResult",
    "RunStream",
    "Skills",
    "TextEvent",
    "Usage",
]


class Skills(MessageSkills):
    """Skills for an ``Anthropic`` client, or another with ``messages.create``, plain or asynchronous."""

    def _pick_format(self, options: dict[str, Any]) -> _MessagesFormat:
        return _MessagesFormat()

    def tools(self) -> list[AnthropicTool]:
        """Return each skill tool that a conversation can be offered, in the shape of the Messages API."""
        return [tool.to_anthropic() for tool in self.list_definitions()]


_MAX_CACHE_MARKS = 4
"""A request with more marks for the cache is refused. One of them is left for a mark of the request itself."""
_MAX_TOKENS = 8_192
"""The API needs a bound on the output; the caller's own ``max_tokens`` replaces it."""
_ENDINGS: dict[str | None, ReplyEnding] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "again",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""The deltas of a stream that add text to a field of their block, and the field."""


class _MessagesFormat:
    """Anthropic's Messages API."""

    def send_request(self, client: Any, request: Message) -> Any:
        """Return what ``client.messages.create`` answers."""
        return client.messages.create(**request)

    def make_request(
        self, messages: list[Message], system: str, prompt: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> Message:
        """Return the arguments of a request: the system text is marked for the cache, which covers the tools too."""
        blocks: list[Message] = [{"type": "text", "text": text} for text in (system, prompt) if text]
        if blocks and _count_marks(messages) < _MAX_CACHE_MARKS - 1:
            blocks[-1]["cache_control"] = {"type": "ephemeral"}
        request: Message = {"messages": messages, "max_tokens": _MAX_TOKENS}
        request |= {"system": blocks} if blocks else {}
        request |= {"tools": [tool.to_anthropic() for tool in tools]} if tools else {}
        return {**request, "stream": True} if is_stream else request

    def read_reply(self, response: Message) -> ModelReply:
        """Return a whole response in the terms of the loop."""
        content = response.get("content") or []
        calls = tuple(_read_call(block) for block in content if block["type"] == "tool_use")
        # The API takes back only objects: what was wrong with others, the result of the call says.
        objects = (block if isinstance(block.get("input", {}), dict) else {**block, "input": {}} for block in content)
        kept = [block for block in objects if _has_content(block)]
        text = "".join(block["text"] for block in content if block["type"] == "text")
        messages = [{"role": "assistant", "content": kept}] if kept else []
        ending = _ENDINGS.get(response.get("stop_reason"), "done")
        return ModelReply(messages, text, calls, _read_usage(response.get("usage") or {}), ending)

    def open_reader(self) -> MessagesReader:
        """Return what puts a stream together."""
        return MessagesReader()

    def find_open_calls(self, messages: list[Message]) -> tuple[ModelCall, ...]:
        """Return the calls of the last reply that have no result yet."""
        place = find_last_reply(messages)
        if place is None:
            return ()
        answered = {block.get("tool_use_id") for block in _list_blocks(messages, place + 1)}
        blocks = _list_blocks(messages, place)
        calls = (_read_call(block) for block in blocks if block.get("type") == "tool_use")
        return tuple(call for call in calls if call.id not in answered)

    def add_results(self, messages: list[Message], results: Sequence[tuple[ModelCall, ToolResult]]) -> list[Message]:
        """Return the messages with results: all of one reply are in one message, before anything else in it."""
        place = cast("int", find_last_reply(messages))
        rest = _list_blocks(messages, place + 1)
        blocks = [
            *(block for block in rest if block.get("type") == "tool_result"),
            *(result.to_anthropic(call.id) for call, result in results),
            *(block for block in rest if block.get("type") != "tool_result"),
        ]
        return [*messages[: place + 1], {"role": "user", "content": blocks}, *messages[place + 2 :]]


class MessagesReader:
    """Puts the events of a stream together; arguments are parsed when they are whole."""

    def __init__(self) -> None:
        self._message: Message = {}
        self._blocks: dict[int, Message] = {}
        self._inputs: dict[int, str] = {}

    def read_event(self, event: Message) -> str:
        """Take the next event; return the text that it adds."""
        kind = event["type"]
        if kind == "message_start":
            self._message = event["message"]
        elif kind == "content_block_start":
            self._blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            return self._read_delta(event["index"], event["delta"])
        elif kind == "message_delta":
            used = {key: count for key, count in (event.get("usage") or {}).items() if count is not None}
            usage = {**(self._message.get("usage") or {}), **used}
            self._message = {**self._message, **event["delta"], "usage": usage}
        return ""

    def _read_delta(self, index: int, delta: Message) -> str:
        block, kind = self._blocks[index], delta["type"]
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        elif kind in _GROWING:
            block[_GROWING[kind]] = (block.get(_GROWING[kind]) or "") + delta[_GROWING[kind]]
        return str(delta["text"]) if kind == "text_delta" else ""

    def finish_reply(self) -> Message | None:
        """Return the whole message; ``None`` when the stream did not say why it ended."""
        if self._message.get("stop_reason") is None:
            return None
        return {**self._message, "content": list(self._list_blocks())}

    def _list_blocks(self) -> Iterator[Message]:
        for index, block in sorted(self._blocks.items()):
            text = self._inputs.get(index)
            yield block if text is None else {**block, "input": parse_object(text)}


def _list_blocks(messages: list[Message], place: int) -> list[Message]:
    """Return the blocks of the message at a place, where there is one; text is one block."""
    content = messages[place].get("content") if place < len(messages) else None
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _read_call(block: Message) -> ModelCall:
    given = block.get("input", {})
    return ModelCall(block["id"], block["name"], given if isinstance(given, (dict, str)) else json.dumps(given))


def _count_marks(value: Any) -> int:
    """Return how many parts of the messages the caller has marked for the cache."""
    if isinstance(value, dict):
        return ("cache_control" in value) + sum(map(_count_marks, value.values()))
    return sum(map(_count_marks, value)) if isinstance(value, list) else 0


def _has_content(block: Message) -> bool:
    """Return whether the API takes a block back: it refuses text that is empty."""
    return block["type"] != "text" or bool(block["text"])


def _read_usage(usage: Message) -> Usage:
    cached = usage.get("cache_read_input_tokens") or 0
    written = usage.get("cache_creation_input_tokens") or 0
    return Usage(usage.get("input_tokens", 0) + cached + written, usage.get("output_tokens", 0), cached)

"""OpenAI's Responses API: its requests, replies and streams in the terms of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from prowess.adapters.message_types import ModelCall, ModelReply, Usage, parse_object

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.adapters.message_types import Message, ReplyEnding
    from prowess.tools.definitions import ToolDefinition, ToolResult

_LAST_EVENTS = ("response.completed", "response.incomplete", "response.failed")
_TEXT_EVENTS = ("response.output_text.delta", "response.refusal.delta")


class ResponsesFormat:
    """OpenAI's Responses API; every item is sent again, so that nothing depends on what the provider stores."""

    def send_request(self, client: Any, request: Message) -> Any:
        """Return what ``client.responses.create`` answers."""
        return client.responses.create(**request)

    def make_request(
        self, messages: list[Message], system: str, prompt: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> Message:
        """Return the arguments of a request."""
        request: Message = {"input": messages}
        text = "\n\n".join(filter(None, (system, prompt)))
        request |= {"instructions": text} if text else {}
        request |= {"tools": [tool.to_openai_responses() for tool in tools]} if tools else {}
        return {**request, "stream": True} if is_stream else request

    def read_reply(self, response: Message) -> ModelReply:
        """Return a whole response in the terms of the loop; raises the client's ``APIError`` for one that failed."""
        if response.get("status") in ("failed", "cancelled"):
            raise _make_error(response.get("error") or {"message": response["status"]})
        items = response.get("output") or []
        calls = tuple(_read_call(item) for item in items if item["type"] == "function_call")
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        text = "".join(part["text"] for part in parts if part["type"] == "output_text") or "".join(refusals)
        kept = [_with_object(item) for item in items]
        return ModelReply(
            kept, text, calls, _read_usage(response.get("usage") or {}), _find_ending(response, bool(refusals))
        )

    def open_reader(self) -> ResponsesReader:
        """Return what puts a stream together."""
        return ResponsesReader()

    def find_open_calls(self, messages: list[Message]) -> tuple[ModelCall, ...]:
        """Return the calls that have no result after them; some servers use an id again in a later response."""
        waiting: dict[str, ModelCall] = {}
        for item in messages:
            if item.get("type") == "function_call":
                waiting[item["call_id"]] = _read_call(item)
            elif item.get("type") == "function_call_output":
                waiting.pop(item["call_id"], None)
        return tuple(waiting.values())

    def add_results(self, messages: list[Message], results: Sequence[tuple[ModelCall, ToolResult]]) -> list[Message]:
        """Return the messages with results, which follow the last call or its results."""
        kinds = ("function_call", "function_call_output")
        places = [place for place, item in enumerate(messages) if item.get("type") in kinds]
        made = [cast("Message", result.to_openai_responses(call.id)) for call, result in results]
        return [*messages[: places[-1] + 1], *made, *messages[places[-1] + 1 :]]


class ResponsesReader:
    """Takes the text of a stream as it comes; its last event has the whole response."""

    def __init__(self) -> None:
        self._response: Message | None = None

    def read_event(self, event: Message) -> str:
        """Take the next event; return the text that it adds."""
        if event["type"] == "error":
            raise _make_error(event)
        if event["type"] in _LAST_EVENTS:
            self._response = event["response"]
        return str(event["delta"]) if event["type"] in _TEXT_EVENTS else ""

    def finish_reply(self) -> Message | None:
        """Return the whole response; ``None`` when it did not come."""
        return self._response


def _make_error(error: Message) -> Exception:
    """Return what the client raises where a response fails; it has no request, since that was answered."""
    from openai import APIError

    message = f"the provider could not answer: {error.get('message') or error.get('code')}"
    return APIError(message, cast("Any", None), body=error)


def _find_ending(response: Message, is_refusal: bool) -> ReplyEnding:  # noqa: FBT001 - named by its type
    if response.get("status") != "incomplete":
        return "refusal" if is_refusal else "done"
    reason = (response.get("incomplete_details") or {}).get("reason")
    return "refusal" if reason == "content_filter" else "length"


def _read_call(item: Message) -> ModelCall:
    return ModelCall(item["call_id"], item["name"], parse_object(item.get("arguments") or ""))


def _with_object(item: Message) -> Message:
    """Return an item as it goes back: the arguments of a call are an object, as providers expect."""
    is_call = item["type"] == "function_call"
    return {**item, "arguments": "{}"} if is_call and isinstance(_read_call(item).arguments, str) else item


def _read_usage(usage: Message) -> Usage:
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0, cached)

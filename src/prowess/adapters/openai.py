"""Skills for OpenAI's own client: the whole loop of an agent over Chat Completions or Responses in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, overload

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
    find_text,
    parse_object,
)
from prowess.arguments import raise_bad_argument

require_package("openai", "openai>=1.70")


if TYPE_CHECKING:
    from collections.abc import Sequence

    from prowess.adapters.message_types import Message, ReplyEnding
    from prowess.tools.definitions import ToolDefinition, ToolResult
    from prowess.tools.shapes import OpenAIResponsesTool, OpenAITool


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
        calls = tuple(_read_response_call(item) for item in items if item["type"] == "function_call")
        parts = [part for item in items if item["type"] == "message" for part in item["content"]]
        refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
        text = "".join(part["text"] for part in parts if part["type"] == "output_text") or "".join(refusals)
        kept = [_with_response_object(item) for item in items]
        return ModelReply(
            kept, text, calls, _read_response_usage(response.get("usage") or {}), _find_ending(response, bool(refusals))
        )

    def open_reader(self) -> _ResponsesReader:
        """Return what puts a stream together."""
        return _ResponsesReader()

    def find_open_calls(self, messages: list[Message]) -> tuple[ModelCall, ...]:
        """Return the calls that have no result after them; some servers use an id again in a later response."""
        waiting: dict[str, ModelCall] = {}
        for item in messages:
            if item.get("type") == "function_call":
                waiting[item["call_id"]] = _read_response_call(item)
            elif item.get("type") == "function_call_output":
                waiting.pop(item["call_id"], None)
        return tuple(waiting.values())

    def add_results(self, messages: list[Message], results: Sequence[tuple[ModelCall, ToolResult]]) -> list[Message]:
        """Return the messages with results, which follow the last call or its results."""
        kinds = ("function_call", "function_call_output")
        places = [place for place, item in enumerate(messages) if item.get("type") in kinds]
        made = [cast("Message", result.to_openai_responses(call.id)) for call, result in results]
        return [*messages[: places[-1] + 1], *made, *messages[places[-1] + 1 :]]


class _ResponsesReader:
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


def _read_response_call(item: Message) -> ModelCall:
    return ModelCall(item["call_id"], item["name"], parse_object(item.get("arguments") or ""))


def _with_response_object(item: Message) -> Message:
    """Return an item as it goes back: the arguments of a call are an object, as providers expect."""
    is_call = item["type"] == "function_call"
    return {**item, "arguments": "{}"} if is_call and isinstance(_read_response_call(item).arguments, str) else item


def _read_response_usage(usage: Message) -> Usage:
    cached = (usage.get("input_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(usage.get("input_tokens") or 0, usage.get("output_tokens") or 0, cached)


_SYSTEM_ROLES = ("system", "developer")
_ENDINGS: dict[str | None, ReplyEnding] = {"length": "length", "content_filter": "refusal"}
_MESSAGE_KEYS = ("role", "content", "refusal", "tool_calls")
"""What goes back of a reply; other providers add fields that they do not take back."""


class _ChatFormat:
    """OpenAI's Chat Completions API."""

    def send_request(self, client: Any, request: Message) -> Any:
        """Return what ``client.chat.completions.create`` answers."""
        return client.chat.completions.create(**request)

    def make_request(
        self, messages: list[Message], system: str, prompt: str, tools: Sequence[ToolDefinition], *, is_stream: bool
    ) -> Message:
        """Return the arguments of a request; the system text joins the system message that there is."""
        request: Message = {"messages": _with_system(messages, "\n\n".join(filter(None, (system, prompt))))}
        request |= {"tools": [tool.to_openai() for tool in tools]} if tools else {}
        return {**request, "stream": True, "stream_options": {"include_usage": True}} if is_stream else request

    def read_reply(self, response: Message) -> ModelReply:
        """Return a whole response in the terms of the loop."""
        choice = response["choices"][0]
        said = choice["message"]
        calls = [_name_call(call, place) for place, call in enumerate(said.get("tool_calls") or ())]
        refusal = said.get("refusal") or ""
        message = {"role": "assistant"} | {key: said[key] for key in _MESSAGE_KEYS if said.get(key)}
        message |= {"tool_calls": [_with_object(call) for call in calls]} if calls else {}
        is_empty = not (calls or refusal or said.get("content"))
        ending = "refusal" if refusal else _ENDINGS.get(choice.get("finish_reason"), "done")
        return ModelReply(
            [] if is_empty else [{"content": None, **message}],
            find_text(said.get("content")) or refusal,
            tuple(map(_read_call, calls)),
            _read_usage(response.get("usage") or {}),
            ending,
        )

    def open_reader(self) -> ChatReader:
        """Return what puts a stream together."""
        return ChatReader()

    def find_open_calls(self, messages: list[Message]) -> tuple[ModelCall, ...]:
        """Return the calls of the last reply that have no result yet."""
        place = find_last_reply(messages)
        if place is None:
            return ()
        answered = {message.get("tool_call_id") for message in messages[place + 1 :]}
        calls = map(_read_call, messages[place].get("tool_calls") or ())
        return tuple(call for call in calls if call.id not in answered)

    def add_results(self, messages: list[Message], results: Sequence[tuple[ModelCall, ToolResult]]) -> list[Message]:
        """Return the messages with results: they follow the reply, and what they show follows all of them."""
        made = [message for call, result in results for message in result.to_openai(call.id)]
        place = cast("int", find_last_reply(messages)) + 1
        while place < len(messages) and messages[place].get("role") == "tool":
            place += 1
        answers = [cast("Message", message) for message in made if message["role"] == "tool"]
        shown = [cast("Message", message) for message in made if message["role"] != "tool"]
        return [*messages[:place], *answers, *shown, *messages[place:]]


class ChatReader:
    """Puts the chunks of a stream together."""

    def __init__(self) -> None:
        self._message: Message = {"role": "assistant"}
        self._calls: list[Message] = []
        self._reason: str | None = None
        self._usage: Message | None = None

    def read_event(self, event: Message) -> str:
        """Take the next chunk; return the text that it adds."""
        self._usage = event.get("usage") or self._usage
        choices = event.get("choices") or ()
        if not choices:  # the last chunk has the usage only
            return ""
        delta = choices[0].get("delta") or {}
        self._reason = choices[0].get("finish_reason") or self._reason
        for key in ("content", "refusal"):
            if delta.get(key):
                self._message[key] = self._message.get(key, "") + delta[key]
        for call in delta.get("tool_calls") or ():
            self._read_call(call)
        return delta.get("content") or delta.get("refusal") or ""

    def _read_call(self, delta: Message) -> None:
        function = delta.get("function") or {}
        begun = self._find_call(delta)
        if begun is None:
            whole = {"name": function.get("name") or "", "arguments": function.get("arguments") or ""}
            self._calls.append({**delta, "type": "function", "function": whole})
            return
        begun["function"]["name"] = begun["function"]["name"] or function.get("name") or ""
        begun["function"]["arguments"] += function.get("arguments") or ""

    def _find_call(self, delta: Message) -> Message | None:
        """Return the call that a piece belongs to; ``None`` when it begins a new one."""
        index, call_id = delta.get("index"), delta.get("id")
        same = [call for call in self._calls if index is None or call.get("index") == index]
        # Some providers number every call 0, and only the ids distinguish them.
        return None if not same or (call_id and same[-1].get("id") not in (None, "", call_id)) else same[-1]

    def finish_reply(self) -> Message | None:
        """Return the whole response; ``None`` when the stream did not say why it ended."""
        if self._reason is None:
            return None
        calls = [{key: part for key, part in call.items() if key != "index"} for call in self._calls]
        message = {**self._message, **({"tool_calls": calls} if calls else {})}
        return {"choices": [{"message": message, "finish_reason": self._reason}], "usage": self._usage}


def _with_system(messages: list[Message], text: str) -> list[Message]:
    """Return the messages with a system text; many models take one system message only, and only at the beginning."""
    if not text:
        return messages
    if not messages or messages[0].get("role") not in _SYSTEM_ROLES:
        return [{"role": "system", "content": text}, *messages]
    content = messages[0].get("content") or []
    joined = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [{**messages[0], "content": joined}, *messages[1:]]


def _name_call(call: Message, place: int) -> Message:
    """Return a call with an id: some providers give none, and a result needs one."""
    return call if call.get("id") else {**call, "id": f"call_{place}"}


def _read_call(call: Message) -> ModelCall:
    function = call.get("function") or {}
    return ModelCall(call["id"], function.get("name") or "", parse_object(function.get("arguments") or ""))


def _with_object(call: Message) -> Message:
    """Return a call as it goes back: providers parse its arguments, and fail where they are not an object."""
    function = call.get("function") or {}
    arguments = function.get("arguments") or "{}"
    whole = arguments if isinstance(parse_object(arguments), dict) else "{}"
    return {**call, "function": {**function, "arguments": whole}}


def _read_usage(usage: Message) -> Usage:
    details = usage.get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens") or 0
    return Usage(usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0, cached)


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

_FORMATS: dict[str, _ChatFormat | ResponsesFormat] = {"chat": _ChatFormat(), "responses": ResponsesFormat()}


class Skills(MessageSkills):
    """Skills for an ``OpenAI`` client, or another that is compatible with it, plain or asynchronous.

    ``run``, ``arun`` and ``stream`` take ``api`` besides: ``"chat"``, the default, for Chat Completions, which nearly
    every provider offers, or ``"responses"`` for Responses.
    """

    def _pick_format(self, options: dict[str, Any]) -> _ChatFormat | ResponsesFormat:
        api = options.pop("api", "chat")
        if api not in _FORMATS:
            raise_bad_argument("api", "must be 'chat' or 'responses'", api)
        return _FORMATS[api]

    @overload
    def tools(self, api: Literal["chat"] = "chat") -> list[OpenAITool]: ...

    @overload
    def tools(self, api: Literal["responses"]) -> list[OpenAIResponsesTool]: ...

    def tools(self, api: Literal["chat", "responses"] = "chat") -> list[OpenAITool] | list[OpenAIResponsesTool]:
        """Return each skill tool that a conversation can be offered, in the shape of one of the two APIs."""
        if api == "responses":
            return [tool.to_openai_responses() for tool in self.list_definitions()]
        return [tool.to_openai() for tool in self.list_definitions()]

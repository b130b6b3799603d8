"""The wire formats of four model APIs: how a request is read, and how an answer is streamed or given whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.model_moves import Answer, ModelRequest, ToolCall, texts_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODEL = "fake-model"
INPUT_TOKENS, CACHED_TOKENS, OUTPUT_TOKENS = 12, 4, 5
"""What each answer says that it cost; the cached tokens are part of the input."""


class WireFormat(NamedTuple):
    """One API: how its requests are read, how its answers are streamed and given whole, and how it says errors."""

    read: Callable[[dict[str, Any]], ModelRequest]
    stream: Callable[[Answer, int], Iterator[dict[str, Any]]]
    whole: Callable[[Answer, int], dict[str, Any]]
    error: Callable[[int], dict[str, Any]]
    find_fault: Callable[[dict[str, Any]], str] = lambda _: ""
    """Returns why the provider would refuse a request, ``""`` when it would not: calls need their results."""
    last_line: str = ""
    """What ends a stream, besides the end of the connection."""


def _last_said(texts: list[str]) -> str:
    return texts[-1] if texts else ""


def _json_text(call: ToolCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


# -- Anthropic: POST /v1/messages --------------------------------------------------------------------------------------

_ANTHROPIC_ENDINGS = {"length": "max_tokens", "refusal": "refusal"}
_ANTHROPIC_ERRORS = {429: "rate_limit_error", 529: "overloaded_error", 401: "authentication_error"}


def _read_messages(body: dict[str, Any]) -> ModelRequest:
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    tools = {tool["name"]: tool.get("description", "") for tool in body.get("tools", [])}
    results = ["\n".join(texts_in([part.get("text") for part in _parts(block["content"])])) for block in blocks]
    said = [
        text
        for message in body["messages"]
        if message["role"] == "user"
        for text in texts_in([part.get("text") for part in _parts(message["content"])])
    ]
    system = "\n".join(part["text"] for part in _parts(body.get("system", "")))
    return ModelRequest(body, tools, results, system, _last_said(said))


def _parts(content: Any) -> list[dict[str, Any]]:
    """Return content as a list of parts; plain text is one."""
    return [{"text": content}] if isinstance(content, str) else list(content or [])


def _find_message_fault(body: dict[str, Any]) -> str:
    """Return what is wrong with calls and results: a message begins with the results of all calls of the one before."""
    calls: list[str] = []
    for message in [*body["messages"], {"content": []}]:
        parts = _parts(message["content"])
        results = [part["tool_use_id"] for part in parts if part.get("type") == "tool_result"]
        first = [part.get("tool_use_id") for part in parts[: len(calls)]]
        if sorted(results) != sorted(calls) or set(first) != set(calls):
            return f"the calls {calls} are not followed by their results, but by {results}"
        calls = [part["id"] for part in parts if part.get("type") == "tool_use"]
    return ""


def _message_head(number: int) -> dict[str, Any]:
    usage = {"input_tokens": INPUT_TOKENS - CACHED_TOKENS, "output_tokens": 1, "cache_read_input_tokens": CACHED_TOKENS}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _message_reason(answer: Answer) -> str:
    return _ANTHROPIC_ENDINGS.get(answer.ending) or ("tool_use" if answer.calls else "end_turn")


def _stream_message(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": _message_head(number)}
    index = 0
    if answer.text or not answer.calls:
        deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces]
        yield from _stream_block(index, {"type": "text", "text": ""}, deltas)
        index += 1
    for place, call in enumerate(answer.calls):
        block = {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": call.tool, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": half} for half in _halves(_json_text(call))]
        yield from _stream_block(index + place, block, deltas)
    reason = {"stop_reason": _message_reason(answer), "stop_sequence": None}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield {"type": "message_stop"}


def _stream_block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_start", "index": index, "content_block": block}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _whole_message(answer: Answer, number: int) -> dict[str, Any]:
    message = _message_head(number)
    text = [{"type": "text", "text": answer.text}] if answer.text or not answer.calls else []
    # Without a stream this API has parsed the arguments, so that malformed ones are of a wrong type.
    calls = [
        {"type": "tool_use", "id": f"toolu_{number}_{place}", "name": call.tool, "input": call.arguments}
        for place, call in enumerate(answer.calls)
    ]
    usage = {**message["usage"], "output_tokens": OUTPUT_TOKENS}
    return {**message, "content": [*text, *calls], "stop_reason": _message_reason(answer), "usage": usage}


def _message_error(status: int) -> dict[str, Any]:
    kind = _ANTHROPIC_ERRORS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"the provider answers with {status}"}}


# -- OpenAI: POST /v1/responses ----------------------------------------------------------------------------------------


def _tools_in(tools: list[dict[str, Any]]) -> dict[str, str]:
    """The functions of a list of tools; those of a namespace go by its name and theirs."""
    functions = {}
    for tool in tools:
        if tool["type"] == "namespace":
            inner = _tools_in(tool["tools"])
            functions.update({f"{tool['name']}/{name}": text for name, text in inner.items()})
        elif "name" in tool:
            functions[tool["name"]] = tool.get("description") or ""
    return functions


def _read_responses(body: dict[str, Any]) -> ModelRequest:
    given = [{"role": "user", "content": body["input"]}] if isinstance(body["input"], str) else body["input"]
    items = [item for item in given if isinstance(item, dict)]
    outputs = [item["output"] for item in items if item.get("type") == "function_call_output"]
    results = ["\n".join(texts_in([part.get("text") for part in _parts(output)])) for output in outputs]
    said = [
        text
        for item in items
        if item.get("role") == "user"
        for text in texts_in([part.get("text") for part in _parts(item["content"])])
    ]
    tools = _tools_in(body.get("tools") or [])
    return ModelRequest(body, tools, results, body.get("instructions") or "", _last_said(said))


def _find_response_fault(body: dict[str, Any]) -> str:
    """Return what is wrong with calls and results: each call has one result, which comes after it."""
    items = [item for item in body["input"] if isinstance(item, dict)] if isinstance(body["input"], list) else []
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    return "" if sorted(calls) == sorted(results) else f"the calls {calls} have the results {results}"


def _response_head(number: int) -> dict[str, Any]:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _response_items(answer: Answer, number: int) -> list[dict[str, Any]]:
    text = {"type": "output_text", "text": answer.text, "annotations": []}
    part = {"type": "refusal", "refusal": answer.text} if answer.ending == "refusal" else text
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [part]}
    calls = [_response_call(call, f"{number}_{place}") for place, call in enumerate(answer.calls)]
    return [*([message] if answer.text or not calls else []), *calls]


def _response_call(call: ToolCall, mark: str) -> dict[str, Any]:
    namespace, _, name = call.tool.rpartition("/")
    return {
        "type": "function_call",
        "id": f"fc_{mark}",
        "call_id": f"call_{mark}",
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "arguments": _json_text(call),
        "status": "completed",
    }


def _whole_response(answer: Answer, number: int) -> dict[str, Any]:
    usage = {
        "input_tokens": INPUT_TOKENS,
        "input_tokens_details": {"cached_tokens": CACHED_TOKENS, "cache_write_tokens": 0},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }
    is_cut = answer.ending == "length"
    details = {"reason": "max_output_tokens"} if is_cut else None
    status = {"status": "incomplete" if is_cut else "completed", "incomplete_details": details}
    return {**_response_head(number), **status, "output": _response_items(answer, number), "usage": usage}


def _stream_response(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    """Yield the events of a response, numbered as the API numbers them."""
    for place, event in enumerate(_response_events(answer, number)):
        yield {**event, "sequence_number": place}


def _response_events(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    done = _whole_response(answer, number)
    yield {"type": "response.created", "response": {**_response_head(number), "status": "in_progress"}}
    for index, item in enumerate(done["output"]):
        is_text = item["type"] == "message"
        begun = {**item, "status": "in_progress", **({"content": []} if is_text else {"arguments": ""})}
        yield {"type": "response.output_item.added", "output_index": index, "item": begun}
        yield from _text_events(answer, item, index) if is_text else _argument_events(item, index)
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{done['status']}", "response": done}


def _text_events(answer: Answer, item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    kind, key = ("refusal", "refusal") if part["type"] == "refusal" else ("output_text", "text")
    more: dict[str, Any] = {} if kind == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **where, "part": {**part, key: ""}}
    for piece in answer.pieces:
        yield {"type": f"response.{kind}.delta", **where, "delta": piece, **more}
    yield {"type": f"response.{kind}.done", **where, key: answer.text, **more}
    yield {"type": "response.content_part.done", **where, "part": part}


def _argument_events(item: dict[str, Any], index: int) -> Iterator[dict[str, Any]]:
    where = {"item_id": item["id"], "output_index": index}
    for half in _halves(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **where, "delta": half}
    whole = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done", **where, **whole}


def _openai_error(status: int) -> dict[str, Any]:
    kind = "rate_limit_exceeded" if status == 429 else "server_error"
    return {"error": {"message": f"the provider answers with {status}", "type": kind, "code": kind, "param": None}}


# -- OpenAI and those compatible with it: POST /v1/chat/completions ----------------------------------------------------

_CHAT_ENDINGS = {"length": "length", "refusal": "content_filter"}


def _read_chat(body: dict[str, Any]) -> ModelRequest:
    by_role: dict[str, list[str]] = {"system": [], "user": [], "tool": [], "assistant": []}
    for message in body["messages"]:
        role = "system" if message["role"] == "developer" else message["role"]
        by_role[role].append("\n".join(texts_in([part.get("text") for part in _parts(message.get("content"))])))
    functions = [tool["function"] for tool in body.get("tools") or [] if "function" in tool]  # not the provider's own
    tools = {function["name"]: function.get("description", "") for function in functions}
    said = [text for text in by_role["user"] if text]
    return ModelRequest(body, tools, by_role["tool"], "\n".join(by_role["system"]), _last_said(said))


def _find_chat_fault(body: dict[str, Any]) -> str:
    """Return what is wrong with calls and results: the results of all calls follow them, before anything else."""
    calls: set[str] = set()
    for message in [*body["messages"], {"role": "user"}]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in calls:
                return f"there is a result of {message['tool_call_id']}, and the calls {sorted(calls)}"
            calls.remove(message["tool_call_id"])
            continue
        if calls:
            return f"the calls {sorted(calls)} have no results"
        calls = {call["id"] for call in message.get("tool_calls") or ()}
    return ""


def _chat_calls(answer: Answer, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call.tool, "arguments": _json_text(call)},
        }
        for place, call in enumerate(answer.calls)
    ]


def _chat_reason(answer: Answer) -> str:
    return _CHAT_ENDINGS.get(answer.ending) or ("tool_calls" if answer.calls else "stop")


def _chat_usage() -> dict[str, Any]:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        "prompt_tokens_details": {"cached_tokens": CACHED_TOKENS},
    }


def _whole_chat(answer: Answer, number: int) -> dict[str, Any]:
    calls = _chat_calls(answer, number)
    is_refusal = answer.ending == "refusal"
    message: dict[str, Any] = {"role": "assistant", "content": None if is_refusal else answer.text or None}
    message |= {"refusal": answer.text if is_refusal else None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": _chat_reason(answer), "logprobs": None}
    head = {"id": f"chatcmpl_{number}", "object": "chat.completion", "created": 0, "model": MODEL}
    return {**head, "choices": [choice], "usage": _chat_usage()}


def _stream_chat(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    head = {"id": f"chatcmpl_{number}", "object": "chat.completion.chunk", "created": 0, "model": MODEL}
    for delta in _chat_deltas(answer, number):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "usage": None}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": _chat_reason(answer)}], "usage": None}
    yield {**head, "choices": [], "usage": _chat_usage()}


def _chat_deltas(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in answer.pieces if answer.text else ():
        yield {"refusal" if answer.ending == "refusal" else "content": piece}
    for place, call in enumerate(_chat_calls(answer, number)):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{"index": place, **call, "function": function}]}
        for half in _halves(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": place, "function": {"arguments": half}}]}


# -- Google: POST /v1beta/models/NAME:streamGenerateContent and :generateContent ---------------------------------------


def _read_contents(body: dict[str, Any]) -> ModelRequest:
    parts = [part for content in body["contents"] for part in content["parts"]]
    results = ["\n".join(texts_in(part["functionResponse"])) for part in parts if "functionResponse" in part]
    declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    said = [
        part["text"]
        for content in body["contents"]
        if content.get("role", "user") == "user"
        for part in content["parts"]
        if "text" in part
    ]
    system = "\n".join(texts_in(body.get("systemInstruction", {}).get("parts", [])))
    tools = {one["name"]: one.get("description", "") for one in declared}
    return ModelRequest(body, tools, results, system, _last_said(said))


def _whole_contents(answer: Answer, number: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": answer.text}] if answer.text or not answer.calls else []
    for place, call in enumerate(answer.calls):
        parts.append({"functionCall": {"id": f"call_{number}_{place}", "name": call.tool, "args": call.arguments}})
    reason = {"length": "MAX_TOKENS", "refusal": "SAFETY"}.get(answer.ending, "STOP")
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": INPUT_TOKENS,
            "candidatesTokenCount": OUTPUT_TOKENS,
            "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS,
        },
        "modelVersion": MODEL,
    }


def _stream_contents(answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    yield _whole_contents(answer, number)


def _google_error(status: int) -> dict[str, Any]:
    kind = "RESOURCE_EXHAUSTED" if status == 429 else "INTERNAL"
    return {"error": {"code": status, "message": f"the provider answers with {status}", "status": kind}}


_GOOGLE = WireFormat(_read_contents, _stream_contents, _whole_contents, _google_error)
_CHAT = WireFormat(_read_chat, _stream_chat, _whole_chat, _openai_error, _find_chat_fault, "data: [DONE]\n\n")
FORMATS = {
    "/v1/messages": WireFormat(_read_messages, _stream_message, _whole_message, _message_error, _find_message_fault),
    "/responses": WireFormat(_read_responses, _stream_response, _whole_response, _openai_error, _find_response_fault),
    "/chat/completions": _CHAT,
    ":streamGenerateContent": _GOOGLE,
    ":generateContent": _GOOGLE,
}
"""By the end of the path."""

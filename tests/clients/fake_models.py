"""Model providers on loopback, for real clients: the wire formats of three APIs around one scripted model.

A client is pointed at ``Provider.url`` and believes that it talks to Anthropic (Messages), OpenAI (Responses) or Google
(generateContent). Each request is kept in the terms that the tests ask about, and answered by the move of the script.
Requests without tools are a client's own errands (a title, a health check): they are answered, and not kept.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MODEL = "fake-model"


@dataclass(frozen=True)
class ToolCall:
    """A move of the model: it calls a tool, by the name that the client gave it."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Text:
    """A move of the model: it answers with text, which ends its turn."""

    text: str


Move = ToolCall | Text


@dataclass(frozen=True)
class ModelRequest:
    """What a client sent to the model, in one form for every provider."""

    body: dict[str, Any]
    tools: dict[str, str]
    """The description of each tool, by its name."""
    results: list[str]
    """What the calls so far have answered, in their order."""

    def tool_named(self, ending: str) -> str | None:
        """The name of the tool that ends so: clients put the server's name before it; ``None`` where there is none."""
        return next((name for name in self.tools if name.endswith(ending)), None)

    @property
    def text(self) -> str:
        """Every text of the request, wherever the client has put it."""
        return "\n".join(_texts_in(self.body))


Script = "Callable[[ModelRequest], Move]"


@dataclass
class Provider:
    """A running provider: its address, and what it was asked."""

    url: str
    requests: list[ModelRequest] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Paths that it has no answer for."""
    failures: list[Exception] = field(default_factory=list)
    """What the script raised; the client is told that all is done, so that it ends instead of asking again."""


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _texts_in(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts_in(part)


# -- Anthropic: POST /v1/messages --------------------------------------------------------------------------------------


def _read_messages(body: dict[str, Any]) -> ModelRequest:
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    tools = {tool["name"]: tool.get("description", "") for tool in body.get("tools", [])}
    return ModelRequest(body, tools, ["\n".join(_texts_in(block["content"])) for block in blocks])


def _write_messages(move: Move, number: int) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL, "content": []}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    if isinstance(move, ToolCall):
        block: dict[str, Any] = {"type": "tool_use", "id": f"toolu_{number}", "name": move.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(move.arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": move.text}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "tool_use" if isinstance(move, ToolCall) else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def _whole_message(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer of a request that did not ask for a stream."""
    message, block, delta = events[0]["message"], events[1]["content_block"], events[2]["delta"]
    content = {
        **block,
        **({"text": delta["text"]} if "text" in delta else {"input": json.loads(delta["partial_json"])}),
    }
    return {**message, "content": [content], "stop_reason": events[-2]["delta"]["stop_reason"]}


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
    items = [item for item in body["input"] if isinstance(item, dict)]
    results = ["\n".join(_texts_in(item["output"])) for item in items if item.get("type") == "function_call_output"]
    return ModelRequest(body, _tools_in(body.get("tools") or []), results)


def _write_responses(move: Move, number: int) -> Iterator[dict[str, Any]]:
    response = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }
    yield {"type": "response.created", "response": {**response, "status": "in_progress"}}
    item = _response_item(move, number)
    yield {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {
        "input_tokens": 1,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 2,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def _response_item(move: Move, number: int) -> dict[str, Any]:
    if isinstance(move, Text):
        content = [{"type": "output_text", "text": move.text, "annotations": []}]
        return {
            "type": "message",
            "id": f"msg_{number}",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    namespace, _, name = move.tool.rpartition("/")
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "arguments": json.dumps(move.arguments),
        "status": "completed",
    }


# -- Google: POST /v1beta/models/NAME:streamGenerateContent and :generateContent ---------------------------------------


def _read_contents(body: dict[str, Any]) -> ModelRequest:
    parts = [part for content in body["contents"] for part in content["parts"]]
    results = ["\n".join(_texts_in(part["functionResponse"])) for part in parts if "functionResponse" in part]
    declared = [one for tool in body.get("tools", []) for one in tool.get("functionDeclarations", [])]
    return ModelRequest(body, {one["name"]: one.get("description", "") for one in declared}, results)


def _write_contents(move: Move, number: int) -> Iterator[dict[str, Any]]:
    part: dict[str, Any] = {"text": move.text} if isinstance(move, Text) else {}
    if isinstance(move, ToolCall):
        part = {"functionCall": {"id": f"call_{number}", "name": move.tool, "args": move.arguments}}
    yield {
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": MODEL,
    }


# -- the server --------------------------------------------------------------------------------------------------------

_Reader = "Callable[[dict[str, Any]], ModelRequest]"
_FORMATS: dict[str, tuple[Any, Any, Any]] = {
    "/v1/messages": (_read_messages, _write_messages, _whole_message),
    "/v1/responses": (_read_responses, _write_responses, lambda events: events[-1]["response"]),
    ":streamGenerateContent": (_read_contents, _write_contents, lambda events: events[0]),
    ":generateContent": (_read_contents, _write_contents, lambda events: events[0]),
}
"""By the end of the path: how a request is read, how an answer is streamed, and how it is given whole."""


def _event_text(event: dict[str, Any]) -> str:
    """One server-sent event; those of Google have no type."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider
    script: Callable[[ModelRequest], Move]
    lock: threading.Lock

    def do_GET(self) -> None:
        self._refuse()

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = self.path.partition("?")[0]
        formats = next((row for ending, row in _FORMATS.items() if path.endswith(ending)), None)
        if formats is None:
            self._refuse()
            return
        read, write, whole = formats
        request: ModelRequest = read(json.loads(body))
        events = list(write(*self._decide(request)))
        if request.body.get("stream") or path.endswith(":streamGenerateContent"):
            self._send("".join(map(_event_text, events)).encode(), "text/event-stream")
        else:
            self._send(json.dumps(whole(events)).encode(), "application/json")

    def _decide(self, request: ModelRequest) -> tuple[Move, int]:
        """The script's move; one at a time, since clients run errands beside the conversation."""
        if not request.tools:
            return Text("ok"), 0
        with self.lock:
            self.provider.requests.append(request)
            try:
                move = self.script(request)
            except Exception as error:  # noqa: BLE001 - raised where the test sees it
                self.provider.failures.append(error)
                move = Text("failed")
            return move, len(self.provider.requests)

    def _refuse(self) -> None:
        self.provider.unknown.append(self.path)
        self._send(b'{"error": {"message": "no such path", "type": "not_found"}}', "application/json", status=404)

    def _send(self, content: bytes, kind: str, *, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing: the tests read what was asked from the provider."""


@contextmanager
def provide(script: Callable[[ModelRequest], Move]) -> Iterator[Provider]:
    """A provider whose model makes the moves of the script, for as long as the block runs.

    Raises what the script raised when the block ends.
    """
    provider = Provider("")
    names = {"provider": provider, "script": staticmethod(script), "lock": threading.Lock()}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), names)) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
    if provider.failures:
        raise provider.failures[0]

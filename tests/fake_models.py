"""Model providers on loopback, for real clients and SDKs: the wire formats of four APIs around one scripted model.

A client is pointed at ``Provider.url`` and believes that it talks to Anthropic (Messages), to OpenAI (Responses, Chat
Completions) or to Google (generateContent). Each request is kept in the terms that the tests ask about, and answered by
the move of the script, or by a fault: an error status, a stream that is cut, a model that is slow.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from tests.model_moves import (
    Answer,
    Calls,
    Cut,
    Failure,
    ModelRequest,
    Move,
    Raw,
    Reply,
    Slow,
    Text,
    ToolCall,
    make_answer,
    play,
    play_each,
)
from tests.wire_formats import CACHED_TOKENS, FORMATS, INPUT_TOKENS, MODEL, OUTPUT_TOKENS, WireFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "CACHED_TOKENS",
    "INPUT_TOKENS",
    "MODEL",
    "OUTPUT_TOKENS",
    "Calls",
    "Cut",
    "Failure",
    "ModelRequest",
    "Move",
    "Provider",
    "Raw",
    "Reply",
    "Slow",
    "Text",
    "ToolCall",
    "play",
    "play_each",
    "provide",
]

_WAIT_SECONDS = 30
"""The longest that a slow model waits for its client to hang up, so that a test which fails ends."""


@dataclass
class Provider:
    """A running provider: its address, and what it was asked."""

    url: str
    requests: list[ModelRequest] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    """Paths that it has no answer for."""
    failures: list[Exception] = field(default_factory=list)
    """What the script raised; the client is told that all is done, so that it ends instead of asking again. Also the
    requests that a real provider would refuse, because calls in them have no results."""
    asked: threading.Event = field(default_factory=threading.Event)
    """Set when a slow model has begun to wait."""
    hung_up: threading.Event = field(default_factory=threading.Event)
    """Set when a client has hung up on a slow model."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider
    script: Callable[[ModelRequest], Reply]
    has_errands: bool
    lock: threading.Lock

    def do_GET(self) -> None:
        self._refuse()

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        path = self.path.partition("?")[0]
        form = next((form for ending, form in FORMATS.items() if path.endswith(ending)), None)
        if form is None:
            self._refuse()
            return
        request = form.read(json.loads(body))
        fault = form.find_fault(request.body)
        if fault:
            self.provider.failures.append(ValueError(f"the provider refuses the request: {fault}"))
        reply, number = (Failure(400), 0) if fault else self._decide(request)
        try:
            self._reply(form, reply, number, is_stream=request.body.get("stream") or ":stream" in path)
        except (ConnectionError, TimeoutError):  # the client was cancelled, or did not hang up in time
            self.close_connection = True

    def _decide(self, request: ModelRequest) -> tuple[Reply, int]:
        """The script's move; one at a time, since clients run errands beside the conversation."""
        if self.has_errands and not request.tools:
            return Text("ok"), 0
        with self.lock:
            self.provider.requests.append(request)
            try:
                reply = self.script(request)
            except Exception as error:  # noqa: BLE001 - raised where the test sees it
                self.provider.failures.append(error)
                reply = Text("failed")
            return reply, len(self.provider.requests)

    def _reply(self, form: WireFormat, reply: Reply, number: int, *, is_stream: bool) -> None:
        if isinstance(reply, Failure):
            self._fail(form, reply)
            return
        if isinstance(reply, Raw):
            kind = "text/event-stream" if is_stream else "application/json"
            self._begin(kind, {"Transfer-Encoding": "chunked", **reply.headers}, reply.status)
            for piece in reply.pieces():
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        answer = make_answer(reply.move if isinstance(reply, (Cut, Slow)) else reply)
        send = self._send_stream if is_stream else self._send_whole
        send(form, answer, number, reply)

    def _send_whole(self, form: WireFormat, answer: Answer, number: int, reply: Reply) -> None:
        if isinstance(reply, Slow) and not self._wait(reply):
            return
        content = json.dumps(form.whole(answer, number)).encode()
        self._send(content, "application/json", sent=len(content) // 2 if isinstance(reply, Cut) else None)

    def _send_stream(self, form: WireFormat, answer: Answer, number: int, reply: Reply) -> None:
        events = [_event_text(event) for event in form.stream(answer, number)]
        stop = reply.events if isinstance(reply, (Cut, Slow)) else len(events)
        self._begin("text/event-stream", {"Transfer-Encoding": "chunked"})
        self._send_chunks(events[:stop])
        if isinstance(reply, Cut) or (isinstance(reply, Slow) and not self._wait(reply)):
            self.close_connection = True
            return
        self._send_chunks([*events[stop:], form.last_line])
        self.wfile.write(b"0\r\n\r\n")

    def _send_chunks(self, texts: list[str]) -> None:
        for text in filter(None, texts):
            content = text.encode()
            self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
        self.wfile.flush()

    def _wait(self, slow: Slow) -> bool:
        """Wait as a slow model does; return whether the client is still there."""
        self.provider.asked.set()
        if slow.wait is not None:
            slow.wait()
            return True
        self.connection.settimeout(_WAIT_SECONDS)
        with suppress(ConnectionError):  # a client can also hang up by a reset
            self.rfile.read(1)  # a client sends nothing more before it has its answer: this ends when it hangs up
        self.provider.hung_up.set()
        self.close_connection = True
        return False

    def _fail(self, form: WireFormat, failure: Failure) -> None:
        headers = {}
        if failure.retry_after is not None:
            # The second is what SDKs read first: tests do not wait for whole seconds.
            headers = {"Retry-After": f"{failure.retry_after:g}", "Retry-After-Ms": f"{failure.retry_after * 1000:g}"}
        content = json.dumps(form.error(failure.status)).encode()
        self._send(content, "application/json", status=failure.status, headers=headers)

    def _refuse(self) -> None:
        self.provider.unknown.append(self.path)
        self._send(b'{"error": {"message": "no such path", "type": "not_found"}}', "application/json", status=404)

    def _send(
        self,
        content: bytes,
        kind: str,
        *,
        status: int = 200,
        headers: dict[str, str] | None = None,
        sent: int | None = None,
    ) -> None:
        """Send an answer; ``sent``: only so many bytes of it, and then the connection ends."""
        self._begin(kind, {"Content-Length": str(len(content)), **(headers or {})}, status)
        self.wfile.write(content[:sent])
        self.close_connection = self.close_connection or sent is not None

    def _begin(self, kind: str, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the tests read what was asked from the provider."""


def _event_text(event: dict[str, Any]) -> str:
    """One server-sent event; those of Google and of Chat Completions have no type."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


@contextmanager
def provide(script: Callable[[ModelRequest], Reply], *, has_errands: bool = False) -> Iterator[Provider]:
    """A provider whose model makes the moves of the script, for as long as the block runs.

    ``has_errands``: requests without tools are a client's own errands (a title, a health check), which are answered and
    not kept. When the block ends, it raises what the script raised, and ``ValueError`` for a request that a real
    provider would refuse.
    """
    provider = Provider("")
    names = {"provider": provider, "script": staticmethod(script), "lock": threading.Lock(), "has_errands": has_errands}
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), names)) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        # The time that shutdown takes is the interval at which the thread looks for it.
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
    if provider.failures:
        raise provider.failures[0]

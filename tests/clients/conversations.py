"""Conversations with real clients that go on: further messages to one process, or the last one resumed by another.

Each client has a mode in which programs talk to it by lines of JSON: ``--input-format stream-json`` of Claude Code, the
app server of Codex, the Agent Client Protocol of Gemini CLI.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from tests.clients.programs import QUESTION, Start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Say = Callable[[str], None]
    """Sends a message to a client, and waits until it has answered."""


class Pipe(NamedTuple):
    """A client that is talked to by lines of JSON."""

    lines: IO[str]
    sink: IO[str]

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.sink.write(json.dumps(message) + "\n")
        self.sink.flush()

    def wait_for(self, is_wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first message that is wanted; raises ``AssertionError`` where the client ends before."""
        for line in self.lines:
            if line.startswith("{") and is_wanted(message := json.loads(line)):
                return dict(message)
        raise AssertionError("the client ended")

    def ask(self, number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        answer = self.wait_for(lambda message: message.get("id") == number and "method" not in message)
        assert "result" in answer, answer
        return dict(answer["result"])


def _begin_claude(pipe: Pipe, _work: str) -> Say:
    def say(text: str) -> None:
        pipe.send({"type": "user", "message": {"role": "user", "content": text}})
        pipe.wait_for(lambda message: message["type"] == "result")

    return say


def _begin_codex(pipe: Pipe, work: str) -> Say:
    pipe.ask(1, "initialize", {"clientInfo": {"name": "tests", "title": "Tests", "version": "1"}})
    pipe.send({"method": "initialized"})
    thread = pipe.ask(2, "thread/start", {"cwd": work, "approvalPolicy": "never", "sandbox": "read-only"})["thread"]

    def say(text: str) -> None:
        pipe.ask(3, "turn/start", {"threadId": thread["id"], "input": [{"type": "text", "text": text}]})
        pipe.wait_for(lambda message: message.get("method") == "turn/completed")

    return say


def _begin_gemini(pipe: Pipe, work: str) -> Say:
    files = {"readTextFile": False, "writeTextFile": False}
    pipe.ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {"fs": files}})
    session = pipe.ask(2, "session/new", {"cwd": work, "mcpServers": []})["sessionId"]

    def say(text: str) -> None:
        pipe.ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    return say


def _stream_claude(words: list[str]) -> list[str]:
    streams = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    return [*(word for word in words if word != QUESTION), *streams]


_PROTOCOLS: dict[str, tuple[Callable[[list[str]], list[str]], Callable[[Pipe, str], Say]]] = {
    "claude-code": (_stream_claude, _begin_claude),
    "codex": (lambda _: ["app-server"], _begin_codex),
    "gemini": (lambda words: ["--acp", *words[2:]], _begin_gemini),
}
"""By the name of its configuration: the arguments that make a client talk by lines, and how a conversation begins."""


@contextmanager
def converse(configuration: str, command: list[str], home: Path, start: Start) -> Iterator[Say]:
    """A conversation with one process of a client; it sends a message and waits for the answer."""
    arguments, begin = _PROTOCOLS[configuration]
    with (home / "errors").open("w") as errors:
        client = subprocess.Popen(
            [*command, *arguments(start.arguments)],
            cwd=home / "work",
            env=start.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        yield begin(Pipe(client.stdout, client.stdin), str(home / "work"))
    finally:
        client.stdin.close()
        # Its own processes too: Gemini CLI runs in one that it starts.
        _end_group(client.pid)
        client.wait()
        client.stdout.close()


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def resume_words(configuration: str, start: Start) -> list[str]:
    """The arguments with which a client goes on with its last conversation in a new process, by the question again."""
    return {
        "claude-code": [*start.arguments, "--continue"],
        "codex": ["exec", "resume", "--last", "--skip-git-repo-check", QUESTION],
        "gemini": [*start.arguments, "--resume", "latest"],
    }[configuration]

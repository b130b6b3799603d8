"""A client on standard input and output, with a server in a process of its own."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pytest

from prowess.limits import DEFAULT_LIMITS
from tests.fork_server import fork_server_for

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fork_server import ForkedProcess

PROGRAM = Path(__file__).parents[1] / "cli" / "command_inside.py"
CLIENT = {"name": "tests", "version": "1"}
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}
READY = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
MANY = 400
PADDING = b" " * 500

pytestmark = pytest.mark.skipif(os.name == "nt", reason="only POSIX can wait for a pipe")


def ask(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


OPENING = ask(0, "initialize", **HELLO)


class Served(NamedTuple):
    """A server in a process of its own, with both ends of its streams."""

    process: ForkedProcess
    sink: IO[bytes]
    lines: IO[bytes]
    errors: IO[bytes]

    def read(self, count: int) -> dict[Any, dict[str, Any]]:
        """The next answers, by their ids."""
        answers = [json.loads(self.lines.readline()) for _ in range(count)]
        return {answer.get("id"): answer for answer in answers}

    def end(self) -> tuple[int, bytes, bytes]:
        """Close its input; its exit status, what else it answered, and what it wrote to its error stream."""
        if not self.sink.closed:
            self.sink.close()
        status = self.process.wait()
        self.errors.seek(0)
        return status, self.lines.read(), self.errors.read()


@pytest.fixture
def served(library: Path) -> Iterator[Served]:
    """A server of the library."""
    with serve(library) as made:
        yield made


@contextmanager
def serve(library: Path, *words: str) -> Iterator[Served]:
    (stdin, write), (read, stdout) = os.pipe(), os.pipe()
    with os.fdopen(write, "wb", buffering=0) as sink, os.fdopen(read, "rb") as lines, TemporaryFile() as errors:
        line = ["serve", str(library), "--no-watch", "--json", *words]
        process = fork_server_for(PROGRAM).fork(line, {}, None, stdin=stdin, stdout=stdout, stderr=errors)
        os.close(stdin)
        os.close(stdout)
        try:
            yield Served(process, sink, lines, errors)
        finally:
            process.kill()


def test_a_client_gets_an_answer_to_each_request(served: Served) -> None:
    served.sink.write(OPENING)
    assert "instructions" in served.read(1)[0]["result"]
    served.sink.write(READY + ask(1, "tools/list") + ask(2, "ping"))
    assert set(served.read(2)) == {1, 2}
    served.sink.write(ask(3, "tools/call", name="load_skill", arguments={"name": "pdf"}))
    assert "Do it." in served.read(1)[3]["result"]["content"][0]["text"]
    served.sink.write(ask(4, "prompts/list"))
    assert served.read(1)[4]["result"]["prompts"]
    assert served.end() == (0, b"", b"")


def test_a_client_that_says_nothing_and_closes_its_input_ends_the_server(served: Served) -> None:
    assert served.end() == (0, b"", b"")


def test_a_line_without_an_end_is_the_last_one(served: Served) -> None:
    served.sink.write(OPENING + READY + ask(1, "ping").rstrip())
    status, rest, errors = served.end()
    # The SDK may find that the client is gone before it has answered.
    assert json.loads(rest.splitlines()[0])["id"] == 0
    assert (status, errors) == (0, b"")


def test_a_line_that_comes_in_two_parts_is_one_line(served: Served) -> None:
    line = ask(1, "tools/list")
    served.sink.write(OPENING + READY + line[:20])
    assert set(served.read(1)) == {0}
    served.sink.write(line[20:])
    assert set(served.read(1)) == {1}
    assert served.end() == (0, b"", b"")


def test_a_line_may_end_long_after_its_beginning(served: Served) -> None:
    served.sink.write(OPENING + READY + ask(1, "tools/call", name="none")[:-1])
    assert set(served.read(1)) == {0}
    served.sink.write(b"\n")
    assert "unknown tool" in served.read(1)[1]["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    "line",
    [
        b"{\n",
        b"[]\n",
        b'"\xff"\n',
        b"\n",
        b"1\n",
        b'{"jsonrpc":"2.0","method":"x","params":"' + b"y" * 200_000 + b'"}\n',
    ],
    ids=["no JSON", "a batch", "no UTF-8", "an empty line", "no object", "a huge line"],
)
def test_a_broken_line_between_requests_harms_none_of_them(served: Served, line: bytes) -> None:
    served.sink.write(OPENING + READY)
    assert set(served.read(1)) == {0}
    served.sink.write(line + ask(1, "tools/list") + ask(2, "tools/call", name="none"))
    answers: dict[Any, dict[str, Any]] = {}
    while not {1, 2} <= answers.keys():
        answers |= served.read(1)
    assert "tools" in answers[1]["result"]
    assert served.end()[0] == 0


def test_a_client_may_send_many_requests_before_it_reads_an_answer(served: Served) -> None:
    """It must not wait for a server that waits for it: both pipes are full."""
    served.sink.write(OPENING + READY)
    assert set(served.read(1)) == {0}
    served.sink.write(b"".join(PADDING + ask(number, "tools/list") for number in range(1, MANY)))
    assert set(served.read(MANY - 1)) == set(range(1, MANY))
    assert served.end() == (0, b"", b"")


@pytest.mark.full
def test_a_large_library_has_its_listing_in_the_tools_and_not_in_the_handshake(library: Path) -> None:
    for number in range(DEFAULT_LIMITS.max_awaited_entries):
        (library / f"empty-{number}").mkdir()
    with serve(library) as served:
        served.sink.write(OPENING + READY + ask(1, "tools/list"))
        answers = served.read(2)
        assert "- pdf: " not in answers[0]["result"]["instructions"]
        assert "- pdf: " in str(answers[1]["result"]["tools"])
        assert served.end()[0] == 0

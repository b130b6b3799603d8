"""Whoever tries tokens on HTTP is told to wait longer and longer; a client that is at work never waits."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from prowess import Limits
from prowess.mcp.http import RequestGuard
from prowess.serving.access import make_access
from prowess.serving.rate_limits import WrongTokens
from tests.hostile.http_servers import served
from tests.mcp_peers import put, skill_md

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, MutableMapping
    from pathlib import Path

    from tests.hostile.http_servers import Reply, Served

TOKEN = "a-long-random-token-0123456789"  # noqa: S105 - of the tests
GUESSES = 300


@pytest.fixture
def root(tmp_path: Path) -> Path:
    put(tmp_path, "notes/SKILL.md", skill_md("notes"))
    return tmp_path


def ask_with(server: Served, token: str) -> Reply:
    return server.ask("skills/list", f"Authorization: Bearer {token}")


def wait_of(reply: Reply) -> int:
    (seconds,) = re.findall(r"(?im)^retry-after: (\d+)\r?$", reply.head)
    return int(seconds)


def test_an_address_that_tries_tokens_is_told_to_wait(root: Path) -> None:
    with served(root, token=TOKEN, max_http_wrong_tokens=3) as server:
        began = time.monotonic()
        replies = [ask_with(server, f"{TOKEN}{number}") for number in range(GUESSES)]
        spent = time.monotonic() - began
        found = Counter(reply.status for reply in replies)
        # One more is judged after each wait, and each wait is twice the one before: 1, 2, 4 … seconds.
        assert 3 <= found[401] <= 3 + int(spent + 1).bit_length()
        assert found[401] + found[429] == GUESSES
        assert [reply.status for reply in replies[:3]] == [401, 401, 401]
        assert all(wait_of(reply) >= 1 for reply in replies if reply.status == 429)


def test_a_client_at_work_is_admitted_however_many_others_of_its_address_guess(root: Path) -> None:
    with served(root, token=TOKEN, max_http_wrong_tokens=1) as server:
        assert ask_with(server, TOKEN).status == 200
        for number in range(20):
            assert ask_with(server, f"{TOKEN}{number}").status in {401, 429}
            assert ask_with(server, TOKEN).status == 200


def test_a_request_without_a_token_is_not_an_attempt_to_guess_one(root: Path) -> None:
    with served(root, token=TOKEN, max_http_wrong_tokens=1) as server:
        assert {server.ask("skills/list").status for _ in range(10)} == {401}
        assert ask_with(server, "wrong").status == 401
        assert {server.ask("skills/list").status for _ in range(10)} == {401}


class Clock:
    """A time that only goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def statuses_of(guard: RequestGuard, tokens: Iterable[str]) -> list[int]:
    """The status of the answer to one request with each token, all from one address."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(dict(message))

    async def ask_with_each() -> None:
        for token in tokens:
            headers = [(b"host", b"localhost:8848"), (b"authorization", f"Bearer {token}".encode())]
            scope = {"type": "http", "method": "POST", "headers": headers, "client": ("203.0.113.5", 1)}
            await guard({**scope, "server": ("127.0.0.1", 8848)}, receive, send)

    asyncio.run(ask_with_each())
    return [message["status"] for message in sent if message["type"] == "http.response.start"]


async def answer_ok(_scope: object, _receive: object, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})


def test_during_a_wait_no_token_is_judged_so_the_right_one_cannot_be_told_from_others() -> None:
    clock = Clock()
    guard = RequestGuard(answer_ok, make_access("127.0.0.1", (), (), TOKEN), Limits(max_http_wrong_tokens=1), clock)
    assert statuses_of(guard, ["wrong", "wrong", TOKEN]) == [401, 429, 429]
    clock.now += 2.0
    assert statuses_of(guard, [TOKEN, "wrong", "wrong", TOKEN]) == [200, 401, 429, 200]


def test_each_wait_is_twice_the_one_before_up_to_the_limit() -> None:
    clock = Clock()
    wrong = WrongTokens(limit=2, longest=10.0, clock=clock)
    waits = []
    for _ in range(8):
        assert wrong.record_wrong("a") == 0.0
        if (wait := wrong.record_wrong("a")) == 0.0:  # the second one that is free
            wait = wrong.record_wrong("a")
        waits.append(wait)
        clock.now += wait
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]


def test_impatience_makes_no_wait_longer_and_other_addresses_do_not_wait() -> None:
    clock = Clock()
    wrong = WrongTokens(limit=1, longest=60.0, clock=clock)
    assert wrong.record_wrong("a") == 0.0
    assert [wrong.record_wrong("a") for _ in range(100)] == [1.0] * 100
    clock.now += 0.25
    assert wrong.record_wrong("a") == 0.75
    assert wrong.record_wrong("b") == 0.0


def test_an_address_that_was_quiet_for_as_long_as_the_longest_wait_begins_anew() -> None:
    clock = Clock()
    wrong = WrongTokens(limit=2, longest=60.0, clock=clock)
    assert [wrong.record_wrong("a") for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 61.5
    assert [wrong.record_wrong("a") for _ in range(3)] == [0.0, 0.0, 1.0]


def test_of_too_many_addresses_the_one_that_was_longest_silent_is_forgotten() -> None:
    wrong = WrongTokens(limit=1, longest=60.0, clock=Clock())
    for number in range(5_000):
        assert wrong.record_wrong(f"address {number}") == 0.0
    assert len(wrong) <= 1_024
    assert wrong.record_wrong("address 4999") > 0.0
    assert wrong.record_wrong("address 0") == 0.0

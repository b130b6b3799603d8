"""Whoever tries tokens on HTTP is told to wait longer and longer; whoever has the right one never waits."""

from __future__ import annotations

import re
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from prowess.mcp.guard import WrongTokens
from tests.hostile.web import served
from tests.talking import put, skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from tests.hostile.web import Reply, Served

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


def test_the_right_token_is_admitted_however_many_were_wrong(root: Path) -> None:
    with served(root, token=TOKEN, max_http_wrong_tokens=1) as server:
        for number in range(20):
            assert ask_with(server, f"{TOKEN}{number}").status in {401, 429}
            assert ask_with(server, TOKEN).status == 200


def test_a_request_without_a_token_is_no_attempt_to_guess_one(root: Path) -> None:
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


def test_each_wait_is_twice_the_one_before_up_to_the_limit() -> None:
    clock = Clock()
    wrong = WrongTokens(most=2, longest=10.0, clock=clock)
    waits = []
    for _ in range(8):
        assert wrong.note("a") == 0.0
        if (wait := wrong.note("a")) == 0.0:  # the second one that is free
            wait = wrong.note("a")
        waits.append(wait)
        clock.now += wait
    assert waits == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]


def test_impatience_makes_no_wait_longer_and_other_addresses_do_not_wait() -> None:
    clock = Clock()
    wrong = WrongTokens(most=1, longest=60.0, clock=clock)
    assert wrong.note("a") == 0.0
    assert [wrong.note("a") for _ in range(100)] == [1.0] * 100
    clock.now += 0.25
    assert wrong.note("a") == 0.75
    assert wrong.note("b") == 0.0


def test_an_address_that_was_quiet_for_as_long_as_the_longest_wait_begins_anew() -> None:
    clock = Clock()
    wrong = WrongTokens(most=2, longest=60.0, clock=clock)
    assert [wrong.note("a") for _ in range(3)] == [0.0, 0.0, 1.0]
    clock.now += 61.5
    assert [wrong.note("a") for _ in range(3)] == [0.0, 0.0, 1.0]


def test_of_too_many_addresses_the_one_that_was_longest_silent_is_forgotten() -> None:
    wrong = WrongTokens(most=1, longest=60.0, clock=Clock())
    for number in range(5_000):
        assert wrong.note(f"address {number}") == 0.0
    assert len(wrong) <= 1_024
    assert wrong.note("address 4999") > 0.0
    assert wrong.note("address 0") == 0.0

"""The fuzzer: every parser with few inputs, the same again by its seed, and a raw exception is what fails it."""

from __future__ import annotations

import re
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import prowess
from bench import fuzz

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def test_disturbed_inputs_raise_nothing_but_typed_errors(
    seed: int, full: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    count = 5_000 if full else 200
    status = fuzz.main(["--seed", str(seed), "--inputs", str(count), "--seconds", "100000", "--pumps", "0"])
    said = capsys.readouterr().out
    assert status == 0, said
    rows = re.findall(r"^([a-z-]+) +([0-9,]+) inputs", said, re.MULTILINE)
    assert {name for name, _ in rows} >= {"address", "head", "typed", "lock", "manifest", "sources", "all"}
    assert all(int(tried.replace(",", "")) == count for name, tried in rows if name != "all")


def test_a_seed_gives_the_same_inputs_again(tmp_path: Path) -> None:
    targets = fuzz.list_targets(tmp_path, Random(1))

    def inputs(seed: int) -> list[bytes]:
        tried: list[bytes] = []
        watched = {name: one._replace(parse=partial(remember, tried, one.parse)) for name, one in targets.items()}
        fuzz.fuzz(watched, seed=seed, seconds=100_000, inputs=100)
        return tried

    def remember(tried: list[bytes], parse: Callable[[bytes], object], data: bytes) -> None:
        tried.append(data)
        parse(data)

    first = inputs(1)
    assert inputs(1) == first
    assert inputs(2) != first


def test_a_raw_exception_is_reported_once_with_its_shortest_input(capsys: pytest.CaptureFixture[str]) -> None:
    def parse(data: bytes) -> None:
        if b"x" in data:
            raise LookupError("raw")
        raise prowess.SkillError("typed")

    target = fuzz.Target(parse, [b"a long x", b"x", b"other"])
    tallies = fuzz.fuzz({"mine": target}, seed=1, seconds=100_000, inputs=3)
    assert (tallies["mine"].tried, tallies["mine"].refused) == (3, 1)
    assert fuzz.print_tallies(tallies, 1) == 1
    said = capsys.readouterr().out
    assert "LookupError: raw\n  b'x'\n" in said

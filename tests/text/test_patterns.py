"""Possessive groups mean the same on every version of Python: a round that fails halfway takes nothing."""

from __future__ import annotations

import re

import pytest

from prowess.text.patterns import compile_pattern, make_groups_atomic


@pytest.mark.parametrize(
    ("pattern", "text", "length"),
    [
        (rb"(?:a:(?=[^ ]))?+", b"a: ", 0),
        (rb"(?:a:(?=[^ ])|b)++", b"ba: ", 1),
        (rb"(?:[ \t]*+\r?\n)*+", b" \n  -", 2),
        (rb"(?:(?:[a)]\))*+x){1,2}+", b"a)x))y", 3),
    ],
)
def test_a_round_that_fails_halfway_takes_nothing(pattern: bytes, text: bytes, length: int) -> None:
    for compiled in (compile_pattern(pattern), re.compile(make_groups_atomic(pattern.decode()).encode())):
        found = compiled.match(text)
        assert found is not None
        assert found.end() == length


@pytest.mark.parametrize(
    ("pattern", "rewritten"),
    [
        (r"(?:ab)*+c++", r"(?>(?:ab)*)c++"),
        (r"((?:a|(b)?+){2,3}+)+?", r"((?>(?:a|(?>(b)?)){2,3}))+?"),
        (r"[]()*+]\)*+(?=a)", r"[]()*+]\)*+(?=a)"),
    ],
)
def test_each_possessive_group_becomes_atomic_and_nothing_else_changes(pattern: str, rewritten: str) -> None:
    assert make_groups_atomic(pattern) == rewritten

"""The tools that a skill names, as written."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prowess import parse_allowed_tools


@pytest.mark.parametrize(
    ("raw", "tools"),
    [
        (None, ()),
        ("", ()),
        (" ,\t\n", ()),
        ("Read", ("Read",)),
        ("Read Edit", ("Read", "Edit")),
        ("Read,Edit", ("Read", "Edit")),
        ("Read, Edit ,Write", ("Read", "Edit", "Write")),
        ("Read\tEdit\nWrite\r\nGrep", ("Read", "Edit", "Write", "Grep")),
        ("Bash(git:*) Read, Edit", ("Bash(git:*)", "Read", "Edit")),
        ("Bash(git add:*, git commit:*) Read", ("Bash(git add:*, git commit:*)", "Read")),
        ("Bash(echo (a, b) c) Read", ("Bash(echo (a, b) c)", "Read")),
        ("Read) Edit", ("Read)", "Edit")),
        ("Bash(x)) Edit", ("Bash(x))", "Edit")),
        ("Bash(git Read Edit", ("Bash(git Read Edit",)),
        ("Bash(git Read  ", ("Bash(git Read",)),
        ("(a b) c", ("(a b)", "c")),
        ("Read Read", ("Read", "Read")),
        ("mcp__server__tool *", ("mcp__server__tool", "*")),
    ],
)
def test_tools_are_separated_by_blanks_and_commas_outside_parentheses(raw: str | None, tools: tuple[str, ...]) -> None:
    assert parse_allowed_tools(raw) == tools


PATTERNS = st.from_regex(r"[A-Z][a-z]{0,5}(\([a-z:* ,]{0,8}\))?", fullmatch=True)


@given(st.lists(PATTERNS), st.sampled_from([" ", ",", ", ", "\n", " , "]))
def test_joined_patterns_come_apart_again(tools: list[str], separator: str) -> None:
    assert parse_allowed_tools(separator.join(tools)) == tuple(tools)


@given(st.text("ab( ),\t\n", max_size=30))
def test_every_character_but_separators_is_kept_in_order(raw: str) -> None:
    kept = re.sub(r"[\s,]", "", "".join(parse_allowed_tools(raw)))
    assert kept == re.sub(r"[\s,]", "", raw)
    assert all(token == token.strip() and token for token in parse_allowed_tools(raw))

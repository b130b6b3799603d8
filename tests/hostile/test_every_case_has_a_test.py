"""The list of cases and the tests agree: each case has a test of Prowess and a test that naive code fails.

The docstring of a test begins with ``Case 1:``, or with ``Twin of case 1:`` where it shows that naive code fails.
"""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
CASES: dict[str, dict[str, str]] = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))

_TESTED = re.compile(r"Cases? ([\d, ]+): ")
_TWIN = re.compile(r"Twin of cases? ([\d, ]+): ")


@cache
def read_docstrings() -> dict[str, str]:
    """Return the docstring of every test in this folder, by ``file::function``. The tests of this file are left out."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        if path != Path(__file__)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def find_numbers(pattern: re.Pattern[str]) -> set[str]:
    """Return the numbers of cases in all docstrings that begin with the pattern."""
    matches = [pattern.match(docstring) for docstring in read_docstrings().values()]
    return {number.strip() for match in matches if match for number in match[1].split(",")}


def test_every_case_has_a_test_and_every_number_is_in_the_list() -> None:
    assert find_numbers(_TESTED) == CASES.keys()


def test_every_case_has_a_naive_twin_that_fails() -> None:
    assert find_numbers(_TWIN) == CASES.keys()


def test_every_test_says_which_case_it_is_about() -> None:
    docstrings = read_docstrings()
    assert docstrings
    assert [name for name, text in docstrings.items() if not _TESTED.match(text) and not _TWIN.match(text)] == []


def test_the_list_is_in_order_and_says_what_each_attack_is_and_what_must_hold() -> None:
    assert list(CASES) == sorted(CASES, key=int)
    assert [number for number, case in CASES.items() if list(case) != ["attack", "outcome"]] == []
    sentences = [text for case in CASES.values() for text in case.values()]
    assert [text for text in sentences if not text.endswith(".") or "\n" in text] == []
    assert len({case["attack"] for case in CASES.values()}) == len(CASES)

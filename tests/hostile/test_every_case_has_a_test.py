"""The list of cases and the tests agree: each case has a test, and a twin that fails where the engine does not."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).parent

CASES = {
    *range(1, 9),
    *(10, 11, 13, 14),
    *range(16, 21),
    *range(22, 27),
    *range(28, 31),
    *(31, 32, 34, 35),
    *range(37, 41),
    *range(45, 50),
    *range(51, 61),
    *(62, 63, 65, 67),
    *range(68, 74),
    *(75, 76),
    *range(78, 81),
    *range(82, 90),
    *(90, 91, 93, 94),
    *range(96, 101),
    *(102, 103, 105),
    *range(117, 123),
    *(124, 125),
    *range(107, 111),
    *range(112, 115),
    *range(126, 129),
}

_TESTED = re.compile(r"Cases? ([\d, ]+): ")
_TWIN = re.compile(r"Twin of cases? ([\d, ]+): ")


@cache
def documented() -> dict[str, str]:
    """Every test of this folder but those of this file, with its docstring."""
    found: dict[str, str] = {}
    for path in sorted(HERE.glob("test_*.py")):
        if path == Path(__file__):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"{path.name}::{node.name}"] = ast.get_docstring(node) or ""
    return found


def numbers(pattern: re.Pattern[str]) -> set[int]:
    matches = [pattern.match(docstring) for docstring in documented().values()]
    return {int(number) for match in matches if match for number in match[1].split(",")}


def test_every_case_has_a_test() -> None:
    assert numbers(_TESTED) == CASES


def test_every_case_has_a_naive_twin_that_fails() -> None:
    assert numbers(_TWIN) == CASES


@pytest.mark.parametrize("name", documented())
def test_every_test_says_which_case_it_is_about(name: str) -> None:
    docstring = documented()[name]
    assert _TESTED.match(docstring) or _TWIN.match(docstring)

"""The list of rules and the tests agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RULES = {"test_server_rules.py": ("M", 10), "test_host_rules.py": ("H", 19)}
_NUMBER = re.compile(r"([MH]\d+): \S")


def docstrings(file: str) -> dict[str, str]:
    tree = ast.parse((HERE / file).read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"))
    return {node.name: ast.get_docstring(node) or "" for node in functions}


@pytest.mark.parametrize("file", RULES)
def test_every_rule_has_a_test_and_every_test_a_rule(file: str) -> None:
    letter, most = RULES[file]
    found = {name: _NUMBER.match(text) for name, text in docstrings(file).items()}
    assert [name for name, match in found.items() if match is None] == []
    assert {match[1] for match in found.values() if match} == {f"{letter}{number}" for number in range(1, most + 1)}

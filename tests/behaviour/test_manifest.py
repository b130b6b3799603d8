"""The manifest and the tests say the same: every behaviour is stated, and every test belongs to one."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
REQUIRED = {
    "S0": [*range(1, 37)],
    "S1": [*range(1, 69)],
    "S2": [*range(1, 44)],
    "S3": [*range(1, 32)],
    "S4": [*range(1, 21)],
}
KEYS = {"says", "how", "difference", "tests"}
NUMBERS = re.compile(r"(S\d-\d+(?:, S\d-\d+)*): \S")

Entry = dict[str, str | list[str]]


@pytest.fixture(scope="module")
def manifest() -> dict[str, Entry]:
    return tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """Every test of this folder but those of the manifest, as ``file::function``, with its docstring."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        if path.name != Path(__file__).name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def numbers_of(docstring: str) -> list[str]:
    match = NUMBERS.match(docstring)
    return match[1].split(", ") if match else []


def order(number: str) -> tuple[str, int]:
    system, _, behaviour = number.partition("-")
    return system, int(behaviour)


def test_every_behaviour_is_stated(manifest: dict[str, Entry]) -> None:
    required = {f"{system}-{number}" for system, numbers in REQUIRED.items() for number in numbers}
    assert required - manifest.keys() == set()


def test_behaviours_are_in_order(manifest: dict[str, Entry]) -> None:
    assert list(manifest) == sorted(manifest, key=order)


def test_an_entry_has_its_own_line_of_words(manifest: dict[str, Entry]) -> None:
    said = [entry.get("says") for entry in manifest.values()]
    assert len(set(map(str, said))) == len(manifest)
    texts = [entry.get(key, "-") for entry in manifest.values() for key in ("says", "how", "difference")]
    assert [text for text in texts if not isinstance(text, str) or not text.strip() or "\n" in text] == []


def test_an_entry_has_tests_or_a_reason_and_nothing_unknown(manifest: dict[str, Entry]) -> None:
    assert [
        number for number, entry in manifest.items() if not entry.get("tests") and not entry.get("difference")
    ] == []
    assert [number for number, entry in manifest.items() if entry.keys() - KEYS] == []


def test_a_difference_says_how_to_get_what_the_other_system_does(manifest: dict[str, Entry]) -> None:
    assert [number for number, entry in manifest.items() if "difference" in entry and "how" not in entry] == []


def test_every_test_begins_with_the_behaviours_it_shows(written: dict[str, str]) -> None:
    assert [name for name, docstring in written.items() if not numbers_of(docstring)] == []


def test_manifest_and_tests_name_each_other(manifest: dict[str, Entry], written: dict[str, str]) -> None:
    stated = sorted((number, test) for number, entry in manifest.items() for test in entry.get("tests", []))
    shown = sorted((number, test) for test, docstring in written.items() for number in numbers_of(docstring))
    assert stated == shown

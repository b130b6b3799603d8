"""The manifest and the tests agree: every behaviour has an entry, and every test belongs to an entry."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SYSTEMS = {
    "S0": "go_skill",
    "S1": "promptkit",
    "S2": "docker_agent",
    "S3": "drover_skills",
    "S4": "llm_agents_from_scratch",
}
"""Each system's label in the manifest, and its name in the names of the test files."""
BEHAVIOURS = {"go_skill": 37, "promptkit": 68, "docker_agent": 46, "drover_skills": 31, "llm_agents_from_scratch": 21}
"""How many behaviours of each system the manifest must state. They are numbered from 1."""
KEYS = {"says", "how", "difference", "tests"}
NUMBERS = re.compile(r"(S\d-\d+(?:, S\d-\d+)*): \S")
NAMES = re.compile(r"\b([a-z_]+)=|\b([A-Za-z_]+)\(|\.([a-z_]+)\b")
"""Arguments, functions and attributes in what an entry says of how to get a behaviour."""

Entry = dict[str, str | list[str]]


@pytest.fixture(scope="module")
def manifest() -> dict[str, Entry]:
    """The entries of the manifest by number, such as ``S0-1``."""
    return tomllib.loads((HERE / "manifest.toml").read_text(encoding="utf-8"))


ABOUT_TABLES = frozenset((Path(__file__).name, "test_documented.py"))
"""The files whose tests are about a table of their own, and not about one behaviour."""


@pytest.fixture(scope="module")
def docstrings() -> dict[str, str]:
    """The docstring of every test of a behaviour in this folder, by ``file::function``."""
    return {
        f"{path.name}::{node.name}": ast.get_docstring(node) or ""
        for path in sorted(HERE.glob("test_*.py"))
        if path.name not in ABOUT_TABLES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def numbers_of(docstring: str) -> list[str]:
    """Return the numbers of behaviours that a docstring begins with."""
    match = NUMBERS.match(docstring)
    return match[1].split(", ") if match else []


def sort_key(number: str) -> tuple[str, int]:
    """Return the system's label and the number of the behaviour, so that ``S0-10`` follows ``S0-9``."""
    system, _, behaviour = number.partition("-")
    return system, int(behaviour)


def test_every_behaviour_is_stated(manifest: dict[str, Entry]) -> None:
    required = {f"{label}-{number}" for label, system in SYSTEMS.items() for number in range(1, BEHAVIOURS[system] + 1)}
    assert required - manifest.keys() == set()


def test_behaviours_are_in_order(manifest: dict[str, Entry]) -> None:
    assert list(manifest) == sorted(manifest, key=sort_key)


def test_an_entry_has_its_own_line_of_words(manifest: dict[str, Entry]) -> None:
    statements = [entry.get("says") for entry in manifest.values()]
    assert len(set(map(str, statements))) == len(manifest)
    texts = [entry.get(key, "-") for entry in manifest.values() for key in ("says", "how", "difference")]
    assert [text for text in texts if not isinstance(text, str) or not text.strip() or "\n" in text] == []


def test_an_entry_has_tests_or_a_reason_and_nothing_unknown(manifest: dict[str, Entry]) -> None:
    assert [
        number for number, entry in manifest.items() if not entry.get("tests") and not entry.get("difference")
    ] == []
    assert [number for number, entry in manifest.items() if entry.keys() - KEYS] == []


def test_a_difference_says_how_to_get_what_the_other_system_does(manifest: dict[str, Entry]) -> None:
    assert [number for number, entry in manifest.items() if "difference" in entry and "how" not in entry] == []


def test_every_test_begins_with_the_behaviours_it_shows(docstrings: dict[str, str]) -> None:
    assert [name for name, docstring in docstrings.items() if not numbers_of(docstring)] == []


def test_a_file_that_is_named_after_a_system_shows_behaviours_of_that_system(docstrings: dict[str, str]) -> None:
    strays = [
        name
        for name, docstring in docstrings.items()
        for label, system in SYSTEMS.items()
        if name.startswith(f"test_{system}_")
        and not any(number.startswith(f"{label}-") for number in numbers_of(docstring))
    ]
    assert strays == []


def test_the_tests_of_an_entry_use_what_its_how_names(manifest: dict[str, Entry]) -> None:
    """The names may also be in the helpers of the file."""
    codes: dict[str, str] = {}
    for path in HERE.glob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        tests = {
            node.name: ast.get_source_segment(text, node) or ""
            for node in ast.parse(text).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        }
        helpers = text
        for code in tests.values():
            helpers = helpers.replace(code, "")
        codes |= {f"{path.name}::{name}": code + helpers for name, code in tests.items()}
    unused = []
    for number, entry in manifest.items():
        used = "".join(codes[test] for test in entry.get("tests", []))
        how = re.sub(r'"[^"]*"', "", str(entry.get("how", "")))
        unused += [
            f"{number}: {name}"
            for names in NAMES.findall(how)
            for name in names
            if name and not re.search(rf"\b{name}\b", used)
        ]
    assert unused == []


def test_manifest_and_tests_name_each_other(manifest: dict[str, Entry], docstrings: dict[str, str]) -> None:
    stated = sorted((number, test) for number, entry in manifest.items() for test in entry.get("tests", []))
    shown = sorted((number, test) for test, docstring in docstrings.items() for number in numbers_of(docstring))
    assert stated == shown

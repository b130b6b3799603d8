"""The page about the architecture names only what exists: layers, modules, functions, tests and pages."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

from scripts import module_table

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "prowess"
PATH = re.compile(r"[\w./-]+(?:\.(?:py|md|json|toml)|/)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
DOTTED = re.compile(r"\w+(?:\.\w+)+")


def read_hand_written_part() -> str:
    """Return the page without the table of modules, which is made from the modules themselves."""
    page = module_table.PAGE.read_text(encoding="utf-8")
    return page.partition(module_table.BEGIN)[0] + page.partition(module_table.END)[2]


def named_in_code() -> list[str]:
    """Return every text between backticks, without the blocks of text."""
    prose = re.sub(r"^```.*?^```$", "", read_hand_written_part(), flags=re.MULTILINE | re.DOTALL)
    return sorted(set(re.findall(r"`([^`\n]+)`", prose)))


@cache
def parse_file(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_file_of_project(name: str) -> bool:
    """True when ``name`` is a file or folder of the package or of the repository; ``NAME`` is the reader's own."""
    if "NAME" in name:
        return is_file_of_project(name.rpartition("/")[0])
    return (SOURCE / name).exists() or (ROOT / name).exists()


def is_defined(dotted: str) -> bool:
    """True when ``package.module.name`` or ``package.module.Class.method`` is defined in that module."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:count]).with_suffix(".py")
        if path.is_file():
            return has_definition(parse_file(path).body, parts[count:])
    return SOURCE.joinpath(*parts).is_dir()


def has_definition(body: list[ast.stmt], names: list[str]) -> bool:
    if not names:
        return True
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == names[0]:
            return has_definition(node.body, names[1:])
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == names[0]:
            return names[1:] == []
        if isinstance(node, ast.Assign) and names[0] in map(ast.unparse, node.targets):
            return names[1:] == []
    return False


def is_module_or_package(name: str) -> bool:
    return (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()


def test_the_picture_shows_the_layers_of_the_contract() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [c for c in project["tool"]["importlinter"]["contracts"] if c["id"] == "layers"]
    # A name in parentheses is a layer that does not exist yet.
    layers = [re.sub(r"\s+", " ", layer) for layer in contract["layers"] if not layer.startswith("(")]
    picture = re.findall(r"^```text\n(.*?)^```$", read_hand_written_part(), re.MULTILINE | re.DOTALL)[0]
    rows = re.split(r"^[┌├└].*\n", picture, flags=re.MULTILINE)[1:-1]
    drawn = [" | ".join(cell.strip() for cell in re.findall(r"^│([^│]*)│", row, re.MULTILINE)) for row in rows]
    assert drawn == layers


def test_every_path_on_the_page_exists() -> None:
    paths = [name for name in named_in_code() if PATH.fullmatch(name)]
    assert len(paths) > 40, "the search has lost its way"
    assert [name for name in paths if not is_file_of_project(name)] == []


def test_every_function_and_class_on_the_page_exists() -> None:
    dotted = [name for name in named_in_code() if DOTTED.fullmatch(name) and not PATH.fullmatch(name)]
    ours = [name for name in dotted if is_module_or_package(name.partition(".")[0])]
    assert len(ours) > 50, "the search has lost its way"
    assert [name for name in ours if not is_defined(name)] == []


def test_every_test_on_the_page_exists() -> None:
    tests = [match for name in named_in_code() if (match := TEST.fullmatch(name))]
    assert len(tests) > 10, "the search has lost its way"
    assert [match[0] for match in tests if not has_definition(parse_file(ROOT / match[1]).body, [match[2]])] == []


@pytest.mark.parametrize("name", ["discovery.scan.scam", "discovery.scam.scan", "skills.skill.Skill.lode"])
def test_a_name_that_does_not_exist_is_noticed(name: str) -> None:
    assert not is_defined(name)

"""Importing the package, and scanning plain skills with it, loads no more than it must."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import prowess

ROOT = Path(__file__).resolve().parents[1]
HEAVY = [
    *("yaml", "sqlite3", "click", "rich", "platformdirs", "httpx2", "mcp", "pydantic", "asyncio"),
    *("subprocess", "logging", "importlib.metadata"),
]


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter holds after ``code`` and did not hold before."""
    after = "new = sorted(set(sys.modules) - before); import json; print(json.dumps(new))"
    script = f"import sys; before = set(sys.modules)\n{code}\n{after}"
    command = [sys.executable, "-I", "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_nothing_but_the_package() -> None:
    assert loaded_by("import prowess") == {"prowess", "__future__"}


def test_the_first_scan_of_common_skills_imports_what_finds_them_and_nothing_else(tmp_path: Path) -> None:
    for name in ("invoices", "pdf"):
        (tmp_path / name).mkdir()
        text = f"---\nname: {name}\ndescription: Does it.\nlicense: MIT\n---\nbody\n"
        (tmp_path / name / "SKILL.md").write_text(text, encoding="utf-8")
    code = "import prowess; catalog = prowess.scan(sys.argv[1]); assert len(catalog) == 2"
    loaded = loaded_by(code, str(tmp_path))
    assert "prowess.discovery.scan" in loaded
    unused = {"math", "pathlib", "unicodedata", "ctypes", "hashlib", "shlex"}
    later = """
        discovery.agents files.projects installed lockfile conversation search select
        skills.catalog_issues skills.parse skills.search_library text.markup skills.render
        format.frontmatter.quick.nested_heads
    """
    assert loaded & {*HEAVY, *unused, *(f"prowess.{name}" for name in later.split())} == set()


def test_every_public_name_is_there_once_it_is_asked_for() -> None:
    code = (
        "import prowess\n"
        "assert set(prowess.__all__) <= set(dir(prowess))\n"
        "missing = [name for name in prowess.__all__ if not hasattr(prowess, name)]\n"
        "assert not missing, missing\n"
        "from prowess import *\n"
        "assert scan is prowess.scan is prowess.discovery.scan.scan"
    )
    assert "prowess.conversation.session" in loaded_by(code)


def test_a_name_that_the_package_lacks_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'prowess' has no attribute 'absent'"):
        _ = prowess.absent


def test_type_checkers_and_programs_find_each_public_name_in_the_same_module() -> None:
    tree = ast.parse(Path(prowess.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom) and node.module]
    for_checkers = {
        alias.name: getattr(import_module(str(node.module)), alias.name) for node in imports for alias in node.names
    }
    del for_checkers["Any"]
    assert set(for_checkers) == set(prowess.__all__)
    assert [name for name, value in for_checkers.items() if value is not getattr(prowess, name)] == []


@pytest.mark.parametrize("name", HEAVY)
def test_nothing_heavy_is_there_from_the_start(name: str) -> None:
    """Else the test above would see nothing."""
    assert name not in loaded_by("")


def test_scanning_plain_skills_needs_neither_yaml_nor_ctypes(tmp_path: Path) -> None:
    for number in range(3):
        folder = tmp_path / f"s{number}"
        folder.mkdir()
        text = f"---\nname: s{number}\ndescription: Does it.\nmetadata:\n  a: b\ntags: [x, y]\n---\nbody\n"
        (folder / "SKILL.md").write_text(text, encoding="utf-8")
    (tmp_path / "folded").mkdir()
    text = "---\nname: folded\ndescription: >\n  Does\n  it.\n---\nbody\n"
    (tmp_path / "folded" / "SKILL.md").write_text(text, encoding="utf-8")
    code = (
        "import prowess\ncatalog = prowess.scan(sys.argv[1])\nassert len(catalog) == 4, catalog.issues\n"
        "assert catalog.issues == () and all(skill.user_invocable for skill in catalog)\n"
        "prowess.render_catalog(catalog)"
    )
    loaded = loaded_by(code, str(tmp_path))
    assert "prowess" in loaded
    assert loaded & {*HEAVY, "ctypes", "_ctypes"} == set()


def test_yaml_is_loaded_when_it_is_needed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    text = "---\nname: a\ndescription: {flow: map}\n---\nbody\n"
    (tmp_path / "a" / "SKILL.md").write_text(text, encoding="utf-8")
    assert "yaml" in loaded_by("import prowess; prowess.scan(sys.argv[1])", str(tmp_path))


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "src" / "prowess" / "py.typed").is_file()

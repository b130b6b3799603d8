"""Importing the package, and scanning plain skills with it, loads no more than it must."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HEAVY = [
    *("yaml", "sqlite3", "click", "rich", "platformdirs", "httpx2", "mcp", "pydantic", "asyncio"),
    *("subprocess", "logging", "importlib.metadata"),
]


def loaded_by(code: str, *arguments: str) -> set[str]:
    """The modules that a fresh interpreter holds after ``code`` and did not hold before."""
    after = "import json; print(json.dumps(sorted(set(sys.modules) - before)))"
    script = f"import sys; before = set(sys.modules)\n{code}\n{after}"
    command = [sys.executable, "-I", "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_imports_nothing_heavy() -> None:
    loaded = loaded_by("import prowess")
    assert "prowess.discovery.scan" in loaded
    assert loaded & set(HEAVY) == set()


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
        "assert catalog.issues == () and all(skill.tags is not None for skill in catalog)\n"
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

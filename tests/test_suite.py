"""What the tests say about themselves: what was not tested here, and what they cost."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cost_plugin import MOST_PROCESSES
from tests.tree_seed import compute_tree_seed

ROOT = Path(__file__).resolve().parents[1]
TESTS = f"""
import subprocess
import sys

import pytest

MOST = {MOST_PROCESSES}
start = lambda: subprocess.run([sys.executable, "-ISc", ""], executable="/bin/true", check=True)

@pytest.mark.parametrize("number", range(3))
def test_that_needs_what_is_not_here(number):
    pytest.skip("NOT TESTED: the moon: there is no rocket")

def test_that_is_skipped_for_another_reason():
    pytest.skip("no cheese")

def test_that_starts_as_many_as_it_may():
    for _ in range(MOST):
        start()

def test_that_starts_one_too_many():
    for _ in range(MOST + 1):
        start()

@pytest.mark.full
def test_that_is_run_later():
    for _ in range(MOST + 1):
        start()
"""


def test_samples_depend_on_the_programs_of_the_tree_alone(tmp_path: Path) -> None:
    for name in ("first", "second"):
        for path in ("src/a/one.py", "tests/test_one.py"):
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text("pass\n", encoding="utf-8")
    first, second = tmp_path / "first", tmp_path / "second"
    (second / "src" / "a" / "one.pyc").write_bytes(b"compiled")
    (second / "notes.md").write_text("mine\n", encoding="utf-8")
    seed = compute_tree_seed(first)
    assert compute_tree_seed(second) == seed
    (second / "tests" / "test_one.py").write_text("pass  # more\n", encoding="utf-8")
    assert compute_tree_seed(second) != seed
    (first / "tests" / "test_one.py").rename(first / "tests" / "test_two.py")
    assert compute_tree_seed(first) != seed


def run_tests(folder: Path, *words: str) -> str:
    """What a run of the tests above prints, with our conftest."""
    (folder / "test_few.py").write_text(TESTS, encoding="utf-8")
    program = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-c", str(ROOT / "pyproject.toml")]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*program, "--rootdir", str(folder), *words, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=env,
    )
    assert not done.stderr, done.stderr
    return done.stdout


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="the program that is started is of POSIX")
def test_what_was_not_tested_and_what_costs_too_much_is_said(tmp_path: Path) -> None:
    said = run_tests(tmp_path, "-n", "1")
    last = said[said.rindex("NOT TESTED HERE") :]
    assert "\nthe moon: there is no rocket (3 tests)\n" in last
    assert "cheese" not in last
    assert f"it starts {MOST_PROCESSES + 1} processes, and a test of the ordinary run at most" in said
    assert re.search(rf" {2 * MOST_PROCESSES + 1} processes +test_few.py", said)
    assert "FAILED test_few.py::test_that_starts_one_too_many" in said
    assert "1 failed, 1 passed, 5 skipped" in said
    assert "2 passed" in run_tests(tmp_path, "--full", "-k", "later or too_many")


# Patches of our own code that wait for a parameter or a public seam in their place. The number may only fall.
MOST_PATCHES = 20


def find_patches(path: Path) -> list[str]:
    """Return the lines of a test file that replace an attribute of our own code with `monkeypatch`."""
    tree = ast.parse(path.read_bytes())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    ours = {
        name.asname or name.name
        for node in imports
        if (node.module or "").split(".")[0] in {"prowess", "prowess_retriever"}
        for name in node.names
    }

    def is_ours(target: ast.expr) -> bool:
        if isinstance(target, ast.Constant):
            return str(target.value).startswith("prowess")
        return isinstance(target, ast.Name) and target.id in ours

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    return [
        f"{path}:{call.lineno}"
        for call in calls
        if isinstance(call.func, ast.Attribute) and call.func.attr == "setattr" and call.args and is_ours(call.args[0])
    ]


def test_patches_of_our_own_code_become_fewer() -> None:
    patches = [line for path in sorted((ROOT / "tests").rglob("*.py")) for line in find_patches(path)]
    assert len(patches) <= MOST_PATCHES, patches


def test_a_patch_of_our_own_code_is_found_by_import_and_by_name(tmp_path: Path) -> None:
    patches = [
        "import os",
        "from prowess.files import lock as lock_module",
        "def test_lock(monkeypatch):",
        "    monkeypatch.setattr(lock_module, 'SECONDS', 0)",
        "    monkeypatch.setattr('prowess.files.lock.SECONDS', 0)",
        "    monkeypatch.setattr(os, 'fsync', None)",
    ]
    path = tmp_path / "test_lock.py"
    path.write_text("\n".join(patches), encoding="utf-8")
    assert find_patches(path) == [f"{path}:4", f"{path}:5"]

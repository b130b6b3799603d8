"""Typed programs: what a toolset exports goes into the calls of providers' own packages, for mypy and for pyright."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from bench.environments import NotInstalledError, python_with

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "foreign"
PACKAGES = ("openai", "openai-agents", "anthropic", "mcp", "mypy", "pyright")
RIGHT = ("openai_program.py", "anthropic_program.py", "mcp_program.py", "adapters_program.py")

pytestmark = pytest.mark.foreign


@pytest.fixture(scope="module")
def python() -> str:
    """The Python of an environment with the packages of the providers, and the type checkers."""
    try:
        return python_with("typed-programs", *PACKAGES)
    except NotInstalledError as error:
        pytest.skip(f"NOT TESTED: types against {', '.join(PACKAGES)}, which cannot be installed here ({error})")


def checked(python: str, checker: str, program: str) -> set[int]:
    """The lines of a program that a type checker finds wrong."""
    commands = {
        "mypy": ["--strict", "--config-file=", "--follow-imports=silent", "--cache-dir", os.devnull],
        "pyright": ["--outputjson", "--pythonpath", python],
    }
    command = [python, "-m", checker, *commands[checker], str(PROGRAMS / program)]
    environment = {**os.environ, "MYPYPATH": str(ROOT / "src"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=environment, cwd=PROGRAMS, timeout=600
    )
    if checker == "mypy":
        assert done.returncode in {0, 1}, done.stdout + done.stderr
        return {int(line) for line in re.findall(r":(\d+): error:", done.stdout)}
    try:
        report = json.loads(done.stdout)
    except ValueError:  # its program is fetched when it is first used
        pytest.skip(f"NOT TESTED: types with pyright, which does not start here: {done.stderr.strip()[-200:]}")
    assert report["summary"]["filesAnalyzed"] == 1
    return {
        found["range"]["start"]["line"] + 1 for found in report["generalDiagnostics"] if found["severity"] == "error"
    }


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize("program", RIGHT)
def test_exports_go_into_the_calls_of_providers_as_they_are(python: str, checker: str, program: str) -> None:
    assert checked(python, checker, program) == set()


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_finds_every_mistake(python: str, checker: str) -> None:
    """Else the test above would accept anything."""
    lines = (PROGRAMS / "mistaken_program.py").read_text(encoding="utf-8").splitlines()
    mistakes = {number for number, line in enumerate(lines, 1) if line.endswith("# MISTAKE")}
    assert len(mistakes) == 11
    assert checked(python, checker, "mistaken_program.py") == mistakes

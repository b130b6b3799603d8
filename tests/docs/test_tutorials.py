"""The tutorials work from their first line to their last, when a reader types what they say."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.skill_library import require_framework
from tests.cli_processes import run_command
from tests.fake_models import Calls, Text, ToolCall, play, provide
from tests.page_snippets import list_blocks
from tests.repositories import ENV

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorial"
STEP = re.compile(r"^```(console|markdown|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shows(expected: str, printed: str) -> bool:
    """Whether the page shows what was printed; ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


def follow(page: Path, folder: Path) -> int:
    """Do what a page says, from its first line to its last; return how many commands that were.

    A block whose first line is ``# PATH`` is the content of a file. ``markdown`` is the SKILL.md of the first tutorial.
    """
    here, commands = folder, 0
    for kind, text in STEP.findall(page.read_text(encoding="utf-8")):
        first, _, rest = text.partition("\n")
        if kind != "console":
            path, content = ("weekly-report/SKILL.md", text) if kind == "markdown" else (first.removeprefix("# "), rest)
            (here / path).write_text(content, encoding="utf-8")
            continue
        program, *words = shlex.split(first.removeprefix("$ "))
        commands += 1
        if program == "cd":
            here /= words[0]
            os.chdir(here)
        elif program == "prowess":
            ran = run_command(words)
            printed = (ran.stdout + ran.stderr).decode()
            differs = "changed-file" in rest or "Nothing among" in rest or words[0] == "outdated"
            assert ran.returncode == int(differs), (first, printed)
            assert shows(rest, printed if rest.startswith("...") else ran.stdout.decode()), (first, printed)
        else:
            assert program == "git"
            subprocess.run(["git", *words], check=True, env={**os.environ, **ENV})
    return commands


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(("name", "commands"), [("first-skill", 8), ("first-team", 30)])
def test_a_tutorial_that_begins_in_an_empty_folder_works_as_it_is_written(
    project: Path, name: str, commands: int
) -> None:
    assert follow(TUTORIALS / f"{name}.md", project) == commands


def test_the_tutorial_about_clients_works_in_the_folder_of_the_examples(project: Path) -> None:
    pytest.importorskip("mcp", reason="NOT TESTED: the tutorial about MCP clients; mcp is not installed")
    shutil.copytree(ROOT / "examples" / "skills", project / "skills")
    assert follow(TUTORIALS / "first-mcp.md", project) == 6
    assert "csv-report" in (project / "site" / "index.html").read_text(encoding="utf-8")


def list_programs() -> list[tuple[str, str]]:
    """Return the command and the output of each program that a page shows."""
    pages = (TUTORIALS / "first-agent.md", TUTORIALS / "gallery.md")
    blocks = [text for page in pages for _, text in STEP.findall(page.read_text(encoding="utf-8"))]
    return [(line, rest) for line, _, rest in (text.partition("\n") for text in blocks)]


@pytest.mark.parametrize(("line", "expected"), list_programs(), ids=lambda text: text.partition("\n")[0])
def test_a_program_of_the_examples_prints_what_its_page_shows(
    line: str, expected: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    _, script, *words = shlex.split(line.removeprefix("$ "))
    if script == "ask_before_running.py":
        request.getfixturevalue("needs_sandbox")
    if script == "serve_over_mcp.py":
        pytest.importorskip("mcp", reason="NOT TESTED: the example of an MCP server; mcp is not installed")
    env = {**os.environ, "HOME": str(tmp_path), "PYTHONUTF8": "1"}
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / script, *words], capture_output=True, text=True, check=True, env=env
    )
    assert shows(expected, ran.stdout), ran.stdout


def test_the_loop_with_a_real_client_answers_a_question(tmp_path: Path) -> None:
    require_framework("openai")
    ((_, program),) = list_blocks(TUTORIALS / "first-agent.md", "python")
    assert len(program.splitlines()) <= 30
    shutil.copytree(ROOT / "examples" / "skills", tmp_path / "skills")
    (tmp_path / "ask.py").write_text(program)
    calls = Calls((ToolCall("load_skill", {"name": "csv-report"}), ToolCall("load_skill", {"name": "csv-reports"})))
    with provide(play(calls, Text("A table."))) as provider:
        env = {**os.environ, "HOME": str(tmp_path), "OPENAI_API_KEY": "none", "OPENAI_BASE_URL": f"{provider.url}/v1"}
        ran = subprocess.run(
            [sys.executable, "ask.py", "What", "is", "in", "a.csv?"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=env,
        )
    assert ran.stdout.splitlines()[-1] == "A table.", ran.stderr
    loaded, unknown = provider.requests[-1].results
    assert "# CSV report" in loaded
    assert "unknown skill 'csv-reports'" in unknown


def test_the_gallery_shows_five_programs() -> None:
    shown = {shlex.split(line)[2] for line, _ in list_programs()}
    # A runner prints nothing: the page about scripts shows it, and tests/conversation/acting/test_runner.py uses it.
    assert shown == {path.name for path in (ROOT / "examples").glob("*.py")} - {"container_runner.py"}
    assert len(shown) == 5

"""The tutorials work from their first line to their last, when a reader types what they say."""

from __future__ import annotations

import doctest
import re
import runpy
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from tests.cli_processes import run_command

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
STEP = re.compile(r"^```(console|markdown)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shows(expected: str, printed: str) -> bool:
    """Whether the page shows what was printed; ``...`` stands for anything."""
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)


def test_the_first_skill_is_written_checked_installed_and_activated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(project)
    page = (ROOT / "docs" / "tutorial" / "first-skill.md").read_text(encoding="utf-8")
    for kind, text in STEP.findall(page):
        if kind == "markdown":
            (project / "weekly-report" / "SKILL.md").write_text(text, encoding="utf-8")
            continue
        line, _, expected = text.partition("\n")
        program, *words = shlex.split(line.removeprefix("$ "))
        assert program == "prowess"
        ran = run_command(words)
        assert ran.returncode == 0, (line, ran.stderr)
        assert shows(expected, ran.stdout.decode()), (line, ran.stdout.decode())


def test_the_agent_of_the_second_tutorial_says_what_the_page_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "tutorial" / "first-agent.md").read_text(encoding="utf-8")
    ((_, text),) = STEP.findall(page)
    line, _, expected = text.partition("\n")
    _, script, *words = shlex.split(line.removeprefix("$ "))
    monkeypatch.setattr("sys.argv", [script, *words])
    runpy.run_path(str(ROOT / "examples" / script), run_name="__main__")
    assert shows(expected, capsys.readouterr().out)

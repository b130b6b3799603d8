"""The pages about the agent and its evaluations: their scripts are played, their commands print what they show."""

from __future__ import annotations

import doctest
import re
import shlex
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: the page about the agent; pydantic-ai is not installed")

from prowess.cli.main import root
from tests.cli.agent_processes import PROGRAM
from tests.cli_processes import fork_command
from tests.page_snippets import ROOT, list_blocks, make_reader_project

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "how-to" / "agent.md"
TASKS = "skills/csv-report/evals/tasks.json"
"""What the page about authoring calls its file of JSON, which cannot name itself."""


@pytest.mark.parametrize(("name", "count"), [("agent.md", 4), ("authoring.md", 7)])
def test_commands_of_the_page_print_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int
) -> None:
    page = PAGE.with_name(name)
    project = make_reader_project(tmp_path, monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    commands = 0
    for language, text in list_blocks(page, "yaml", "json", "console"):
        first, _, rest = text.partition("\n")
        if language == "json":
            assert f"`{TASKS}`" in page.read_text(encoding="utf-8")
            (project / TASKS).parent.mkdir()
            (project / TASKS).write_text(text, encoding="utf-8")
            continue
        if language == "yaml":
            (project / first.removeprefix("# ")).write_text(text, encoding="utf-8")
            continue
        program, *words = shlex.split(first.removeprefix("$ "))
        assert program == "prowess"
        shown = run_on_one_stream(words)
        assert doctest.OutputChecker().check_output(rest, shown, doctest.ELLIPSIS), (first, shown)
        commands += 1
    assert commands == count


def run_on_one_stream(words: list[str]) -> str:
    """Run ``prowess``; return what a person sees, in its order."""
    with TemporaryFile() as both, TemporaryFile() as nothing:
        fork_command(words, stdin=nothing, stdout=both, stderr=both, program=PROGRAM).wait()
        both.seek(0)
        return both.read().decode()


def test_page_names_every_option_and_every_key_of_a_script() -> None:
    page = PAGE.read_text(encoding="utf-8")
    context = root.make_context("prowess", ["--help"], resilient_parsing=True)
    command = root.get_command(context, "run")
    assert command is not None
    shared = {"--dir", "--agent", "--no-project", "--verify", "--sandbox", "-d"}  # those of other commands
    options = {word for parameter in command.params for word in parameter.opts if word.startswith("-")} - shared
    assert {option for option in options if option not in page} == set()
    assert set(re.findall(r"^\| `(\w+)` \|", page.partition("## Play a script")[2], re.MULTILINE)) == {
        *("text", "calls", "when", "system", "repeat"),
    }

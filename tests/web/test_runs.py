"""Runs of evaluations with a model: listed with their skill, each with its transcript, its answer and its files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="NOT TESTED: runs in the console; pydantic-ai is not installed")

import prowess
from prowess.web.app import create_app
from prowess.web.library import Library
from tests.cli_processes import run_command
from tests.web.browser import TOKEN, Browser

ROOT = Path(__file__).resolve().parents[2]
TASK = """[{"query": "Is <b>it</b> clean?", "files": {"a.csv": "id\\n1\\n"},
  "checks": [{"text": "clean"}, {"file": "report.md", "contains": "nothing"}]}]"""
SCRIPT = """turns:
  - when: Is <b>it</b> clean?
    calls: [{tool: Write, arguments: {path: report.md, content: "It is <i>fine</i>."}}]
  - when: report.md (
    text: It is clean, says <script>alert(1)</script>.
"""


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """A browser of a console whose skill was evaluated by a scripted model, which does the same with and without it."""
    shutil.copytree(ROOT / "examples" / "skills", tmp_path / "skills")
    evals = tmp_path / "skills" / "csv-report" / "evals"
    evals.mkdir()
    (evals / "tasks.json").write_text(TASK, encoding="utf-8")
    (tmp_path / "turns.yaml").write_text(SCRIPT, encoding="utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    model = ("--with-model", "--model", "scripted:turns.yaml", "--runs", "1", "--results", "results.jsonl")
    ran = run_command(["eval", "skills/csv-report", *model])
    assert (ran.returncode, "Tasks" in ran.stdout.decode()) == (1, True), ran.stderr
    library = Library(prowess.scan("skills"), eval_results="results.jsonl")
    return Browser(create_app(library, token=TOKEN))


def test_a_run_is_listed_with_its_skill_and_shows_everything_that_was_kept(browser: Browser) -> None:
    (link,) = re.findall(r'href="(/runs/with-1-[0-9a-f]+)"', browser.get("/skills/csv-report").text)
    text = browser.get(link).text
    for shown in (
        "the task, with the skill, run 1",
        "1 of 2 checks held",
        "It is clean, says &lt;script&gt;",
        "call Write",
        "report.md",
        "It is &lt;i&gt;fine&lt;/i&gt;.",
        "a.csv",
    ):
        assert shown in text, shown
    assert "<script>alert" not in text
    assert "Runs with a model" not in browser.get("/skills/deep-review").text


def test_a_run_that_the_file_does_not_name_is_not_shown(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "results.jsonl.runs" / "other").mkdir()
    (tmp_path / "results.jsonl.runs" / "other" / "answer.txt").write_text("secret", encoding="utf-8")
    for name in ("other", "..", "%2e%2e", "with-1-0"):
        answer = browser.get(f"/runs/{name}")
        assert (answer.status, "secret" in answer.text) == (404, False)


def test_a_damaged_file_of_results_hides_nothing_else(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    file.write_bytes(b"[]\nnonsense\n" + file.read_bytes() + b'{"event": "eval-run", "folder": 5}\n\xff\n')
    assert "Runs with a model" in browser.get("/skills/csv-report").text
    file.unlink()
    answer = browser.get("/skills/csv-report")
    assert (answer.status, "Runs with a model" in answer.text, "results.jsonl" in answer.text) == (200, False, True)

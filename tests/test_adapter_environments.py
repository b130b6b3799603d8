"""What ``make test-adapters`` says about the tests of adapters, and that each adapter has the tests that it must."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import adapter_tests
from scripts.adapter_tests import Outcome, format_table, read_report

ROOT = Path(__file__).resolve().parents[1]
FIRST_CLASS = ("pydantic_ai", "langchain", "openai_agents", "anthropic", "openai", "google_adk", "agent_framework")
OF_FIRST_CLASS = {
    "test_one_line_gives_an_agent_skills",
    "test_listing_is_in_the_system_text_once_and_stays_the_same",
    "test_each_conversation_has_its_own_session",
    "test_two_users_at_once_share_nothing",
    "test_session_comes_back_with_the_checkpoint",
    "test_tools_work_in_plain_code",
    "test_tools_work_in_asynchronous_code",
    "test_errors_are_results",
    "test_approval_shows_the_request_and_resuming_runs_it",
    "test_refused_call_does_not_run",
    "test_changed_files_are_asked_about_again",
    "test_approval_is_not_a_grant",
    "test_fork_runs_as_a_child_agent",
    "test_cancelling_reaches_the_child",
    "test_cancelled_run_leaves_the_conversation_usable",
    "test_enforce_refuses_tools_outside_of_the_list",
    "test_pictures_are_content_parts",
    "test_spans_nest_in_the_framework_own",
    "test_reload_between_turns",
    "test_selection_appends_to_the_listing",
}
OF_EVERY = {
    "test_one_line_gives_an_agent_skills",
    "test_each_conversation_has_its_own_session",
    "test_errors_are_results",
    "test_example_runs",
    "test_page_is_true",
}
OF_ASKING = "test_approvals_count_for_one_call_in_any_order"
"""CrewAI lets nobody decide later: the host's ``Trust(ask=…)`` is called within the call."""
ADAPTERS = sorted(
    path.stem
    for path in (ROOT / "src" / "prowess" / "adapters").glob("*.py")
    if "class Skills(" in path.read_text(encoding="utf-8")
)


def list_tests(name: str) -> set[str]:
    """Return the names of the test functions of an adapter."""
    tree = ast.parse((ROOT / "tests" / "adapters" / f"test_{name}.py").read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_has_the_tests_that_it_must(name: str) -> None:
    needed = OF_EVERY | (OF_FIRST_CLASS if name in FIRST_CLASS else set())
    needed |= {OF_ASKING} if name != "crewai" else set()
    assert needed - list_tests(name) == set()


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_has_its_page_its_example_and_its_requirements(name: str) -> None:
    for path in (
        f"docs/how-to/frameworks/{name}.md",
        f"examples/frameworks/{name}.py",
        f"requirements/adapters/{name}.in",
        f"requirements/adapters/{name}.txt",
    ):
        assert (ROOT / path).is_file(), path
    assert name in adapter_tests.list_adapters()


@pytest.mark.parametrize("name", ADAPTERS)
def test_examples_have_at_most_fifteen_lines_besides_imports(name: str) -> None:
    text = (ROOT / "examples" / "frameworks" / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(text)
    left_out = {
        line
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom)) or node is tree.body[0]  # the first is the docstring
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = [line for number, line in enumerate(text.splitlines(), 1) if line.strip() and number not in left_out]
    assert len(lines) <= 15
    assert re.search(r"^(async )?def main\(", text, re.MULTILINE)


def test_report_of_pytest_is_counted(tmp_path: Path) -> None:
    (tmp_path / "test_few.py").write_text(
        "import pytest\n"
        "def test_one(): pass\n"
        "def test_two(): pass\n"
        "def test_three(): assert False\n"
        "@pytest.fixture\n"
        "def broken(): raise ValueError\n"
        "def test_four(broken): pass\n"
        "def test_five(): pytest.skip('no cheese')\n",
        encoding="utf-8",
    )
    words = ["-m", "pytest", "-p", "no:cacheprovider", "-c", "none.ini", "--junitxml=report.xml"]
    (tmp_path / "none.ini").touch()
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, *words], cwd=tmp_path, env=env, check=False, capture_output=True)
    assert read_report((tmp_path / "report.xml").read_text(encoding="utf-8")) == (2, 2, 1)


def test_table_says_what_failed_and_what_could_not_be_tested() -> None:
    outcomes = [
        Outcome("good", "1.2", 20, 0, 1, 3.21),
        Outcome("bad", "10.20.30", 19, 2, 0, 4, problem="E assert"),
        Outcome("absent", problem="NOT TESTED: no such package"),
    ]
    assert format_table(outcomes).splitlines() == [
        "framework  version   passed  failed  skipped  seconds",
        "good       1.2           20       0        1      3.2",
        "bad        10.20.30      19       2        0      4.0  FAILED",
        "absent     -              -       -        -      0.0  NOT TESTED",
    ]


def test_what_cannot_be_installed_is_said_loudly_and_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adapter_tests, "REQUIREMENTS", tmp_path)
    monkeypatch.setattr(adapter_tests, "ENVIRONMENTS", tmp_path / "environments")
    (tmp_path / "mcp.in").write_text("mcp\n", encoding="utf-8")
    (tmp_path / "mcp.txt").write_text("not-hashed==1.0\n", encoding="utf-8")
    (tmp_path / "nothing.in").write_text("nothing\n", encoding="utf-8")
    assert adapter_tests.main([]) == 1
    said = capsys.readouterr().out
    assert "!!!!! mcp\nNOT TESTED: " in said
    assert "not-hashed" in said
    assert "!!!!! nothing\nNOT TESTED: there is no tests/adapters/test_nothing.py" in said
    assert re.search(r"^mcp .* NOT TESTED$", said, re.MULTILINE)


def test_name_without_requirements_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        adapter_tests.main(["lang-chain"])
    assert ended.value.code == 2
    assert "there is no requirements/adapters/lang-chain.in; there are " in capsys.readouterr().err


@pytest.mark.parametrize("name", adapter_tests.list_adapters())
def test_pinned_files_of_adapters_have_hashes_and_their_framework(name: str) -> None:
    text = (adapter_tests.REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    assert all(re.match(r"[\w.-]+==\S+ .*--hash=sha256:", row) for row in rows)
    package = adapter_tests.find_package(name).partition("[")[0]
    assert any(row.startswith(f"{package}==") for row in rows)

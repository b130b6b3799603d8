"""The example of an agent loop holds the same conversation in every dialect."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import prowess
from examples.agent_loop import converse
from tests.dialect_calls import READERS, load_call

CALLS = {
    dialect: [
        f"{load_call(dialect, '')[0]}('csv-report')",
        *([f"{READERS[dialect][0]}('csv-report', 'references/columns.md')"] if dialect in READERS else []),
    ]
    for dialect in prowess.DIALECTS
}


@pytest.fixture(scope="module")
def examples(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath / "examples"


def test_the_same_conversation_is_held(dialect: prowess.DialectName, examples: Path) -> None:
    """The fitting skill is loaded, its reference read where there is a tool for that, and an answer given."""
    said = converse(dialect)
    assert said.calls == CALLS[dialect]
    assert [message["role"] for message in said.messages] == ["user", *["tool"] * len(said.calls)]
    body = prowess.scan(examples / "skills")["csv-report"].read_body(strip=True)
    first_line = body.splitlines()[0]
    assert first_line in said.messages[1]["content"]
    assert str(len(said.calls)) in said.answer


def test_another_request_loads_another_skill(dialect: prowess.DialectName) -> None:
    said = converse(dialect, "Write a changelog and release notes from merged commits")
    assert "'release-notes'" in said.calls[0]


def test_it_runs_as_a_program(examples: Path) -> None:
    """All dialects without an argument, those that are named with some."""
    command = [sys.executable, str(examples / "agent_loop.py")]
    everything = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True, env=_utf8())
    assert everything.stderr == ""
    assert all(call in everything.stdout for calls in CALLS.values() for call in calls)
    one = subprocess.run(
        [*command, "skill_load"], capture_output=True, text=True, encoding="utf-8", check=True, env=_utf8()
    )
    assert one.stdout.split()[0] == "skill_load"
    assert "from_scratch__use_skill" not in one.stdout


def _utf8() -> dict[str, str]:
    return {**os.environ, "PYTHONIOENCODING": "utf-8"}

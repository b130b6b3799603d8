"""The standard streams in a pipe: UTF-8 with line feeds on every system, whatever the locale says."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from prowess.cli.entry_point import use_utf8_in_pipe

if TYPE_CHECKING:
    from pathlib import Path

OLD = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
"""What Python chooses in a pipe on a Windows of Western Europe."""


def in_pipe(*words: str, given: bytes = b"", status: int = 0) -> bytes:
    command = [sys.executable, "-m", "prowess", *words]
    ran = subprocess.run(command, input=given, env={**os.environ, **OLD}, check=False, stdout=subprocess.PIPE)
    assert ran.returncode == status
    return ran.stdout


def put_skill(project: Path, description: str) -> None:
    folder = project / ".agents" / "skills" / "greeter"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: greeter\ndescription: {description}\n---\nx\n", encoding="utf-8")


def test_data_in_a_pipe_is_utf8_whatever_the_locale_says(project: Path) -> None:
    put_skill(project, "Grüße, и привет 你好")
    skills = json.loads(in_pipe("list", "--json").decode("utf-8"))["skills"]
    assert "Grüße, и привет 你好" in [skill["description"] for skill in skills]


def test_text_in_a_pipe_is_utf8_and_nothing_is_an_escape(project: Path) -> None:
    put_skill(project, "Grüße, и привет 你好")
    assert "Grüße, и привет 你好" in in_pipe("show", "greeter").decode("utf-8")


@pytest.mark.usefixtures("project")
def test_arguments_in_a_pipe_are_read_as_utf8() -> None:
    answer = in_pipe("call", "load_skill", "-", "--json", given='{"name": "Анна"}'.encode(), status=1)
    assert "Анна" in json.loads(answer)["content"]


def test_lines_in_a_pipe_end_with_a_line_feed_alone() -> None:
    """As Python makes the streams on Windows."""
    pipe = io.BytesIO()
    stream = io.TextIOWrapper(pipe, encoding="cp1252", newline="\r\n")
    use_utf8_in_pipe(stream)
    stream.write("naïve 你好\nof a name: \udcff\n")
    stream.flush()
    assert pipe.getvalue() == "naïve 你好\nof a name: \\udcff\n".encode()


def test_closed_streams_are_passed_over() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="cp1252")
    stream.close()
    use_utf8_in_pipe(stream)
    use_utf8_in_pipe(None)

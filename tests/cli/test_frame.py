"""The frame: overview, version, errors and their statuses, broken pipes, and what is not imported."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.cli.main import BROKEN_PIPE, BUG, FAILED, USAGE, _outcome
from prowess.cli.remedies import REMEDIES
from prowess.cli.table import BY_NAME, COMMANDS, GROUPS
from prowess.errors import HINTS
from tests.cli.samples import SAMPLES, can_isolate, prepare, words_of

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Process

LOADED = """
import json, sys
from prowess.cli.main import root
try:
    root.main(sys.argv[1:], prog_name="prowess")
except SystemExit:
    pass
sys.stdout.flush()
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
HEAVY = {
    *("rich", "sqlite3", "httpx2", "asyncio", "zipfile", "tarfile", "filelock", "tomllib", "mcp", "pydantic", "yaml"),
    *(
        "subprocess",
        "ctypes",
        "difflib",
        "logging",
        "prowess.install",
        "prowess.tools.toolset",
        "prowess.runtime.scripts",
    ),
    *("prowess.authoring", "prowess.health"),
}
USED: dict[tuple[str, ...], set[str]] = {
    ("--version",): set(),
    ("--help",): set(),
    (): set(),
    ("config",): set(),
    ("list",): set(),
    ("show", "csv-report"): {"ctypes"},
    ("read", "csv-report"): set(),
    ("explain", "csv-report"): set(),
    ("search", "csv"): {"sqlite3"},
    ("prompt",): {"prowess.tools.toolset", "prowess.runtime.scripts"},
    ("new", "fresh"): {"prowess.authoring", "difflib"},
    ("trust", "list"): {"ctypes"},
    ("verify",): {"prowess.install", "ctypes", "difflib"},
}


_INSTALLING = {"prowess.install", "ctypes", "difflib"}
_WRITING = {"prowess.authoring", "ctypes", "difflib"}
USED_BY_SAMPLES: dict[str, set[str]] = {
    **dict.fromkeys(("install", "remove", "sync", "update", "outdated", "verify", "link", "unlink"), _INSTALLING),
    "adopt": _INSTALLING,
    **dict.fromkeys(("new", "check", "unpack"), _WRITING),
    "pack": {*_WRITING, "zipfile"},
    "eval": {*_WRITING, "sqlite3"},
    **{key: set[str]() for key in ("list", "explain", "preview", "activate", "config")},
    **{key: {"ctypes"} for key in ("show", "read", "trust list")},
    "search": {"sqlite3"},
    "prompt": {"prowess.tools.toolset", "prowess.runtime.scripts", "sqlite3"},
    "doctor": {"prowess.health", "prowess.install", "ctypes", "subprocess"},
    **{key: {"ctypes", "filelock", "logging"} for key in ("trust grant", "trust revoke")},
    **{key: {"prowess.tools.toolset", "prowess.runtime.scripts"} for key in ("call", "call (no tool)")},
    "run-script": {"prowess.runtime.scripts", "ctypes", "subprocess"},
    "serve": {"prowess.tools.toolset", "asyncio", "ctypes", "logging", "subprocess", "yaml"},
    "demo": HEAVY - {"mcp", "pydantic", "asyncio", "rich", "prowess.health"},
    "completion": {"subprocess"},
}
"""What the sample of each command may load."""


def loaded_by(*words: str) -> set[str]:
    """The modules that a command line loads, on no terminal."""
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


def test_alone_it_prints_an_overview_with_every_command_in_its_group(command: Command) -> None:
    ran = command()
    assert (ran.status, ran.err) == (0, "")
    groups = [row.rstrip(":") for row in ran.out.splitlines() if row.endswith(":") and not row.startswith(" ")]
    assert groups == list(GROUPS)
    for entry in COMMANDS:
        assert f"  {entry.name} " in ran.out
        assert entry.summary in ran.out
    assert command("--help").out == command("-h").out == ran.out
    assert max(map(len, ran.out.splitlines())) <= 100


def test_it_tells_its_version_also_as_a_module(command: Command, process: Process) -> None:
    ran = command("--version")
    assert (ran.status, ran.out) == (0, f"prowess {prowess.__version__}\n")
    assert process("--version") == ran


def test_the_console_script_is_the_same_program(project: Path) -> None:
    script = os.path.join(os.path.dirname(sys.executable), "prowess")  # noqa: PTH118, PTH120
    done = subprocess.run([script, "list"], capture_output=True, text=True, check=True, cwd=project)
    assert "csv-report" in done.stdout


@pytest.mark.parametrize("words", [*USED], ids=" ".join)
def test_no_command_imports_what_it_does_not_use(words: tuple[str, ...], project: Path) -> None:  # noqa: ARG001
    loaded = loaded_by(*words)
    assert "prowess.cli.main" in loaded
    assert loaded & HEAVY - USED[words] == set()


@pytest.mark.parametrize("name", SAMPLES)
def test_no_sample_imports_what_it_does_not_use(name: str, project: Path) -> None:  # noqa: ARG001
    if SAMPLES[name].sandbox and not can_isolate():
        pytest.skip("needs bubblewrap")
    prepare(name)
    assert loaded_by(*words_of(name)) & HEAVY - USED_BY_SAMPLES[name] == set()


@pytest.mark.usefixtures("project")
def test_what_is_looked_for_can_be_found() -> None:
    """Else the test above would see nothing."""
    assert "sqlite3" in loaded_by("search", "csv")
    assert "zipfile" in loaded_by("pack", ".agents/skills/csv-report")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lst"], "Did you mean 'list'"),
        (["nonsense"], "See 'prowess'"),
        (["list", "--nope"], "--nope"),
        (["show"], "NAME"),
        (["check", "--format", "pdf"], "pdf"),
    ],
)
def test_a_command_line_that_makes_no_sense_ends_with_2(command: Command, words: list[str], said: str) -> None:
    ran = command(*words)
    assert (ran.status, ran.out) == (USAGE, "")
    assert ran.err.startswith("error[usage]: ")
    assert said in ran.err
    assert "hint: see prowess" in ran.err


def test_an_error_has_code_and_hint_and_leaves_the_output_empty(command: Command, process: Process) -> None:
    for run in (command, process):
        ran = run("show", "cvs-report")
        assert (ran.status, ran.out) == (FAILED, "")
        first, second = ran.err.splitlines()
        assert first.startswith("error[unknown-skill]: unknown skill 'cvs-report'; available: csv-report, ")
        assert second == "  hint: use one of the names listed"


def test_with_json_an_error_is_data_on_the_error_stream(command: Command) -> None:
    ran = command("show", "nope", "--json")
    assert (ran.status, ran.out) == (FAILED, "")
    assert json.loads(ran.err)["error"]["code"] == "unknown-skill"


def test_an_error_with_several_violations_lists_them(command: Command, project: Path) -> None:
    (project / "Bad").mkdir()
    (project / "Bad" / "SKILL.md").write_text("---\nname: Other_Name\n---\nx\n", encoding="utf-8")
    ran = command("pack", "Bad")
    assert ran.status == FAILED
    assert "3 violations" in ran.err
    assert ran.err.count("line ") == 3


@pytest.mark.parametrize(
    "words", [("list",), ("list", "--json"), ("read", "csv-report"), ("--version",), (), ("list", "-h")], ids=str
)
def test_a_closed_pipe_is_quiet(words: tuple[str, ...], project: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "prowess", *words], stdout=writer, stderr=subprocess.PIPE, cwd=project, check=False
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (BROKEN_PIPE, b"")


def test_an_interrupt_ends_quietly_with_130(project: Path) -> None:
    """A command that waits for its input is interrupted while it waits."""
    code = (
        "import os, sys, signal\nfrom prowess.cli.main import root\n"
        "class Waiting:\n"
        "    def read(self, most):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.stdin = Waiting()\nroot.main(['call', 'load_skill', '-'], prog_name='prowess')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=project)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "\ninterrupted\n")


def test_a_mistake_of_our_own_is_told_without_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    def wrong() -> None:
        raise RuntimeError("odd \x1b[2J text")

    assert _outcome(wrong, []) == BUG
    said = capsys.readouterr()
    assert said.out == ""
    assert "RuntimeError: odd \\x1b[2J text" in said.err
    assert said.err.endswith("This is a mistake in Prowess: please report it.\n")


def test_a_file_that_the_system_refuses_is_an_error_not_a_trace(command: Command) -> None:
    ran = command("pack", ".agents/skills/csv-report", "-o", "/dev/null/x.skill")
    assert ran.status == FAILED
    assert ran.err.startswith("error[unwritable]: ")


def test_remedies_of_the_command_line_are_for_codes_that_exist_and_name_options_that_exist() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    for code, said in REMEDIES.items():
        assert code in HINTS
        assert "=True" not in said
        assert all(option in page for option in re.findall(r"--[a-z-]+", said))
        assert all(name in BY_NAME for name in re.findall(r"prowess ([a-z-]+)", said))

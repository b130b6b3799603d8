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
from prowess.cli.entry_point import COMMANDS, COMMANDS_BY_NAME, GROUPS
from prowess.cli.issues import REMEDIES
from prowess.cli.main import BROKEN_PIPE, BUG, FAILED, USAGE, _run_to_status
from prowess.errors import HINTS
from tests.cli.samples import SAMPLES, prepare, words_of
from tests.sandbox_support import can_isolate, require_sandbox

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Process, Terminal

LOADED = """
from prowess.cli.entry_point import run
try:
    run()
except SystemExit:
    pass
import os, sys
names = sorted(sys.modules)
import json
with open(os.environ["LOADED"], "w") as file:
    json.dump(names, file)
"""
HEAVY = {
    *("rich", "sqlite3", "httpx2", "asyncio", "zipfile", "tarfile", "tomllib", "pydantic"),
    *("subprocess", "ctypes", "difflib", "logging", "ssl", "importlib.metadata", "numpy", "onnxruntime"),
}
ROOMS = {
    *(
        "adapters",
        "agent",
        "authoring",
        "fetch",
        "install",
        "mcp",
        "conversation",
        "select",
        "sources",
        "tools",
    ),
    "web",
}
"""The parts of the library that a command which only looks at skills does without."""

_INSTALLING = {"fetch", "install"}
_TALKING = {"conversation", "select", "tools"}
_AGENT = {
    *("adapters", "agent", "asyncio", "ctypes", "difflib", "httpx2", "importlib.metadata", "install", "logging"),
    *("pydantic", "conversation", "select", "ssl", "subprocess", "tools", "zipfile"),
}
USED: dict[str, set[str]] = {
    **{name: set[str]() for name in ("--version", "--help", "", "list", "explain", "config")},
    **dict.fromkeys(("remove", "sync", "outdated", "verify", "link", "unlink", "backups"), _INSTALLING),
    **dict.fromkeys(("sync (recursive)", "outdated (recursive)", "verify (recursive)"), _INSTALLING),
    "adopt": {*_INSTALLING, "ctypes", "subprocess"},
    "cache": _INSTALLING,
    "policy show": {"tomllib"},
    "policy fetch": {"fetch", "tomllib"},
    "policy check": {"tomllib"},
    "review": {*_INSTALLING, "difflib", "tomllib"},
    "audit": {*_INSTALLING, "ctypes", "tomllib"},
    "inventory": set(),
    "install": {*_INSTALLING, "authoring", "select", "subprocess"},  # git is asked what it ignores
    "install (list)": {"authoring", "fetch", "install", "select"},
    "list (agents)": _INSTALLING,
    "list (installed)": _INSTALLING,
    "update": {*_INSTALLING, "ctypes", "difflib"},
    "lock": _INSTALLING,
    "lock (merge)": {*_INSTALLING, "subprocess", "tomllib"},
    "diff": {*_INSTALLING, "difflib"},
    "diff (lock)": {*_INSTALLING, "difflib"},
    "find": {"fetch", "install", "sqlite3"},
    "new": {"authoring"},
    "check": {"authoring", "ctypes", "select"},
    "unpack": {"authoring", "fetch"},
    "pack": {"authoring", "ctypes", "fetch", "zipfile"},
    "publish": {"authoring", "ctypes", "fetch", "select", "sources", "subprocess", "tarfile"},
    "unpublish": {"authoring", "ctypes", "fetch", "select", "sources", "subprocess"},
    "eval": {"authoring", "conversation", "ctypes", "select", "sqlite3"},
    "eval (agent)": {*_AGENT, "authoring", "numpy", "onnxruntime", "sqlite3"},  # meaning is prepared
    "preview": {"conversation", "ctypes", "select"},
    "show": {"ctypes"},
    "read": {"ctypes"},
    "trust list": {"conversation", "ctypes", "sources"},
    "search": {"ctypes", "sqlite3"},
    "search (prepare)": {"ctypes", "sqlite3"},
    "explain (query)": _TALKING,
    "prompt": {*_TALKING, "ctypes", "sqlite3"},
    "ui": {
        *(
            "authoring",
            "ctypes",
            "fetch",
            "install",
            "logging",
            "conversation",
            "select",
            "sqlite3",
            "tools",
            "web",
        ),
    },
    "doctor": {"ctypes", "fetch", "install", "conversation", "subprocess"},
    "trust grant": {"ctypes", "conversation"},
    "trust revoke": {"conversation", "sources"},
    "call": {*_TALKING, "ctypes"},
    "call (no tool)": _TALKING,
    "run-script": {"ctypes", "conversation", "subprocess"},
    **dict.fromkeys(("run", "try"), _AGENT),
    "serve": {"ctypes", "mcp"},  # the sample is --check, which starts no server
    "demo": {*_AGENT, "authoring", "tarfile", "fetch", "rich", "sources", "sqlite3"},
    "completion": {"subprocess"},
}
"""Exactly what the sample of each command loads of those, in a pipe."""
PLAIN = {"--version", "--help", "", "read", "call", "completion", "run-script"}
"""Commands that do not need rich even on a terminal: they print one text everywhere, or nothing to be wrapped."""
BARS = {
    *("sync (recursive)", "outdated (recursive)", "verify (recursive)"),
    *("install", "sync", "update", "outdated", "verify", "link", "adopt", "check", "eval", "pack", "unpack", "doctor"),
    *("publish", "unpublish", "policy fetch"),
    *("audit", "remove", "unlink", "trust grant", "cache", "lock", "list (installed)"),
    *(
        "ui",
        "diff",
        "diff (lock)",
        "review",
        "find",
        "install (list)",
        "search",
        "search (prepare)",
        "prompt",
        "explain (query)",
    ),
    "eval (agent)",
}
"""Commands that draw progress bars on a terminal."""


def heavy_in(loaded: set[str]) -> set[str]:
    """The heavy modules and the rooms among those that were loaded."""
    rooms = {name.split(".")[1] for name in loaded if name.startswith("prowess.")}
    sdk = {"the SDK of MCP"} if "mcp" in loaded else set()
    return loaded & HEAVY | rooms & ROOMS | sdk


def heavy_for(name: str, loaded: set[str]) -> set[str]:
    """The same, without what a command loads only where other tests of this worker have filled the cache."""
    return heavy_in(loaded) - ({"ctypes"} if name == "cache" else set())


def loaded_by(*words: str) -> set[str]:
    """The modules that a command line loads, on no terminal."""
    kept = Path.cwd().parent / "loaded.json"
    env = {**os.environ, "LOADED": str(kept)}
    subprocess.run(
        [sys.executable, "-c", LOADED, *words], capture_output=True, stdin=subprocess.DEVNULL, check=True, env=env
    )
    return set(json.loads(kept.read_text(encoding="utf-8")))


def loaded_on(terminal: Terminal, *words: str) -> set[str]:
    """The modules that a command line loads where both of its streams are a terminal."""
    kept = Path.cwd().parent / "loaded.json"
    terminal(*words, both=True, program=("-c", LOADED), env={"LOADED": str(kept)})
    return set(json.loads(kept.read_text(encoding="utf-8")))


def line_of(name: str) -> list[str]:
    """The command line of a sample, or of a call without a command; what it needs is there."""
    if name not in SAMPLES:
        return [name] if name else []
    if SAMPLES[name].sandbox:
        require_sandbox()
    prepare(name)
    return words_of(name)


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


def test_a_process_gives_the_overview_that_click_gives(command: Command, process: Process) -> None:
    ran = process("--help")
    assert ran == process("-h") == command("--help")
    assert "New here?" in ran.out


def test_help_is_a_command_too(command: Command) -> None:
    assert command("help") == command("--help")
    assert command("help", "trust", "grant") == command("trust", "grant", "--help")
    assert command("help", "nothing").status == 2


def test_the_console_script_is_the_same_program(project: Path) -> None:
    script = os.path.join(os.path.dirname(sys.executable), "prowess")  # noqa: PTH118, PTH120
    done = subprocess.run([script, "list"], capture_output=True, text=True, check=True, cwd=project)
    assert "csv-report" in done.stdout


EXACT = sys.platform == "linux" and can_isolate()
"""On other systems a command may load less, since a sandbox or a system call is missing; never more."""


@pytest.mark.parametrize("words", ["--version", "--help", "-h"])
@pytest.mark.usefixtures("project")
def test_the_version_and_the_overview_need_no_click(words: str) -> None:
    assert loaded_by(words) & {"click", "dataclasses", "inspect", "prowess.errors"} == set()


def test_a_listing_of_plain_skills_loads_what_finds_and_shows_them(project: Path) -> None:
    """It neither loads the table of agents nor quotes a path for a shell."""
    (project / "plain" / "invoices").mkdir(parents=True)
    text = "---\nname: invoices\ndescription: Writes invoices.\n---\nbody\n"
    (project / "plain" / "invoices" / "SKILL.md").write_text(text, encoding="utf-8")
    loaded = loaded_by("list", "plain")
    assert "prowess.discovery.scan" in loaded
    unused = {"shlex", "unicodedata", "prowess.discovery.agents", "prowess.skills.parse"}
    assert loaded & unused == set()


def test_every_command_says_what_it_uses() -> None:
    assert set(SAMPLES) | {"--version", "--help", ""} == set(USED)


@pytest.mark.parametrize("name", USED)
@pytest.mark.usefixtures("project")
@pytest.mark.sampled(0.15, always={"list", "--version", ""})
def test_in_a_pipe_no_command_imports_what_it_does_not_use(name: str) -> None:
    loaded = loaded_by(*line_of(name))
    assert heavy_for(name, loaded) <= USED[name]
    assert heavy_for(name, loaded) == USED[name] or not EXACT
    assert own_modules(loaded) == modules_of(name)


@pytest.mark.parametrize("name", USED)
@pytest.mark.sampled(0.1, always={"list", "call"})
def test_on_a_terminal_it_imports_rich_besides_if_it_needs_it(name: str, terminal: Terminal) -> None:
    loaded = loaded_on(terminal, *line_of(name))
    assert heavy_for(name, loaded) <= USED[name] | {"rich"}
    assert ("rich" in loaded) == (name not in PLAIN)
    assert ("rich.progress" in loaded) == (name in BARS)
    assert own_modules(loaded) == modules_of(name)


def own_modules(loaded: set[str]) -> set[str]:
    """The commands whose modules were loaded."""
    prefix = "prowess.cli.commands."
    return {name.removeprefix(prefix) for name in loaded if name.startswith(prefix)}


def modules_of(name: str) -> set[str]:
    """The module of a command alone."""
    own = name.split(" ", maxsplit=1)[0]
    return {COMMANDS_BY_NAME[own].module} if own in COMMANDS_BY_NAME else set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lst"], "Did you mean 'list'"),
        (["uninstall", "pdf"], "No such command 'uninstall'. Did you mean 'remove'?"),
        (["upgrade"], "No such command 'upgrade'. Did you mean 'update'?"),
        (["ls"], "No such command 'ls'. Did you mean 'list'?"),
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
        assert second == "  hint: did you mean csv-report?"


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

    assert _run_to_status(wrong, []) == BUG
    said = capsys.readouterr()
    assert said.out == ""
    assert "RuntimeError: odd \\x1b[2J text" in said.err
    assert said.err.endswith("This is a mistake in Prowess: please report it.\n")


def test_a_file_that_the_system_refuses_is_an_error_not_a_trace(command: Command) -> None:
    ran = command("pack", ".agents/skills/csv-report", "-o", "/dev/null/x.skill")
    assert ran.status == FAILED
    assert ran.err.startswith("error[unwritable]: ")


def test_remedies_of_the_command_line_are_for_codes_that_exist_and_name_options_that_exist() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for code, said in REMEDIES.items():
        assert code in HINTS
        assert "=True" not in said
        assert all(option in page for option in re.findall(r"--[a-z-]+", said))
        assert all(name in COMMANDS_BY_NAME for name in re.findall(r"prowess ([a-z-]+)", said))


@pytest.mark.skipif(os.name == "nt", reason="a POSIX shell closes the streams")
@pytest.mark.sampled(0.25)
@pytest.mark.parametrize("words", ["list", "list --json", "--help", "check .agents/skills", "doctor", "show none"])
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_a_stream_that_the_shell_closed_is_nobody_to_talk_to(project: Path, words: str, closed: str) -> None:
    line = f'"{sys.executable}" -m prowess {words} {closed}'
    done = subprocess.run(["sh", "-c", line], cwd=project, capture_output=True, text=True, timeout=60, check=False)
    expected = {3} if "none" in words else SAMPLES[words].statuses if words in SAMPLES else {0}
    assert done.returncode in expected, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("trust",), "prowess trust needs one of its commands"),
        (("completion",), "Choose from: bash, zsh, fish"),
        (("show",), "Missing argument 'NAME'."),
        (("list", "--nosuch"), "No such option"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told_in_one_line_or_as_data(
    command: Command, words: tuple[str, ...], message: str
) -> None:
    text = command(*words)
    assert text.status == 2
    first, hint = text.err.splitlines()
    assert first.startswith("error[usage]: ")
    assert message in first
    assert hint.strip().startswith("hint: see prowess")
    data = json.loads(command(*words, "--json").err)
    assert data["error"]["code"] == "usage"
    assert words == ("trust",) or message in data["error"]["message"]  # a group has no --json of its own

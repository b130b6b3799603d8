"""What the tests of the command line share: a project of their own, and three ways to run a command."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from prowess.cli.main import root
from tests.cli.samples import SAMPLES, prepare
from tests.cli_processes import fork_command, run_command
from tests.sandbox_support import require_sandbox

if TYPE_CHECKING:
    from tests.fork_server import ForkedProcess

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
KILL_AFTER = 60


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed on each stream."""

    status: int
    out: str
    err: str

    @property
    def plan(self) -> str:
        """The plan, which comes before the report; empty if there was none."""
        plan, blank, _ = self.out.partition("\n\n")
        return f"{plan}\n" if blank and plan.startswith("Plan:\n") else ""

    @property
    def report(self) -> str:
        """What was printed after the plan."""
        return self.out.partition("\n\n")[2] if self.plan else self.out

    @property
    def data(self) -> Any:
        """The answer as data."""
        return json.loads(self.out)


class Command:
    """Runs a command line in this process, through click's own runner."""

    def __call__(self, *words: str, stdin: str = "") -> Ran:
        done = CliRunner().invoke(root, list(words), prog_name="prowess", input=stdin)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)


class Process:
    """Runs a command line as a process of its own, its output in files."""

    def __call__(self, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> Ran:
        done = run_command(words, given=stdin, env=env)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


class Terminal:
    """Runs a command line as a process whose output is a terminal; with ``both`` its error stream is the same one.

    ``typed``: what a person types, whose terminal it is then too. ``program``: what Python is started with instead.
    """

    def __call__(
        self,
        *words: str,
        columns: int = 80,
        env: dict[str, str] | None = None,
        both: bool = False,
        typed: str = "",
        program: tuple[str, ...] = (),
    ) -> Ran:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        added = {"TERM": "xterm-256color", **(env or {})}
        with TemporaryFile() as stderr, Path(os.devnull).open("rb") as nothing:
            stdin, errors = slave if typed else nothing.fileno(), slave if both else stderr.fileno()
            process: subprocess.Popen[bytes] | ForkedProcess
            if program:
                words, env = (sys.executable, *program, *words), {**os.environ, **added}
                process = subprocess.Popen(words, env=env, stdin=stdin, stdout=slave, stderr=errors)
            else:
                process = fork_command(words, env=added, stdin=stdin, stdout=slave, stderr=errors)
            os.close(slave)
            os.write(master, typed.encode())
            try:
                shown = _read_all(master)
                status = process.wait(KILL_AFTER)
            finally:
                os.close(master)
                process.kill()
            stderr.seek(0)
            return Ran(status, shown, stderr.read().decode())


def _read_all(master: int) -> str:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the example skills where agents look, in a home folder of its own; the working folder."""
    home = tmp_path / "home"
    made = home / "project"
    (made / ".git").mkdir(parents=True)
    for name in ("skills", "acting"):
        shutil.copytree(EXAMPLES / name, made / ".agents" / "skills", dirs_exist_ok=True)
    for name in list(os.environ):
        if name.startswith("PROWESS_") and name != "PROWESS_TEST_SEED":
            monkeypatch.delenv(name)
    for name in (
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
        "CLAUDE_CONFIG_DIR",
        "NO_COLOR",
        "FORCE_COLOR",
        "COLUMNS",
        "LINES",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def command(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:  # noqa: ARG001 - a fixture for its effect
    """A command line in this process, as if the extra ``semantic`` were not installed: the encoder takes a while."""
    monkeypatch.setitem(sys.modules, "prowess_retriever", None)  # Python takes such a module for a missing one
    return Command()


@pytest.fixture
def command_with_encoder(command: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A command line in this process, with the encoder of the extra ``semantic``."""
    monkeypatch.delitem(sys.modules, "prowess_retriever")
    model_files = importlib.import_module("prowess_retriever.model_files")
    if not (model_files.FOLDER / model_files.MANIFEST).exists():
        pytest.skip("NOT TESTED: commands with the encoder; the files of its model are not in this checkout")
    return command


@pytest.fixture
def process(project: Path) -> Process:  # noqa: ARG001 - a fixture for its effect
    """A command line as a process."""
    return Process()


@pytest.fixture
def terminal(project: Path) -> Terminal:  # noqa: ARG001 - a fixture for its effect
    """A command line on a terminal."""
    return Terminal()


@pytest.fixture(params=SAMPLES)
def name(request: pytest.FixtureRequest, project: Path) -> str:  # noqa: ARG001 - a fixture for its effect
    """Each command, with everything that its call needs."""
    chosen = str(request.param)
    if SAMPLES[chosen].sandbox:
        require_sandbox()
    prepare(chosen)
    return chosen

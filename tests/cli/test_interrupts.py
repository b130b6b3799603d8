"""Ctrl-C at any moment: the command ends with 130 and a word, and what it was about is as before or as it will be."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.cli.samples import another, installed
from tests.fork_server import fork_server_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from tests.cli.conftest import Command

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are interrupted on their own")

SAMPLES = {
    **dict.fromkeys(("install", "install from git", "update", "remove", "sync"), (3, 1)),
    **dict.fromkeys(("link", "adopt"), (2, 1)),
    **dict.fromkeys(("install into", "unpack"), (2, -1)),
}
"""How many moments of each command are tried unless all are, and how many with an interrupt at every call that follows.

Only the first two groups have a next command that tidies up what this one was not let to.
"""


@pytest.mark.parametrize("operation", SAMPLES)
def test_an_interrupt_at_any_call_loses_nothing(tmp_path: Path, operation: str, full: bool, seed: int) -> None:
    """The status, what is said, what a reader sees; then ``verify`` is clean, nothing is left, a further try works."""
    most, again = SAMPLES[operation]
    if full:
        most, again = 0, min(again, 0)
    fork_server = fork_server_for(Path(__file__).parent / "interrupting.py")
    done = fork_server.run(str(tmp_path), operation, most, again, seed, seconds=600)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["wrong"] == {}
    assert answer["moments"] > 20
    assert answer["tried"] == [max(count, 0) if count else answer["moments"] for count in (most, again)]


WAITING = """
import fcntl, os, select, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from prowess.cli.main import run
from prowess.files import syscalls
ready, at, seen = int(sys.argv.pop(1)), int(sys.argv.pop(1)), 0
def wait(name, moment, path):
    global seen
    seen += 1
    if seen == at:
        os.write(ready, b"now")
        while True:
            select.select([], [], [], 0.1)
syscalls.set_watcher(wait)
run()
"""
"""The command, which waits at a call until somebody presses Ctrl-C at its terminal."""


@pytest.mark.parametrize("at", [1, 12, 40])
def test_control_c_at_the_terminal_ends_the_bar_and_the_command(project: Path, command: Command, at: int) -> None:
    """The terminal itself makes the signal; the bar is erased, and the cursor is there again."""
    another()
    status, shown = pressed(("install", "./elsewhere/notes", "--project", "--yes"), at)
    assert status == 130
    assert "fetching" in shown
    assert shown.endswith("interrupted\r\n")
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") >= 1
    assert "Traceback" not in shown
    assert not (project / ".prowess/skills/local/notes").exists()
    assert command("verify").status == 0
    assert command("install", "./elsewhere/notes", "--project", "--yes").status == 0


def test_control_c_at_the_question_means_no(project: Path, command: Command) -> None:
    installed()
    master, slave = pty.openpty()
    code = "import fcntl, termios\nfcntl.ioctl(0, termios.TIOCSCTTY, 0)\nfrom prowess.cli.main import run\nrun()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "remove", "notes"], stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    shown = ""
    while "[y/N]" not in shown:
        shown += os.read(master, 65536).decode()
    part = shown
    while part:  # Python misses it in the very moment before it begins to read: press once more
        os.write(master, b"\x03")
        while select.select([master], [], [], 1)[0] and (part := read_some(master)):
            shown += part
    os.close(master)
    assert process.wait(60) == 130
    assert shown.endswith("interrupted\r\n")
    assert (project / ".prowess/skills/local/notes").exists()
    assert command("verify").status == 0


class InterruptedEncoder:
    """An encoder that is told how many texts it may encode before somebody presses Ctrl-C."""

    name = "interrupted"

    def __init__(self) -> None:
        self.before_interrupt = sys.maxsize
        self.encoded: list[str] = []

    def encode_skills(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if len(self.encoded) >= self.before_interrupt:
            signal.raise_signal(signal.SIGINT)
        self.encoded += texts
        return np.full((len(texts), 4), 0.5, np.float32)

    encode_requests = encode_skills


def test_control_c_while_a_search_is_prepared_keeps_what_was_done(
    project: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(150):
        file = project / ".agents" / "skills" / f"skill-{number}" / "SKILL.md"
        file.parent.mkdir()
        file.write_text(f"---\nname: skill-{number}\ndescription: Does {number}.\n---\nx\n", encoding="utf-8")
    encoder = InterruptedEncoder()
    installed_package = ModuleType("prowess_retriever")
    installed_package.__spec__ = ModuleSpec("prowess_retriever", None)
    vars(installed_package)["load_encoder"] = lambda: encoder
    monkeypatch.setitem(sys.modules, "prowess_retriever", installed_package)
    encoder.before_interrupt = 1
    ran = command("search", "--prepare")
    kept = set(encoder.encoded)
    assert (ran.status, ran.out) == (130, "")
    assert ran.err.split("\n", 1)[0] == "What was prepared is kept: the next time, the preparation goes on from there."
    assert ran.err.endswith("\ninterrupted\n")
    assert 0 < len(kept) < 156
    assert command("search", "csv", "--json").data["mode"] == "words", "never by half of the vectors"
    encoder.before_interrupt, encoder.encoded = sys.maxsize, []
    assert "156 skills go by words and meaning" in command("search", "--prepare").out
    assert (len(encoder.encoded), kept & set(encoder.encoded)) == (156 - len(kept), set())


def pressed(words: tuple[str, ...], at: int) -> tuple[int, str]:
    """Press Ctrl-C when the command is at a call; its status, and what the terminal showed."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    told, ready = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", WAITING, str(ready), str(at), *words],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        pass_fds=(ready,),
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(slave)
    os.close(ready)
    assert select.select([told], [], [], 60)[0]
    assert os.read(told, 3) == b"now"
    os.close(told)
    os.write(master, b"\x03")
    shown = read_all(master)
    return process.wait(60), shown


def read_all(master: int) -> str:
    shown = "".join(iter(lambda: read_some(master), ""))
    os.close(master)
    return shown


def read_some(master: int) -> str:
    """What a terminal shows next; nothing when the other end is closed."""
    try:
        return os.read(master, 65536).decode()
    except OSError:
        return ""

"""Bars on long work: they move, they can do no harm, they are gone afterwards, and no pipe ever sees one."""

from __future__ import annotations

import json
import os
import pty
import random
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

import prowess
from tests.cli.persons import Person
from tests.cli.samples import SKILLS, packed, with_evals
from tests.git_servers import http
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Process, Terminal

BAR = re.compile("[━╸╺]{2,}")
OWN = re.compile(r"\x1b\[(?:\?25[lh]|[0-9;]*[mAK])|\r")
"""What a bar is drawn with: colours, the cursor hidden and shown, a line up, a line erased."""
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"


class Work(NamedTuple):
    """A command line, what must be there before it, and how many steps its last loop has."""

    words: tuple[str, ...]
    steps: int
    before: Callable[[], object]


def several() -> None:
    """Two skills in a folder that agents do not look in."""
    for name in ("notes", "more-notes"):
        prowess.create_skill(name, "elsewhere", description=f"Writes {name}.", parts=["references"])


def installed() -> None:
    """Both installed for the project."""
    several()
    for name in ("notes", "more-notes"):
        prowess.Installer().install_local(f"elsewhere/{name}", project=True)


def edited() -> None:
    """Both, and then changed at their source."""
    installed()
    for name in ("notes", "more-notes"):
        with Path("elsewhere", name, "SKILL.md").open("a", encoding="utf-8") as file:
            file.write("\nOne more line.\n")


def declared() -> None:
    """Both declared, and not installed."""
    several()
    Path("prowess.toml").write_text('skills = ["./elsewhere/notes", "./elsewhere/more-notes"]\n', encoding="utf-8")


WORKS = {
    "install": Work(("install", "./elsewhere", "--project", "--yes"), 4, several),
    "install --skill": Work(
        ("install", "./elsewhere", "--project", "--yes", "--skill", "notes", "--skill", "more-notes"), 2, several
    ),
    "install --into": Work(("install", "./elsewhere/notes", "--into", "vendor", "--yes"), 2, several),
    "sync": Work(("sync", "--yes"), 2, declared),
    "update": Work(("update", "--yes"), 2, edited),
    "outdated": Work(("outdated",), 2, edited),
    "verify": Work(("verify",), 2, installed),
    "link": Work(("link", "notes", "--agent", "claude-code", "--agent", "windsurf", "--yes"), 2, installed),
    "adopt": Work(("adopt", "--yes"), 6, lambda: None),
    "check": Work(("check", str(SKILLS)), 2, lambda: None),
    "check --fix": Work(("check", str(SKILLS), "--fix"), 2, lambda: None),
    "eval": Work(("eval", str(SKILLS / "csv-report"), "--selector", "lexical"), 2, with_evals),
    "pack": Work(("pack", str(SKILLS / "csv-report")), 4, lambda: None),
    "unpack": Work(("unpack", "packed.skill", "--dir", "out"), 4, packed),
    "doctor": Work(("doctor",), 12, lambda: None),
}


@pytest.fixture(params=WORKS)
def work(request: pytest.FixtureRequest, project: Path) -> Work:  # noqa: ARG001 - a fixture for its effect
    """Each command whose work has steps, with everything that it needs."""
    chosen = WORKS[str(request.param)]
    chosen.before()
    return chosen


@pytest.mark.sampled(0.3)
def test_long_work_has_a_bar_that_reaches_its_end_and_is_gone_afterwards(work: Work, terminal: Terminal) -> None:
    ran = terminal(*work.words, both=True)
    assert ran.status in {0, 1}, ran.out
    assert BAR.search(ran.out), ascii(ran.out)
    assert f"{work.steps}/{work.steps}" in ran.out, ascii(ran.out)
    assert not BAR.search(_left(ran.out)), "it is erased"
    assert ran.out.count("\x1b[?25l") == ran.out.count("\x1b[?25h"), "the cursor is shown again"


def _left(shown: str) -> str:
    """What is still to be seen: lines that were erased are gone."""
    screen: list[str] = [""]
    for part in re.findall(r"\x1b\[1A|\x1b\[2K|\n|\r|[^\x1b\n\r]+|\x1b\[[?0-9;]*[a-zA-Z]", shown):
        if part == "\n":
            screen.append("")
        elif part == "\x1b[1A" and not screen[-1]:
            screen.pop()
        elif part in {"\x1b[2K", "\r"}:
            screen[-1] = "" if part == "\x1b[2K" else screen[-1]
        elif not part.startswith("\x1b"):
            screen[-1] += part
    return "\n".join(screen)


@pytest.mark.sampled(0.25)
def test_a_pipe_sees_nothing_of_it(work: Work, process: Process) -> None:
    ran = process(*work.words)
    assert ran.status in {0, 1}, ran.err
    assert not BAR.search(ran.out + ran.err)
    assert "\x1b" not in ran.out + ran.err
    assert f"{work.steps}/{work.steps}" not in ran.err


def test_a_bar_is_drawn_on_the_error_stream_alone(terminal: Terminal) -> None:
    """The answer in a file, a person at the error stream; and the other way round."""
    installed()
    code = (
        "import os, sys\nout = os.open('answer.txt', os.O_WRONLY | os.O_CREAT)\nos.dup2(out, 1)\n"
        "from prowess.cli.main import run\nrun()"
    )
    ran = terminal("verify", both=True, program=("-c", code))
    assert BAR.search(ran.out)
    assert Path("answer.txt").read_text(encoding="utf-8") == "2 skills installed, all as the lock files say.\n"
    assert not BAR.search(terminal("verify").out)


def test_a_bar_moves_while_the_work_goes_on(project: Path, tmp_path: Path) -> None:
    """The second of two sources does not answer before the bar was seen to stand at one of two."""
    for name in ("alpha", "beta"):
        repository = Repository(tmp_path / "repositories" / name)
        repository.skill("")
        repository.commit()
        prowess.Installer().install(repository.address, project=True)
    gate, programs = tmp_path / "gate", tmp_path / "bin"
    os.mkfifo(gate)
    programs.mkdir()
    real = next(where for where in os.environ["PATH"].split(os.pathsep) if os.access(f"{where}/git", os.X_OK))
    waits = f'case "$*" in *beta*) cat {gate} > /dev/null;; esac\nexec {real}/git "$@"\n'
    (programs / "git").write_text(f"#!/bin/sh\n{waits}", encoding="utf-8")
    (programs / "git").chmod(0o755)
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "prowess", "outdated"],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm"},
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=slave,
    )
    os.close(slave)
    shown = _read_until(master, "1/2")
    assert "2/2" not in shown
    assert "local/beta" in shown
    gate.write_bytes(b"go")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"Everything is current.\n")
    assert "2/2" in _read_until(master, "2/2")
    os.close(master)


def test_a_bar_shows_how_many_bytes_have_come_while_a_repository_is_fetched(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server holds the second half back until the person has seen how much there is of the first."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    repository = Repository(tmp_path / "repositories" / "large")
    repository.skill("", name="large")
    repository.write("data.bin", random.Random(16).randbytes(400_000))
    repository.commit()
    seen = threading.Event()
    with http(tmp_path / "repositories") as server:
        server.midway = lambda: seen.wait(60)
        with Person("install", f"{server.address}/large", "--ref", "HEAD", "--list", "--allow-http") as person:
            shown = person.read_until(" kB")
            seen.set()
            assert person.wait() == 0
    seen_first = re.search(r"fetching .*: (\d+\.\d) kB", shown)
    assert seen_first
    assert float(seen_first[1]) < 400
    assert project.exists()


def _read_until(master: int, words: str) -> str:
    shown = ""
    while words not in shown:
        shown += os.read(master, 65536).decode()
    return shown


def test_what_a_bar_names_can_do_no_harm(terminal: Terminal) -> None:
    """Case by case the name is in the bar: the work ends in the middle, so the last bar shows the step it was at."""
    cases = [{"query": "good", "skill": "csv-report"}, {"query": f"[red]a {EVIL} b", "skill": "nope"}]
    Path("evals.json").write_text(json.dumps(cases), encoding="utf-8")
    ran = terminal("eval", "evals.json", "--selector", "lexical", both=True)
    assert ran.status == 3
    assert "asking: [red]a \\x1b[2J" in ran.out
    assert "1/2" in ran.out
    assert not RAW.search(OWN.sub("", ran.out)), ascii(ran.out)


def test_a_long_name_does_not_break_the_line(terminal: Terminal) -> None:
    cases = [{"query": "good", "skill": "csv-report"}, {"query": "long " * 100, "skill": "nope"}]
    Path("evals.json").write_text(json.dumps(cases), encoding="utf-8")
    ran = terminal("eval", "evals.json", "--selector", "lexical", both=True, columns=60)
    drawn = [row for row in OWN.sub("", ran.out.replace("\r", "\n")).splitlines() if BAR.search(row)]
    assert drawn
    assert max(map(len, drawn)) <= 60

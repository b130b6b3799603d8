"""Control characters in a skill, in a file name or in a message of git are always shown escaped."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli_processes import fork_command, run_command

if TYPE_CHECKING:
    from tests.hostile.invariants import Library

# Clears the screen, sets a title, rings, hides text in a link, C1 CSI, overwrites the line, turns the text around.
EVIL = "\x1b[2J\x1b]0;owned\x07\x1b]8;;http://x\x1b\\click\x1b]8;;\x1b\\\x9b31m\rgone\x00\x7f\u202e"
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DRAWN = re.compile(r"\x1b\[(?:\?25[lh]|[0-9;]*[mAK])|\r(?=\x1b\[2K|\x1b\[1A|\n)")
"""Colours, and a bar that is erased again."""
ESCAPED = '"Does \\e[2J\\e]0;owned\\a\\x9b31m\\rgone\\0 it."'
COMMANDS = [
    *(["list"], ["list", "--json"], ["show", "evil"], ["show", "evil", "--json"], ["read", "evil"], ["search", "does"]),
    *(
        ["read", "evil", "references/odd.md"],
        ["explain", "evil"],
        ["prompt"],
        ["prompt", "--json"],
        ["check", "library"],
    ),
    *(["check", "library", "--format", "github"], ["check", "library", "--json"], ["preview", "evil"], ["doctor"]),
    *(["preview", "evil"], ["preview", "evil", "--json"], ["call", "load_skill", '{"name": "evil"}']),
    *(
        ["call", "read_skill_file", '{"name": "evil", "path": "references/odd.md"}'],
        ["trust", "grant", "evil", "--yes"],
    ),
    *(["show", f"no{EVIL}".replace("\0", "")], ["install", f"./{EVIL}".replace("\0", ""), "--yes"], ["nope\x1b[2J"]),
    *(["eval", "library/evil"], ["config", "x\x1b[2J"], ["run-script", "evil", "scripts/say.py", "--sandbox", "none"]),
]


@pytest.fixture
def hostile(library: Library, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A library whose evil skill says it in its head, its body, its files and their names."""
    library.write(f"---\nname: evil\ndescription: {ESCAPED}\n---\nBody {EVIL}\n")
    library.put("evil/references/odd.md", f"File {EVIL.replace(chr(0), '')}\n")
    library.put("evil/references/na\x1b[2Jme\x07.md", "x")
    library.put("evil/scripts/say.py", f"print({EVIL!r})\n")
    library.put("evil/evals/t.json", json.dumps([{"query": EVIL, "should_trigger": True}]))
    library.put("bro\x1b[2Jken/SKILL.md", "nothing\n")
    home = library.base / "home"
    home.mkdir()
    (library.base / ".git").mkdir()
    (library.base / "prowess.toml").write_text(
        '[settings]\nfolders = ["library"]\n"o\\u001b[2J" = 1\n', encoding="utf-8"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(library.base)
    return library.base


@pytest.mark.usefixtures("hostile")
@pytest.mark.sampled(0.3)
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: ascii(" ".join(words))[:40])
def test_no_raw_control_character_reaches_a_pipe(words: list[str]) -> None:
    """Case 40: neither stream has any, in text and in JSON, and JSON keeps the data exact."""
    done = run_command(words)
    out, err = done.stdout.decode(), done.stderr.decode()
    assert not RAW.search(out), ascii(out)
    assert not RAW.search(err), ascii(err)
    assert "Traceback" not in err
    assert out or err


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize(
    "words", [["list"], ["show", "evil"], ["read", "evil"], ["check", "library"], ["nope\x1b[2J"]], ids=str
)
def test_no_raw_control_character_reaches_a_terminal(words: list[str]) -> None:
    """Case 40: on a terminal there are colours and bars, and nothing else that it would obey."""
    master, slave = pty.openpty()
    with Path(os.devnull).open("rb") as nothing:
        process = fork_command(words, stdin=nothing, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        shown += part
    process.wait()
    os.close(master)
    text = DRAWN.sub("", shown.decode().replace("\r\n", "\n"))
    assert not RAW.search(text), ascii(text)
    assert text.strip()


def test_what_git_says_is_made_harmless_too(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 40: an error of git is escaped like any other output."""
    programs = hostile / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\nprintf 'fatal: \\033[2J\\007 owned\\n' >&2\nexit 128\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    done = run_command(["install", f"file://{hostile}/library/good", "--yes"])
    assert done.returncode == 3
    assert b"error[git" in done.stderr
    assert not RAW.search(done.stderr.decode())


def test_json_gives_the_very_characters_back(hostile: Path) -> None:
    """Case 40: escaped on the way, exact when read."""
    data = json.loads(run_command(["read", "evil", "--json"]).stdout)
    assert data["content"] == prowess.scan(hostile / "library").load_body("evil")
    assert EVIL in data["content"]
    names = [file["path"] for file in json.loads(run_command(["show", "evil", "--json"]).stdout)["files"]]
    assert "references/na\x1b[2Jme\x07.md" in names


def test_raw_bytes_are_exact_and_only_for_pipes(hostile: Path) -> None:
    """Case 40: a pipe gets the exact bytes of a file, and a terminal never does."""
    done = run_command(["read", "evil", "references/odd.md", "--raw"])
    assert done.stdout == (hostile / "library/evil/references/odd.md").read_bytes()


def test_printing_a_body_as_it_is_would_reach_the_terminal(hostile: Path) -> None:
    """Twin of case 40: the body really holds control characters."""
    code = "import sys; print(open(sys.argv[1], encoding='utf-8').read())"
    done = subprocess.run(
        [sys.executable, "-c", code, str(hostile / "library/evil/SKILL.md")], capture_output=True, check=True
    )
    assert RAW.search(done.stdout.decode())

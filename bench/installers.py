"""Prowess beside ``npx skills``: ``python -m bench.installers`` installs that from npm and measures both in one run.

Both work on the same git repositories of this machine, each in a fresh project and with an empty home folder, and take
turns; nothing else is asked for over the network, and the other's telemetry is off by its own setting. It is started as
a program of its own, without ``npx``, which would only add to its time. What each did is looked at after each step: a
step that did not do its work has no figure.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import table
from bench.measure import CHECKOUT, clean_environment

FOLDER = CHECKOUT / ".installers"
"""Where the other is installed; git ignores it."""
FEW, MANY = 30, 2_000
_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "a@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
HEAD: table.Row = ("by the clock", "skills", "prowess", "skills", "theirs / ours")

Commands = dict[str, tuple[str, ...]]


class Peer(NamedTuple):
    """An installer: its name, and its command for each step; words in capitals stand for what it is about."""

    name: str
    steps: Commands


def ours() -> Peer:
    program = str(Path(sys.executable).with_name("prowess"))
    return Peer(
        "prowess",
        {
            "add": (program, "install", "SOURCE", "--project", "--agent", "claude-code", "--yes"),
            "list": (program, "list"),
            "update": (program, "update", "--yes"),
            "remove": (program, "remove", "INSTALL", "--yes"),
        },
    )


def theirs() -> Peer:
    program = ("node", str(FOLDER / "node_modules" / "skills" / "bin" / "cli.mjs"))
    return Peer(
        "skills",
        {
            "add": (*program, "add", "SOURCE", "--skill", "*", "--agent", "claude-code", "--yes"),
            "list": (*program, "list"),
            "update": (*program, "update", "--project", "--yes"),
            "remove": (*program, "remove", "NAMES", "--yes"),
        },
    )


class Repository:
    """A bare repository with so many skills, at an older and at a newer commit."""

    def __init__(self, folder: Path, count: int) -> None:
        self.path = folder / f"many-{count}.git"
        self.count = count
        work = folder / f"work-{count}"
        self._git(folder, "init", "--quiet", "--initial-branch=main", str(work))
        self._commits = [self._commit(work, words) for words in ("Do it.", "Do it better.")]
        self._git(folder, "clone", "--quiet", "--bare", str(work), str(self.path))

    def _commit(self, work: Path, words: str) -> str:
        for number in range(self.count):
            folder = work / "skills" / self.name(number)
            folder.mkdir(parents=True, exist_ok=True)
            head = f"---\nname: {folder.name}\ndescription: Does task {number}. Use it when asked for that task.\n---\n"
            (folder / "SKILL.md").write_text(f"{head}\n{words}\n", encoding="utf-8")
        self._git(work, "add", ".")
        self._git(work, "commit", "--quiet", "--message", words)
        return self._git(work, "rev-parse", "HEAD")

    def _git(self, folder: Path, *args: str) -> str:
        env = {**os.environ, **_GIT}
        return subprocess.run(
            ["git", *args], cwd=folder, env=env, check=True, capture_output=True, text=True
        ).stdout.strip()

    def move(self, step: int) -> None:
        """Have the branch at the older (0) or the newer (1) commit."""
        self._git(self.path, "update-ref", "refs/heads/main", self._commits[step])

    @staticmethod
    def name(number: int) -> str:
        return f"task-{number:04}"


class Project:
    """A fresh project in which one installer works."""

    def __init__(self, folder: Path, repository: Repository, peer: Peer) -> None:
        self._folder, self._repository, self._peer = folder / "project", repository, peer
        self._home = folder / "home"
        for made in (self._folder / ".git", self._folder / ".claude", self._home):
            made.mkdir(parents=True)

    def clock(self, step: str) -> float | None:
        """How many seconds a step takes; ``None`` when it ends with an error or does not do its work."""
        stand_for = {
            "SOURCE": [f"file://{self._repository.path}"],
            "INSTALL": [self._repository.path.stem],
            "NAMES": [self._repository.name(number) for number in range(self._repository.count)],
        }
        words = [said for word in self._peer.steps[step] for said in stand_for.get(word, [word])]
        env = {**clean_environment(), **_GIT, "HOME": str(self._home), "CI": "1", "NO_COLOR": "1"}
        env |= {"DISABLE_TELEMETRY": "1", "XDG_CONFIG_HOME": str(self._home / ".config")}
        began = time.perf_counter()
        done = subprocess.run(
            words, cwd=self._folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - began
        return seconds if done.returncode == 0 and self._is_done(step, done.stdout) else None

    def _is_done(self, step: str, printed: str) -> bool:
        files = [*(self._folder / ".claude" / "skills").glob("*/SKILL.md")]
        if step == "list":
            return self._repository.name(self._repository.count - 1) in printed
        if step == "remove":
            return not files
        words = "better" if step == "update" else "Do it."
        return len(files) == self._repository.count and all(words in path.read_text(encoding="utf-8") for path in files)


STEPS = (
    (FEW, "add", f"add every skill of a repository of {FEW}"),
    (FEW, "list", "list"),
    (FEW, "update", f"update {FEW}, all changed"),
    (FEW, "remove", f"remove the {FEW}"),
    (MANY, "add", f"add every skill of a repository of {MANY:,}"),
    (MANY, "list", "list"),
)


def measure(rounds: int, few: int = FEW, many: int = MANY) -> list[table.Row]:
    """The medians of both, a row for each step."""
    peers = (ours(), theirs())
    runs: dict[tuple[int, str, str], list[float | None]] = {}
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as temporary:
        sizes = {FEW: Repository(Path(temporary), few), MANY: Repository(Path(temporary), many)}
        for number in range(rounds):
            for size, repository in sizes.items():
                for peer in peers:
                    repository.move(0)
                    project = Project(Path(temporary) / f"{number}-{size}-{peer.name}", repository, peer)
                    for step in (step for known, step, _ in STEPS if known == size):
                        if step == "update":
                            repository.move(1)
                        runs.setdefault((size, step, peer.name), []).append(project.clock(step))
    return [_row(size, step, what, runs) for size, step, what in STEPS]


def _row(size: int, step: str, what: str, runs: dict[tuple[int, str, str], list[float | None]]) -> table.Row:
    medians = []
    for name in ("prowess", "skills"):
        seconds = [value for value in runs[size, step, name] if value is not None]
        medians.append(median(seconds) if len(seconds) == len(runs[size, step, name]) else None)
    ratio = f"{medians[1] / medians[0]:,.1f}" if medians[0] and medians[1] else ""
    shown = [f"{value:,.2f} s" if value is not None else "failed" for value in medians]
    return (what, f"{size:,}", *shown, ratio)


def get_other() -> str:
    """The version of the other, installed from npm where it is not here yet. Its install scripts are not run."""
    package = FOLDER / "node_modules" / "skills" / "package.json"
    if not package.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("npm is not here: the other installer cannot be installed")
        FOLDER.mkdir(exist_ok=True)
        options = ("--prefix", str(FOLDER), "--silent", "--ignore-scripts", "--no-audit", "--no-fund")
        subprocess.run([npm, "install", *options, "skills"], check=True)
    return str(json.loads(package.read_text(encoding="utf-8"))["version"])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.installers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="fresh projects for each figure (%(default)s)")
    parser.add_argument("--write", action="store_true", help=f"put the table into {table.DOCUMENT_NAME}")
    options = parser.parse_args(arguments)
    version = get_other()
    report = table.render(HEAD, measure(options.rounds), numbers=frozenset((1, 2, 3, 4)))
    note = f"{table.machine()}; skills {version}; medians of {options.rounds} fresh projects each, in turns.\n"
    print(f"{report}\n{note}", end="", flush=True)
    if options.write:
        table.write_between("installers", f"{report}\n{note}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

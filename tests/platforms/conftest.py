"""What the tests of every platform share: a home folder and a project, and the program as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS = 240
"""Wine on a busy machine takes ten seconds to start Python."""
SKILL = "---\nname: {name}\ndescription: Measures lengths in µm. Use it for lengths.\n---\nMeasure → write it down.\n"
SCRIPT = b"#!/usr/bin/env python3\nprint('1 \xc2\xb5m')\n"


@dataclass(frozen=True)
class Ran:
    """How a command ended, and the bytes that it wrote into each pipe."""

    status: int
    out: bytes
    err: bytes

    @property
    def data(self) -> Any:
        """The answer as data; every system writes UTF-8 with plain line ends into a pipe."""
        assert b"\r" not in self.out
        return json.loads(self.out.decode())


class Server:
    """A process that answers each line on its standard input with a line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def ask(self, request: dict[str, Any]) -> Any:
        """Send a request and return its result; nothing is answered to a notification."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        while "id" in request:
            line = self._process.stdout.readline()
            assert line.endswith(b"\n"), "the server ended"
            answer = json.loads(line.decode())
            if answer.get("id") == request["id"]:
                return answer["result"]
        return None


class Machine:
    """A home folder, a project in it, and a folder for sources beside the project."""

    def __init__(self, base: Path) -> None:
        self.home = base / "home"
        self.project = self.home / "project"
        self.sources = self.home / "sources"
        self.temporary = base / "temporary"
        for folder in (self.project / ".git", self.sources, self.temporary):
            folder.mkdir(parents=True)

    def run(self, *words: str, cwd: Path | None = None) -> Ran:
        """Run ``prowess`` in the project, or in ``cwd``, with nothing to read and its output in pipes."""
        done = subprocess.run(
            self._line(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=cwd or self.project,
            env=self._env(),
            timeout=SECONDS,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def start(self, *words: str) -> Iterator[Server]:
        """Start a server that talks on its standard streams, and end it."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(self._line(words), stdin=pipe, stdout=pipe, cwd=self.project, env=self._env())
        # A server that does not answer must not keep the test waiting for ever.
        timer = threading.Timer(SECONDS, process.kill)
        timer.start()
        try:
            with process:
                yield Server(process)
        finally:
            timer.cancel()

    @staticmethod
    def _line(words: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "prowess", *words]

    def _env(self) -> dict[str, str]:
        names = {"HOME", "USERPROFILE", "TEMP", "TMP", "TMPDIR", "PYTHONUTF8", "PYTHONIOENCODING"}
        env = {name: value for name, value in os.environ.items() if name.upper() not in names}
        env |= dict.fromkeys(("HOME", "USERPROFILE"), str(self.home))
        env |= dict.fromkeys(("TEMP", "TMP", "TMPDIR"), str(self.temporary))
        env["PROWESS_CACHE_DIR"] = str(self.home / "cache")
        return env

    def must(self, *words: str, cwd: Path | None = None) -> Any:
        """Run a command that must succeed, and return its answer as data."""
        ran = self.run(*words, "--json", cwd=cwd)
        assert ran.status == 0, (words, ran.out.decode(errors="replace"), ran.err.decode(errors="replace"))
        return ran.data

    def skill(self, name: str = "unit", *, into: Path | None = None) -> Path:
        """A skill with a script, in a folder of its own."""
        folder = (into or self.sources) / name
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(SKILL.format(name=name).encode())
        (folder / "scripts" / "measure.py").write_bytes(SCRIPT)
        (folder / "scripts" / "measure.py").chmod(0o755)
        return folder

    def is_marked(self, path: str) -> bool:
        """Whether the lock file of the project says that a file is executable."""
        lines = (self.project / "prowess.lock").read_text(encoding="utf-8").splitlines()
        return next(line.split()[1] == "x" for line in lines if line.endswith(f' {path}",'))

    def files_left(self) -> list[str]:
        """The files in the folders that Prowess makes in the project, but for the store; and temporary files."""
        kept = [path for part in (".prowess", ".agents") for path in (self.project / part).rglob("*")]
        kept += self.temporary.rglob("*")
        # The store keeps what was replaced for a while, and Windows locks a file, not a folder.
        ours = {".store", ".prowess.lck"}
        return sorted(str(path) for path in kept if not path.is_dir() and ours.isdisjoint(path.parts))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A home folder and a project that only this test uses."""
    return Machine(tmp_path)

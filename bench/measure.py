"""Fresh processes, taking turns, the best of several."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

CHECKOUT = Path(__file__).resolve().parent.parent

Command = tuple[str, ...]


def task(name: str, root: Path) -> Command:
    """The command that measures the floor, or one of the tasks."""
    if name == "floor":
        return (sys.executable, "-m", "bench.floor", str(root))
    return (sys.executable, "-m", "bench.tasks", name, str(root))


@dataclass(slots=True)
class Best:
    """The smallest value of several runs, for how many items."""

    runs: list[float] = field(default_factory=list)
    count: int = 0
    floors: list[float] = field(default_factory=list)
    """What each run measured as its floor, call by call beside the subject, where it did."""
    memory: float = 0
    """The bytes that the last run needed at its peak, where it measured them."""

    @property
    def value(self) -> float:
        return min(self.runs)

    @property
    def each(self) -> float:
        """The value for one item."""
        return self.value / self.count

    @property
    def ratio(self) -> float:
        """The median, over the runs, of the value beside its own floor: what slows a run down slows down both."""
        return median(value / floor for value, floor in zip(self.runs, self.floors, strict=True))


class Printed(TypedDict):
    """What a measuring process prints."""

    value: float
    count: NotRequired[int]
    floor: NotRequired[float]
    memory: NotRequired[float]
    digest: NotRequired[str]


def run_fresh(command: Command, *, timeout: float | None = None) -> Printed:
    """What a new process printed as its last line, in JSON."""
    done = subprocess.run(
        command, cwd=CHECKOUT, env=clean_environment(), capture_output=True, text=True, check=True, timeout=timeout
    )
    result: Printed = json.loads(done.stdout.splitlines()[-1])
    return result


def clean_environment() -> dict[str, str]:
    """Nothing of the caller's that changes how Python runs."""
    return {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}


def take_turns(commands: Mapping[str, Command], *, rounds: int) -> dict[str, Best]:
    """The best of ``rounds`` runs of each command, one after the other in each round.

    The speed of a machine drifts; commands that take turns are slow and fast together.
    """
    best = {name: Best() for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            found = run_fresh(command)
            best[name].runs.append(found["value"])
            best[name].count = found.get("count", 1)
            best[name].memory = found.get("memory", 0)
            if "floor" in found:
                best[name].floors.append(found["floor"])
    return best


@contextmanager
def busy_cores() -> Iterator[None]:
    """Every core of the machine has other work inside the block."""
    spin = (sys.executable, "-c", "while True: pass")
    spinning = [subprocess.Popen(spin, env=clean_environment()) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def warm(roots: Sequence[Path]) -> None:
    """Every file read once, and everything written out, so that no run waits for the disk or shares it."""
    for path in _files(roots):
        path.read_bytes()
    if hasattr(os, "sync"):
        os.sync()


def _files(roots: Sequence[Path]) -> Iterator[Path]:
    return (path for root in roots for path in root.rglob("*") if path.is_file())

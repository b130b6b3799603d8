"""``python -m bench.peers``: discovery by other Python libraries, on the same folders and in the same run.

Each library has its own virtual environment and is asked, by what it offers for it, to find the skills of a folder so
that every name and description is at hand. Libraries do more than that, and not the same; the table says what is at
hand afterwards.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from bench import measure, table
from bench.environments import NotInstalledError, python_with, version_of
from bench.generate import PLAIN, make_library

SIZES = (100, 1_000, 10_000)
ROUNDS = 3
SECONDS = 90.0
"""For all rounds of one library with one folder; one that is slower is stopped."""

TIMES = "\N{MULTIPLICATION SIGN}"
OURS = "prowess"


class Peer(NamedTuple):
    """A library: its package, its module in ``bench.adapters``, what is called, and what is at hand afterwards."""

    package: str
    adapter: str
    call: str
    ready: str


PEERS = (
    Peer(OURS, "prowess_", "`scan`", "name, description; the rest on demand"),
    Peer("agent-framework-core", "agent_framework_", "`FileSkillsSource.get_skills`", "all fields, body, file list"),
    Peer("deepagents", "deepagents_", "`SkillsMiddleware.before_agent`", "all fields"),
    Peer("fastmcp", "fastmcp_", "`SkillsDirectoryProvider`", "all fields, file list with hashes"),
    Peer("google-adk", "google_adk_", "`list_skills_in_dir`", "all fields"),
    Peer("openai-agents", "openai_agents_", "`LocalDirLazySkillSource.list_skill_metadata`", "name, description"),
    Peer("pydantic-ai-skills", "pydantic_ai_skills_", "`SkillsCapability.for_run`", "all fields, body, file list"),
    Peer("skills-ref", "skills_ref_", "`read_properties` for each folder", "all fields"),
    Peer("strands-agents", "strands_", "`Skill.from_directory`", "all fields, body"),
)
"""Ours, then the others by name."""


class Entrant(NamedTuple):
    """A library that is there to be measured, or the reason in a word why it is not."""

    peer: Peer
    python: str = ""
    version: str = ""
    reason: str = ""


class Tried:
    """The runs of one library with one folder."""

    def __init__(self) -> None:
        self.best = measure.Best()
        self.digest = ""
        self.stopped = ""

    def run(self, command: measure.Command) -> None:
        """Once more, unless the time is used up."""
        left = SECONDS - sum(self.best.runs)
        if self.stopped or left <= 0:
            return
        try:
            printed = measure.run_fresh(command, timeout=left + 30)  # importing some of them takes long
        except subprocess.TimeoutExpired:
            self.stopped = f"over {SECONDS:g} s"
        except subprocess.CalledProcessError as error:
            self.stopped = _last_word(error.stderr)
        else:
            self.best.runs.append(printed["value"])
            self.best.count = printed.get("count", 0)
            self.digest = printed.get("digest", "")

    def shown(self, floor: float, size: int, digest: str) -> str:
        """The cost of a skill in floors, or why there is none."""
        if not self.best.runs:
            return self.stopped
        if self.digest != digest:
            return f"other result ({self.best.count:,} found)"
        return f"{self.best.value / size / floor:,.1f} {TIMES}"


def _last_word(trace: str) -> str:
    """The kind of error that ended a process."""
    last = trace.strip().rpartition("\n")[2]
    return last.partition(":")[0].rpartition(".")[2] or "failed"


def main(arguments: list[str]) -> int:
    options = _options(arguments)
    entrants = [_entrant(peer, anew=options.anew) for peer in PEERS]
    with tempfile.TemporaryDirectory(prefix="prowess-bench-") as temporary:
        columns = _measure(Path(temporary), entrants, options.sizes, options.rounds)
    head = ("library", "version", "call", "at hand afterwards", *(f"{size:,} skills" for size in options.sizes))
    rows = [_row(entrant, columns) for entrant in entrants]
    floors = tuple(f"1 {TIMES} = {floor * 1e6:.1f} µs" for floor, _ in columns.values())
    rows.insert(0, ("the floor", "", "open, read 4 KiB, close", "", *floors))
    report = table.render(head, rows, numbers=frozenset(range(4, len(head))))
    note = f"{table.machine()}; best of {options.rounds} fresh processes each.\n"
    print(f"{report}\n{note}", end="")
    if options.write:
        table.write_between("peers", f"{report}\n{note}")
    return 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="fresh processes for each figure (%(default)s)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of skills (%(default)s)")
    parser.add_argument("--anew", action="store_true", help="install the newest versions instead of those kept")
    parser.add_argument("--write", action="store_true", help=f"put the table into {table.DOCUMENT_NAME}")
    return parser.parse_args(arguments)


def _entrant(peer: Peer, *, anew: bool) -> Entrant:
    _say(f"Preparing {peer.package}.")
    try:
        python = sys.executable if peer.package == OURS else python_with(peer.package, anew=anew)
        return Entrant(peer, python, version_of(python, peer.package))
    except NotInstalledError as error:
        return Entrant(peer, reason=str(error))


Column = tuple[float, dict[str, Tried]]
"""For one folder: the floor in seconds a skill, and the runs by package."""


def _measure(temporary: Path, entrants: list[Entrant], sizes: list[int], rounds: int) -> dict[int, Column]:
    small = temporary / "one"
    make_library(small, 1, mix=PLAIN)
    columns: dict[int, Column] = {}
    for size in sizes:
        root = temporary / str(size)
        make_library(root, size, mix=PLAIN)
        measure.warm([root])
        columns[size] = _column(root, small, [entrant for entrant in entrants if entrant.python], rounds)
    return columns


def _column(root: Path, small: Path, entrants: list[Entrant], rounds: int) -> Column:
    floor = measure.Best()
    tried = {entrant.peer.package: Tried() for entrant in entrants}
    for number in range(rounds):
        for entrant in entrants:
            _say(f"{root.name} skills, round {number + 1}: {entrant.peer.package}.")
            # The floor takes its turn before each library, since the speed of a machine drifts.
            printed = measure.run_fresh(measure.task("floor", root))
            floor.runs.append(printed["value"])
            floor.count = printed.get("count", 0)
            tried[entrant.peer.package].run(
                (entrant.python, "-m", "bench.adapters", entrant.peer.adapter, str(root), str(small))
            )
    return floor.each, tried


def _row(entrant: Entrant, columns: dict[int, Column]) -> table.Row:
    peer = entrant.peer
    if entrant.reason:
        return (peer.package, "not installed", peer.call, peer.ready, *(entrant.reason for _ in columns))
    cells = (tried[peer.package].shown(floor, size, tried[OURS].digest) for size, (floor, tried) in columns.items())
    return (peer.package, entrant.version, peer.call, peer.ready, *cells)


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The matrix of runaway scripts: nothing that they start in a sandbox outlives the run."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.conversation.acting.supervised import ProcessLimits, make_environment, run_under_supervisor

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from prowess.conversation.acting.sandbox import Kind
    from tests.conversation.conftest import Acting, Marked

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="promised on Linux only")

MOST = 150  # processes that a script here starts; with the shells around them never more than 200
RUNS, RUNS_OF_FULL = 24, 1_000

# What a script starts, again and again; then it ends by itself, or waits for its timeout.
AGAIN = {
    "children": "sleep 600 &",
    "sessions": "setsid sleep 600 &",
    "double": "(setsid sleep 600 &)",
    "daemons": "(setsid sleep 600 < /dev/null > /dev/null 2>&1 &)",
    "deaf": "(trap '' TERM HUP INT; setsid sleep 600 &)",
    "stopped": "(setsid sh -c 'kill -STOP $$' &)",
}
ONCE = {
    "storm": "d() { if [ $1 -gt 0 ]; then d $(($1-1)) & d $(($1-1)) & fi; sleep 600; }; d DEPTH &",
    "running": "r() { if [ $1 -gt 0 ]; then (setsid sh -c exit; r $(($1-1)) &) ; else sleep 600; fi; }; r COUNT &",
}
STARTS = {**{name: f"i=0; while [ $i -lt COUNT ]; do {code}\ni=$((i+1)); done" for name, code in AGAIN.items()}, **ONCE}
ENDS = {
    "ends": "exit 0",
    "fails": "exit 9",
    "waits": "sleep 600",
    "dies": "kill -9 $$",
    "closes": "exec >&- 2>&-; sleep 600",
}


@dataclass(frozen=True)
class Runaway:
    """One script of the matrix, and its limits."""

    start: str
    end: str
    count: int
    seconds: float
    processes: int

    @property
    def code(self) -> str:
        depth = max(1, self.count.bit_length() - 2)  # 2 ** (depth + 1) - 1 processes
        return STARTS[self.start].replace("COUNT", str(self.count)).replace("DEPTH", str(depth)) + "\n" + ENDS[self.end]

    @property
    def limits(self) -> prowess.Limits:
        return prowess.Limits(max_script_seconds=self.seconds, max_script_processes=self.processes)


CERTAIN = (
    Runaway("sessions", "ends", MOST, 10, 400),
    Runaway("double", "waits", MOST, 0.4, 400),
    Runaway("storm", "waits", MOST, 10, 32),
)


def drawn(rng: random.Random, count: int) -> list[Runaway]:
    """A sample in which every way to start and to end occurs, behind one for each way to be ended."""
    starts, ends = list(STARTS), list(ENDS)
    return [
        *CERTAIN,
        *(
            Runaway(
                starts[number % len(starts)],
                ends[number % len(ends)],
                rng.choice((1, 2, 3, 5, 10, 20, 40, MOST)),
                rng.choice((0.05, 0.1, 0.3)),
                rng.choice((32, 64, 400)),
            )
            for number in range(count - len(CERTAIN))
        ),
    ]


def in_time(seconds: float, timeout: float) -> bool:
    return seconds <= timeout + 1


def test_in_the_sandbox_no_process_is_left_and_every_run_returns_in_time(
    acting: Acting, marked: Marked, jail: Kind, rng: random.Random, full: bool
) -> None:
    """A sample of the whole matrix; two at a time, so that runs meet each other."""
    runaways = drawn(rng, RUNS_OF_FULL if full else RUNS)
    skill = acting.granted({"scripts/a.sh": 'eval "$1"'})

    def run(number: int) -> tuple[str, str]:
        one = runaways[number]
        scripts = prowess.Scripts(sandbox=jail, limits=one.limits, env={**marked.env, "RUN": f"-{number}-"})
        result = scripts.run(skill, "scripts/a.sh", [one.code], trust=acting.trust)
        left = marked.alive(f"RUN=-{number}-")
        wrong = left or not in_time(result.seconds, one.seconds)
        return result.limit, f"{one}: {result}, left: {left}" if wrong else ""

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(run, range(len(runaways))))
    assert [said for _, said in found if said] == []
    assert {limit for limit, _ in found} == {"", "timeout", "processes"}
    assert marked.alive() == []
    assert acting.left() == []


def test_without_a_namespace_every_run_returns_in_time(
    tmp_path: Path, marked: Marked, rng: random.Random, full: bool
) -> None:
    """Commands: what they leave is not a promise; that their caller waits no longer than the timeout is one."""
    late: list[str] = []
    for one in drawn(rng, RUNS_OF_FULL // 5 if full else RUNS // 2):
        argv, bounds = ["/bin/sh", "-c", one.code], ProcessLimits(min(one.seconds, 0.4), 1 << 16)
        found = run_under_supervisor(argv, bounds, cwd=str(tmp_path), env=make_environment(marked.env))
        late += [] if in_time(found.seconds, bounds.seconds) else [f"{one}: {found}"]
        marked.end()
    assert late == []

"""A pytest plugin that measures what each test costs: processor time, with that of its children, and processes started.

Neither depends on how busy the machine is, so they show over months whether the ordinary run stays short.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

MOST_PROCESSES = 60
"""How many processes one test of the ordinary run may start itself."""
MOST_EXPENSIVE = 10
"""How many files the summary lists."""
_PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"}


_elsewhere = [0.0]


def count_elsewhere(seconds: float) -> None:
    """Add processor time of a process that another process waits for. The system does not count it as ours."""
    _elsewhere[0] += seconds


class CostPlugin:
    """Measures every test, fails one that starts too many processes, and prints the most expensive files.

    The cost travels with the report of a test, so that it arrives from the workers of pytest-xdist too.
    """

    def __init__(self, *, is_bounded: bool) -> None:
        self.is_bounded = is_bounded
        self.processes = 0
        self.before = (0.0, 0)
        self.seconds_of_file: Counter[str] = Counter()
        self.processes_of_file: Counter[str] = Counter()
        sys.addaudithook(self._count_process)

    def _count_process(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in _PROCESS_EVENTS:
            self.processes += 1

    def _measure_total(self) -> tuple[float, int]:
        times = os.times()
        own = times.user + times.system + times.children_user + times.children_system
        return own + _elsewhere[0], self.processes

    def pytest_runtest_logstart(self) -> None:
        self.before = self._measure_total()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add to the report of each phase what the phase cost."""
        report = yield
        after = self._measure_total()
        seconds, processes = after[0] - self.before[0], after[1] - self.before[1]
        self.before = after
        report.user_properties.append(("cost", [seconds, processes]))
        # A fixture that many tests share may start more processes, since it is set up once.
        if self.is_bounded and report.when == "call" and report.passed and processes > MOST_PROCESSES:
            report.outcome = "failed"
            report.longrepr = (
                f"it starts {processes} processes, and a test of the ordinary run at most {MOST_PROCESSES}: "
                "share the set-up, take a sample, or mark it full (CONTRIBUTING.md, Tests)"
            )
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        for name, cost in report.user_properties:
            if name == "cost" and isinstance(cost, list):  # as JSON brings it from a worker
                self.seconds_of_file[file] += cost[0]
                self.processes_of_file[file] += cost[1]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        seconds, processes = self.seconds_of_file.total(), self.processes_of_file.total()
        terminalreporter.section(f"{seconds:.0f} s of processor time, {processes:.0f} processes started by tests")
        for file, spent in self.seconds_of_file.most_common(MOST_EXPENSIVE):
            terminalreporter.line(f"{spent:6.1f} s {self.processes_of_file[file]:6} processes  {file}")

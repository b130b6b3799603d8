"""Test each adapter with its framework: ``python -m scripts.adapter_tests [NAME]… [--newest | --pin]``.

Frameworks contradict each other about their dependencies, so each has an environment of its own in ``.adapters/NAME``,
made from the pinned file ``requirements/adapters/NAME.txt``. ``--newest`` takes the newest packages that NAME.in allows
into ``.adapters/NAME-newest``. ``--pin`` tests nothing: it writes NAME.txt again.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements" / "adapters"
COMMON = ROOT / "requirements" / "adapters.in"
ENVIRONMENTS = ROOT / ".adapters"
NEWEST_PYTHON = (3, 13)
"""Some frameworks do not install on a later one."""
# A warning of a framework about its own parts is not a mistake of ours; a warning about our code is.
WARNINGS = "filterwarnings=default\nerror:::prowess"


class InstallError(Exception):
    """An environment could not be made; the message says why."""


@dataclass(frozen=True)
class Outcome:
    """What came of the tests of one adapter."""

    name: str
    version: str = "-"
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    problem: str = ""
    """Why the tests did not run, or what they printed when one failed; ``""`` when all is well."""

    @property
    def ran(self) -> bool:
        """True when at least one test ran to its end."""
        return self.passed + self.failed > 0


def list_adapters() -> list[str]:
    """Return the names of the adapters that have a file of requirements, sorted."""
    return sorted(path.stem for path in REQUIREMENTS.glob("*.in"))


def find_package(name: str) -> str:
    """Return the package that an adapter's file of requirements names first: the framework itself."""
    for line in (REQUIREMENTS / f"{name}.in").read_text(encoding="utf-8").splitlines():
        if match := re.match(r"[A-Za-z0-9][\w.-]*", line):
            return match[0]
    raise InstallError(f"requirements/adapters/{name}.in names no package")


def run_uv(*words: str | Path) -> None:
    """Run uv in the checkout; raise ``InstallError`` with what it printed when it fails."""
    # uv takes these for the environment to work on, and they belong to whoever started this program.
    env = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
    done = subprocess.run(
        [sys.executable, "-m", "uv", "--quiet", *map(str, words)],
        cwd=ROOT,
        env=env,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise InstallError(done.stdout.strip())


def pin_requirements(name: str) -> None:
    """Write the pinned file of an adapter, with hashes, for every version of Python that Prowess has."""
    source, target = REQUIREMENTS / f"{name}.in", REQUIREMENTS / f"{name}.txt"
    options = ("--universal", "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate")
    run_uv("pip", "compile", "--upgrade", *options, "--output-file", target, "pyproject.toml", COMMON, source)


def make_environment(name: str, *, newest: bool) -> Path:
    """Make the environment of an adapter, or find it made; return its Python."""
    place = ENVIRONMENTS / (f"{name}-newest" if newest else name)
    python, ready = place / "bin" / "python", place / "made-from"
    pinned = REQUIREMENTS / f"{name}.txt"
    if not newest and not pinned.is_file():
        raise InstallError(f"there is no requirements/adapters/{name}.txt: make test-adapters ARGS='--pin {name}'")
    chosen = sys.executable if sys.version_info[:2] <= NEWEST_PYTHON else ".".join(map(str, NEWEST_PYTHON))
    # The newest packages may have changed since; pinned ones have not while their file is the same.
    made_from = (
        "" if newest else hashlib.sha256(f"{chosen} {ROOT} {pinned.read_text(encoding='utf-8')}".encode()).hexdigest()
    )
    if made_from and ready.is_file() and ready.read_text(encoding="utf-8") == made_from:
        return python
    run_uv("venv", "--clear", "--python", chosen, place)
    if newest:
        run_uv("pip", "install", "--refresh", "--python", python, "-r", COMMON, "-r", REQUIREMENTS / f"{name}.in")
    else:
        run_uv("pip", "install", "--require-hashes", "--python", python, "-r", pinned)
    # The dependencies of Prowess itself are pinned already; only the newest environment still has to find them.
    rest = () if newest else ("--no-deps",)
    run_uv("pip", "install", *rest, "--no-build-isolation", "--python", python, "--editable", ".")
    ready.write_text(made_from, encoding="utf-8")
    return python


def find_version(python: Path, package: str) -> str:
    """Return the version of a package in an environment."""
    program = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    done = subprocess.run([python, "-c", program, package], check=False, capture_output=True, text=True)
    if done.returncode:
        raise InstallError(f"{package} is not in the environment that was made for it")
    return done.stdout.strip()


def run_tests(name: str, *, newest: bool) -> Outcome:
    """Make the environment of an adapter, and run its tests in it."""
    tests = ROOT / "tests" / "adapters" / f"test_{name}.py"
    if not tests.is_file():
        return Outcome(name, problem=f"NOT TESTED: there is no tests/adapters/{tests.name}")
    try:
        python = make_environment(name, newest=newest)
        version = find_version(python, find_package(name))
    except InstallError as error:
        return Outcome(name, problem=f"NOT TESTED: {error}")
    report = python.parents[1] / "report.xml"
    report.unlink(missing_ok=True)
    words = [
        "-m",
        "pytest",
        "--quiet",
        "--color=no",
        "-p",
        "no:cacheprovider",
        "-o",
        WARNINGS,
        f"--junitxml={report}",
        str(tests),
    ]
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    began = time.monotonic()
    done = subprocess.run(
        [python, *words], cwd=ROOT, env=env, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    seconds = time.monotonic() - began
    if not report.is_file():
        return Outcome(name, version, seconds=seconds, problem=done.stdout)
    passed, failed, skipped = read_report(report.read_text(encoding="utf-8"))
    is_well = done.returncode == 0 and passed > 0
    return Outcome(name, version, passed, failed, skipped, seconds, "" if is_well else done.stdout)


def read_report(text: str) -> tuple[int, int, int]:
    """Return how many tests passed, failed and were skipped, from pytest's report in XML."""
    suites = list(ET.fromstring(text).iter("testsuite"))  # noqa: S314 - pytest wrote it a moment ago
    total, failures, errors, skipped = (
        sum(int(suite.get(key, "0")) for suite in suites) for key in ("tests", "failures", "errors", "skipped")
    )
    return total - failures - errors - skipped, failures + errors, skipped


def format_table(outcomes: list[Outcome]) -> str:
    """Return a table with a line for each adapter."""
    rows = [["framework", "version", "passed", "failed", "skipped", "seconds", ""]]
    for one in outcomes:
        counts = [str(count) if one.ran else "-" for count in (one.passed, one.failed, one.skipped)]
        note = "" if not one.problem else "FAILED" if one.ran else "NOT TESTED"
        rows.append([one.name, one.version, *counts, f"{one.seconds:.1f}", note])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 2 <= at <= 5 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def main(words: list[str]) -> int:
    """Do what the command line says; return 1 when an adapter failed or could not be tested."""
    known = list_adapters()
    parser = argparse.ArgumentParser(
        prog="make test-adapters ARGS=…", description="Test the adapters in environments of their own."
    )
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"one of {', '.join(known)} (default: all)")
    parser.add_argument("--newest", action="store_true", help="take the newest packages instead of the pinned ones")
    parser.add_argument("--pin", action="store_true", help="write the pinned files again, and test nothing")
    options = parser.parse_args(words)
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"there is no requirements/adapters/{unknown[0]}.in; there are {', '.join(known)}")
    names = options.names or known
    if options.pin:
        return pin_all(names)
    outcomes = []
    for name in names:
        print(f"{name} …", flush=True)
        outcomes.append(run_tests(name, newest=options.newest))
    for outcome in outcomes:
        if outcome.problem:
            print(f"\n!!!!! {outcome.name}\n{outcome.problem}", flush=True)
    print(f"\n{format_table(outcomes)}")
    return int(any(outcome.problem for outcome in outcomes))


def pin_all(names: list[str]) -> int:
    """Write the pinned files of these adapters; return 1 when one cannot be written."""
    problems = 0
    for name in names:
        try:
            pin_requirements(name)
            print(f"requirements/adapters/{name}.txt is written")
        except InstallError as error:
            problems += 1
            print(f"requirements/adapters/{name}.txt is NOT written:\n{error}", file=sys.stderr)
    return int(problems > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

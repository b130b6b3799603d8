"""The options, fixtures and hypothesis profiles that every test may use."""

from __future__ import annotations

import gc
import json
import lzma
import os
import random
import signal
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.cost_plugin import CostPlugin
from tests.fork_server import skip_disk_waits
from tests.sandbox_support import NOT_TESTED, require_sandbox
from tests.tree_seed import compute_tree_seed

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterator

    from tests.web_sites import Site

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parents[1]
SEED_VARIABLE = "PROWESS_TEST_SEED"
REAL_HEADS = 3_000
LATER = {"full": "make test-full", "foreign": "make test-foreign"}
"""Tests with these markers are not part of the ordinary run; ``--full`` runs them all."""
APART = {"clients": "make test-clients", "web": "make test-web"}
"""Tests with these markers fetch hundreds of megabytes of clients or a browser: not even ``--full`` runs them."""

NEEDS = {
    "needs_links": "the right to make symbolic links",
    "needs_fifo": "FIFOs, devices and sockets in folders",
    "needs_modes": "files with permissions, owners and an executable bit",
    "needs_case": "a disk on which case and every character of a name count",
    "needs_posix": "calls, paths or programs of POSIX: fork, handles of folders, /etc, git",
}
"""What a system must have for the tests with a marker. Windows has none of it, and Wine neither."""

if os.name == "nt":

    def write_text_unchanged(
        self: Path, data: str, encoding: str | None = None, errors: str | None = None, newline: str = ""
    ) -> int:
        """Write what a test says, in UTF-8 and without another line end: sizes and digests depend on it."""
        with self.open("w", encoding=encoding or "utf-8", errors=errors, newline=newline) as file:
            return file.write(data)

    Path.write_text = write_text_unchanged  # type: ignore[method-assign,assignment]

# No database: a failure prints what reproduces it, and no run depends on an earlier one.
settings.register_profile("default", max_examples=50, deadline=None, derandomize=False, database=None, print_blob=True)
settings.register_profile("full", settings.get_profile("default"), max_examples=2000)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("prowess")
    group.addoption("--full", action="store_true", help="run whole matrices instead of samples")
    group.addoption("--clients", action="store_true", help="run real MCP clients, which are installed")
    group.addoption("--web", action="store_true", help="run the console in a real browser, which is installed")
    group.addoption(
        "--seed", type=int, help=f"what samples are drawn with (default: ${SEED_VARIABLE}, else the tree's)"
    )


@pytest.hookimpl(tryfirst=True)  # before hypothesis reads its option
def pytest_configure(config: pytest.Config) -> None:
    # The workers of pytest-xdist inherit the environment, so they draw what the process that started them draws.
    os.environ[SEED_VARIABLE] = seed = str(_choose_seed(config))
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = seed
    settings.load_profile("full" if config.getoption("full") else "default")
    if not config.getoption("full"):
        skip_disk_waits()
    # What a test searches is indexed in the user's cache folder, unless the test names another.
    cache = TemporaryDirectory(prefix="prowess-cache-")
    os.environ["XDG_CACHE_HOME"] = cache.name
    config.add_cleanup(cache.cleanup)
    # Git is set up by the tests: certificates, logins and mirrors of this machine do not count.
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]
    config.pluginmanager.register(CostPlugin(is_bounded=not config.getoption("full")), "costs")
    # A shell has what it starts in the background ignore interrupts, and that is inherited by what tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _choose_seed(config: pytest.Config) -> int:
    given: int | None = config.getoption("seed")
    if given is not None:
        return given
    return int(os.environ.get(SEED_VARIABLE) or compute_tree_seed(ROOT))


def pytest_report_header() -> str:
    return f"samples: repeat with --seed {os.environ[SEED_VARIABLE]}"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from what collecting tests makes: millions of objects, which all stay to the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have one worker of pytest-xdist at a time collect a file, so that the others find it compiled.

    All workers collect all files in one order. In a fresh checkout, each would rewrite the assertions of the file that
    the others are rewriting too. With the lock, the first worker does so, and the others follow one file behind.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ or not isinstance(collector, pytest.Module) or fcntl is None:
        return (yield)
    with collector.path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("full"):
        return
    for item in items:
        for marker, verb in LATER.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=f"run by {verb}"))
        # Skipped here, and not by a fixture, so that nothing is set up for a case that is not drawn.
        if (sampled := item.get_closest_marker("sampled")) and not _is_drawn(item, *sampled.args, **sampled.kwargs):
            item.add_marker(pytest.mark.skip(reason="not drawn: the whole matrix is run by make test-full"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Skipped here, and not by a marker, so that the summary has one line for all of them.
    for marker, what in NEEDS.items():
        if os.name == "nt" and item.get_closest_marker(marker):
            pytest.skip(f"{NOT_TESTED}needs {what}")
    if item.get_closest_marker("needs_junctions") and not _makes_junctions():
        pytest.skip(f"{NOT_TESTED if os.name == 'nt' else ''}needs a Windows that makes junctions")
    for marker, verb in APART.items():
        if item.get_closest_marker(marker) and not item.config.getoption(marker):
            pytest.skip(f"run by {verb}")


@cache
def _makes_junctions() -> bool:
    """True on Windows; Wine and disks such as FAT have the call, and make none."""
    from prowess.files.syscalls import create_junction

    with TemporaryDirectory() as folder:
        return create_junction(folder, f"{folder}\\link")


def _is_drawn(item: pytest.Item, share: float, always: Collection[object] = ()) -> bool:
    """True for so large a share of the cases, drawn by seed and name, and for those with one of these parameters."""
    case = getattr(item, "callspec", None)  # a test without parameters is drawn in a share of the runs
    if case is not None and any(value in always for value in case.params.values()):
        return True
    return random.Random(f"{os.environ[SEED_VARIABLE]} {item.nodeid}").random() < share


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say what this machine could not test, and why, where nobody overlooks it: last, in a section of its own."""
    yield
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if isinstance(report.longrepr, tuple)]
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    untested = {reason: count for reason, count in reasons.items() if reason.startswith(NOT_TESTED)}
    if untested:
        terminalreporter.section("NOT TESTED HERE", sep="!", red=True, bold=True)
    for reason, count in untested.items():
        terminalreporter.line(f"{reason.removeprefix(NOT_TESTED)} ({count} tests)", red=True)


@pytest.fixture(scope="session")
def full(pytestconfig: pytest.Config) -> bool:
    """Whether to go through a whole matrix instead of a sample of it."""
    return bool(pytestconfig.getoption("full"))


@pytest.fixture(scope="session")
def seed() -> int:
    """The number that this run's samples are drawn with, the same in every worker."""
    return int(os.environ[SEED_VARIABLE])


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """A generator that depends on the seed and the test only, not on which tests ran before in the same worker."""
    return random.Random(f"{seed} {request.node.nodeid}")


@pytest.fixture(scope="session")
def shared(pytestconfig: pytest.Config) -> Path:
    """The optional data folder beside the checkout; a test that needs it is skipped where it is absent."""
    folder = pytestconfig.rootpath.parent / "shared"
    if not folder.is_dir():
        pytest.skip("needs the optional data folder ../shared beside the checkout")
    return folder


@pytest.fixture(scope="session")
def real_rows(shared: Path, seed: int, full: bool) -> list[bytes]:
    """Lines of the corpus of real heads: a sample drawn with the seed, or all of them."""
    with lzma.open(shared / "corpus" / "heads.jsonl.xz") as file:
        rows = file.read().splitlines()
    return rows if full else random.Random(seed).sample(rows, REAL_HEADS)


@pytest.fixture(scope="session")
def real_heads(real_rows: list[bytes]) -> list[bytes]:
    """The first bytes of real files: a sample drawn with the seed, or all of them."""
    return [json.loads(row)["head"].encode("latin-1") for row in real_rows]


@pytest.fixture
def needs_sandbox() -> None:
    """Skip, and have the summary say so, where scripts cannot be isolated."""
    require_sandbox()


@pytest.fixture
def plain_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxies and no authorities but the system's, whatever the machine has set."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in {"SSL_CERT_FILE", "SSL_CERT_DIR", "PROWESS_CACHE_DIR"}:
            monkeypatch.delenv(name)


@pytest.fixture
def site(plain_network: None) -> Iterator[Site]:  # noqa: ARG001 - a fixture for its effect
    """A site on loopback that publishes nothing yet."""
    from tests import web_sites

    with web_sites.Site() as running:
        yield running

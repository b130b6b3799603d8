"""Several processes with one index: they search while one updates, die at any write, and are forked."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import threading
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.fork_server import ForkServer, fork_server_for
from tests.search.search_process import write_skill

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

SEARCHING = 8
STEADY = [f"steady-{letter}" for letter in "abcdefgh"]
CHANGING = [f"changing-{letter}" for letter in "abcd"]


@pytest.fixture(scope="module")
def processes() -> ForkServer:
    return fork_server_for(Path(__file__).parent / "search_process.py")


@pytest.fixture
def library(tmp_path: Path, settle: Callable[[], None]) -> Path:
    for name in STEADY:
        write_skill(tmp_path / "skills", name, f"word{name.replace('-', '')}")
    settle()
    return tmp_path / "skills"


class Searching:
    """Processes that search until they are told to stop; what they report must be right then."""

    def __init__(self, processes: ForkServer, library: Path, stop: Path) -> None:
        self.stop = stop
        self._stack = ExitStack()
        empty, *self._outputs = map(self._stack.enter_context, (TemporaryFile() for _ in range(SEARCHING + 1)))  # noqa: SIM115 - the stack closes them
        self._processes = [
            processes.fork("search", str(library), str(stop), STEADY, stdin=empty, stdout=output, stderr=output)
            for output in self._outputs
        ]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.stop.touch()
        with self._stack:
            statuses = [process.wait() for process in self._processes]
            for output, status in zip(self._outputs, statuses, strict=True):
                output.seek(0)
                lines = output.read().decode().splitlines()
                assert (len(lines), status) == (1, 0), lines
                assert int(lines[0].removeprefix("searched ")) > 0


def test_eight_processes_search_while_one_updates(library: Path, tmp_path: Path, processes: ForkServer) -> None:
    with Searching(processes, library, tmp_path / "stop"):
        updated = processes.run("update", str(library), CHANGING, 12)
    assert (updated.stdout, updated.stderr, updated.returncode) == ("updated 12\n", "", 0)


def test_eight_processes_search_while_others_die_at_their_writes(
    library: Path, tmp_path: Path, processes: ForkServer
) -> None:
    with Searching(processes, library, tmp_path / "stop"):
        for number in range(8):
            write_skill(library, CHANGING[number % len(CHANGING)], f"fresh{number}")
            die_at(processes, library, "common", 4 * number + 1)
    assert len(prowess.scan(library).search("common", 100)) == len(STEADY) + len(CHANGING)


def test_processes_that_meet_a_library_without_an_index_build_one_together(
    library: Path, tmp_path: Path, cache: Path, processes: ForkServer
) -> None:
    (tmp_path / "stop").touch()
    with Searching(processes, library, tmp_path / "stop"):
        pass
    (database,) = (cache / "search").glob("*.db")
    connection = sqlite3.connect(database)
    assert connection.execute("SELECT number FROM generations").fetchone() == (len(STEADY),)  # each was written once
    connection.close()


# -- dying -------------------------------------------------------------------------------------------------------------


def die_at(processes: ForkServer, library: Path, word: str, at: int) -> list[object] | None:
    """The number of writes and the names found, or ``None`` when the process died."""
    done = processes.run("die", str(library), word, at)
    if done.stdout == "cannot watch\n":
        pytest.skip("NOT TESTED: this build of SQLite does not let its system calls be replaced")
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
    return None if done.returncode else json.loads(done.stdout)


def choose_writes(count: int, rng: Random, *, full: bool) -> list[int]:
    """The writes to die at: all of them, or the first, the last and some between."""
    every = range(1, count + 1)
    return list(every) if full else sorted({1, 2, count - 1, count, *rng.sample(every, 8)})


def test_a_process_that_dies_at_any_write_of_an_update_leaves_the_old_index_or_the_new_one(
    library: Path, cache: Path, processes: ForkServer, rng: Random, full: bool
) -> None:
    saved = cache.parent / "saved"
    prowess.scan(library).search("common")
    write_skill(library, "steady-a", "otherword")
    write_skill(library, "new", "newword")
    shutil.rmtree(library / "steady-b")
    shutil.copytree(cache, saved)
    complete = die_at(processes, library, "common", 0)
    assert complete is not None
    names = sorted({*STEADY, "new"} - {"steady-b"})
    assert complete[1] == names
    for at in choose_writes(int(str(complete[0])), rng, full=full):
        shutil.rmtree(cache)
        shutil.copytree(saved, cache)
        assert die_at(processes, library, "common", at) is None
        catalog = prowess.scan(library)
        found = {word: sorted(hit.name for hit in catalog.search(word)) for word in ("common", "otherword", "newword")}
        assert found == {"common": names, "otherword": ["steady-a"], "newword": ["new"]}, at
        assert sorted(hit.name for hit in catalog.search("wordsteadya wordsteadyb")) == [], at
        assert len(list((cache / "search").glob("*.db"))) == 1


def test_a_process_that_dies_at_any_write_of_a_new_index_leaves_nothing_that_disturbs(
    library: Path, cache: Path, processes: ForkServer, rng: Random, full: bool
) -> None:
    complete = die_at(processes, library, "common", 0)
    assert complete is not None
    assert complete[1] == STEADY
    for at in choose_writes(int(str(complete[0])), rng, full=full):
        shutil.rmtree(cache)
        assert die_at(processes, library, "common", at) is None
        assert sorted(hit.name for hit in prowess.scan(library).search("common")) == STEADY, at
        assert [hit.name for hit in prowess.scan(library).search("wordsteadyc")] == ["steady-c"], at
        assert len(list((cache / "search").glob("*.db"))) == 1


# -- forks and threads -------------------------------------------------------------------------------------------------


def test_forked_processes_open_the_index_themselves(library: Path, processes: ForkServer) -> None:
    done = processes.run("fork", str(library))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_threads_share_the_index_of_a_catalogue_and_those_of_others(library: Path) -> None:
    catalog = prowess.scan(library)
    wrong: list[object] = []
    start = threading.Barrier(8, timeout=60)

    def search(number: int) -> None:
        start.wait()
        for _ in range(10):
            own = catalog if number % 2 else prowess.scan(library)
            names = sorted(hit.name for hit in own.search("common"))
            if names != STEADY:
                wrong.append(names)

    threads = [threading.Thread(target=search, args=[number], daemon=True) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert not any(thread.is_alive() for thread in threads)

"""Fixtures of the hostile cases: the library with its secret, the naive code, and child processes with limits."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.fork_server import fork_server_for
from tests.hostile.installer_case import InstallerCase
from tests.hostile.invariants import Library

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


HERE = Path(__file__).parent
OPEN_METHODS = ("openat2", "components", "portable")
KILL_AFTER = 10.0


@pytest.fixture(scope="session")
def invariants() -> ModuleType:
    """The module with the folders of a case and the invariants of every case."""
    return importlib.import_module("tests.hostile.invariants")


@pytest.fixture(scope="session")
def naive() -> ModuleType:
    """The module with naive code for reading, listing, unpacking and fetching."""
    return importlib.import_module("tests.hostile.naive")


@pytest.fixture(scope="session")
def naive_installer() -> ModuleType:
    """The module with naive code for installing."""
    return importlib.import_module("tests.hostile.naive_installer")


@pytest.fixture
def case(library: Library, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallerCase]:
    """An installer with one good skill in folders of its own. It must leave no temporary file behind."""
    private = library.base / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    monkeypatch.setenv("HOME", str(library.base / "nobody"))
    yield InstallerCase(library)
    assert list(private.iterdir()) == []


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A library with one good skill, and a secret outside it. It is deleted after the test, since some are large."""
    yield Library(tmp_path).build()
    shutil.rmtree(tmp_path)


@pytest.fixture
def open_library() -> Iterator[Library]:
    """A library that every user may read. Other users may not enter the folders that pytest makes."""
    base = Path(tempfile.mkdtemp(prefix="prowess-hostile-"))
    base.chmod(0o755)
    yield Library(base).build()
    for folder, folders, _ in os.walk(base):
        for name in folders:
            Path(folder, name).chmod(0o755)
    shutil.rmtree(base)


@dataclass(frozen=True)
class Outcome:
    """What a child process answered, and what that cost."""

    result: Any = None
    raised: str = ""
    words: str = ""
    typed: bool = False
    seconds: float = 0.0
    busy: float = 0.0
    """Seconds of processor time, which do not depend on what else the machine does."""
    grown: int = 0
    peak: int = 0
    read: dict[str, int] = field(default_factory=dict)
    listed: int = 0
    children: bool = False
    killed: bool = False


class Children:
    """Run the code of a case in child processes."""

    def __call__(
        self,
        code: str,
        library: Library,
        *args: str,
        open_method: str | None = None,
        memory: int = 0,
        nobody: bool = False,
        kill_after: float = KILL_AFTER,
        stdin: str = "",
        env: dict[str, str] | None = None,
    ) -> Outcome:
        """Run ``code`` in a child process and return its outcome.

        The child may grow by ``memory`` MiB and is killed after ``kill_after`` seconds. With ``nobody`` it runs as a
        user without privileges.
        """
        options = {"base": str(library.base), "memory": memory, "nobody": nobody}
        fork_server = fork_server_for(HERE / "case_process.py", open_method or "", env=tuple((env or {}).items()))
        try:
            done = fork_server.run(options, code, *args, given=stdin, seconds=kill_after)
        except TimeoutError:
            return Outcome(killed=True)
        if done.returncode < 0:
            return Outcome(raised=f"signal {-done.returncode}")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        if "unavailable" in answer:
            pytest.skip(f"this system opens files by {answer['unavailable']}, not by {open_method}")
        return Outcome(**answer)

    def answer(self, code: str, library: Library, *args: str, **options: Any) -> Outcome:
        """Run ``code`` of Prowess, and assert that it ends in time, raises nothing and leaves no process behind."""
        outcome = self(code, library, *args, **options)
        assert not outcome.killed, "the engine took too long"
        assert not outcome.raised, f"{outcome.raised}: {outcome.words}"
        assert not outcome.children
        return outcome


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The cache of Prowess, which lies outside the folders that must not change."""
    return tmp_path_factory.mktemp("cache") / "copies"


@dataclass(frozen=True)
class Remote:
    """Loads the skills of a web site together with those of the library."""

    library: Library
    cache: Path

    def __call__(self, url: str, **options: Any) -> prowess.Catalog:
        """Return one catalogue of the library and the site after checking the invariants."""
        usual: dict[str, Any] = {"allow_http": True, "allow_private": True, "cache_dir": self.cache}
        site = prowess.Source.url(url, **(usual | options))
        with self.library.assert_unchanged():
            catalog = prowess.Catalog.from_sources([prowess.Source.directory(self.library.root), site])
            self.library.check(catalog)
        return catalog

    def copies(self) -> list[Path]:
        """Return the files in the cache."""
        return [path for path in self.cache.rglob("*") if path.is_file()]


@pytest.fixture
def remote(library: Library, cache: Path) -> Remote:
    """A loader of sites on loopback over plain http, which is allowed here explicitly."""
    return Remote(library, cache)


@pytest.fixture
def child() -> Children:
    """Child processes with limits. What they cost is read from ``/proc``."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to measure what a case costs")
    return Children()


@pytest.fixture(params=OPEN_METHODS)
def open_method(request: pytest.FixtureRequest) -> str:
    """Each method of opening files. The test is skipped where a child process cannot use it."""
    return str(request.param)

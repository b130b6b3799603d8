"""Fixtures of the hostile cases: the library, the naive twins, and child processes with limits."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from tests.nursery import nursery_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from tests.hostile.guarded import Guarded
    from tests.hostile.standing import Library

HERE = Path(__file__).parent
WAYS = ("openat2", "components", "portable")
KILL_AFTER = 10.0


def _load(name: str) -> ModuleType:
    """A module beside this one; the tests are no package."""
    spec = importlib.util.spec_from_file_location(f"hostile_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def standing() -> ModuleType:
    """The layout and the standing assertions."""
    return _load("standing")


@pytest.fixture(scope="session")
def naive() -> ModuleType:
    """The naive twins."""
    return _load("naive")


@pytest.fixture(scope="session")
def naive_installer() -> ModuleType:
    """The naive twins of installing."""
    return _load("naive_installer")


@pytest.fixture
def guarded(library: Library, standing: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[Guarded]:
    """An installer with one good skill, in a world of its own; private places are made there, and none is left."""
    private = library.base / "private"
    private.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(private))
    monkeypatch.setenv("HOME", str(library.base / "nobody"))
    made: Guarded = _load("guarded").Guarded(library, standing)
    yield made
    assert list(private.iterdir()) == []


@pytest.fixture
def library(tmp_path: Path, standing: ModuleType) -> Iterator[Library]:
    """A library with one good skill, and a secret outside it; removed again, since some cases are large."""
    built: Library = standing.Library(tmp_path).build()
    yield built
    shutil.rmtree(tmp_path)


@pytest.fixture
def open_library(standing: ModuleType) -> Iterator[Library]:
    """The same where every user may look: pytest's own folders are closed to others."""
    base = Path(tempfile.mkdtemp(prefix="prowess-hostile-"))
    base.chmod(0o755)
    built: Library = standing.Library(base).build()
    yield built
    for folder, folders, _ in os.walk(base):
        for name in folders:
            Path(folder, name).chmod(0o755)
    shutil.rmtree(base)


@dataclass(frozen=True)
class Outcome:
    """What a child answered, and what that cost."""

    result: Any = None
    raised: str = ""
    words: str = ""
    typed: bool = False
    seconds: float = 0.0
    busy: float = 0.0
    """Seconds of the processor, which do not depend on what else the machine does."""
    grown: int = 0
    peak: int = 0
    read: dict[str, int] = field(default_factory=dict)
    listed: int = 0
    children: bool = False
    killed: bool = False


class Children:
    """Starts child processes for a case."""

    def __call__(
        self,
        code: str,
        library: Library,
        *args: str,
        way: str | None = None,
        memory: int = 0,
        nobody: bool = False,
        kill_after: float = KILL_AFTER,
        stdin: str = "",
        env: dict[str, str] | None = None,
    ) -> Outcome:
        """Run ``code`` in a child that may grow by ``memory`` MiB; it is killed when it takes too long."""
        options = {"base": str(library.base), "memory": memory, "nobody": nobody}
        nursery = nursery_of(HERE / "inside.py", way or "", env=tuple((env or {}).items()))
        try:
            done = nursery.run(options, code, *args, given=stdin, seconds=kill_after)
        except TimeoutError:
            return Outcome(killed=True)
        if done.returncode < 0:
            return Outcome(raised=f"signal {-done.returncode}")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        if "unavailable" in answer:
            pytest.skip(f"this system opens files by {answer['unavailable']}, not by {way}")
        return Outcome(**answer)

    def answer(self, code: str, library: Library, *args: str, **options: Any) -> Outcome:  # noqa: ANN401
        """The same for the engine: it answers in time, within memory, and leaves no process behind."""
        outcome = self(code, library, *args, **options)
        assert not outcome.killed, "the engine took too long"
        assert not outcome.raised, f"{outcome.raised}: {outcome.words}"
        assert not outcome.children
        return outcome


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine's own folder for copies, outside what must not change."""
    return tmp_path_factory.mktemp("cache") / "copies"


@dataclass(frozen=True)
class Remote:
    """Asks a site beside the library."""

    library: Library
    cache: Path

    def __call__(self, url: str, **options: Any) -> prowess.Catalog:  # noqa: ANN401 - those of Source.url
        """The library and the site in one catalogue, after the standing assertions."""
        usual: dict[str, Any] = {"allow_http": True, "allow_private": True, "cache_dir": self.cache}
        site = prowess.Source.url(url, **(usual | options))
        with self.library.unchanged():
            catalog = prowess.Catalog.from_sources([prowess.Source.directory(self.library.root), site])
            self.library.check(catalog)
        return catalog

    def copies(self) -> list[Path]:
        """The files that were kept."""
        return [path for path in self.cache.rglob("*") if path.is_file()]


@pytest.fixture
def remote(library: Library, cache: Path) -> Remote:
    """A site beside the library, asked over plain http on loopback, which the cases allow by name."""
    return Remote(library, cache)


@pytest.fixture
def child() -> Children:
    """Child processes. What they cost is measured as Linux tells it."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc to measure what a case costs")
    return Children()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Each way of opening files; a child that cannot use it skips the test."""
    return str(request.param)

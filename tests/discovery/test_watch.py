"""Catalogues that keep up with their folders, however changes are noticed."""

from __future__ import annotations

import asyncio
import shutil
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.discovery.watch import watch_folders

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from prowess.discovery.watch import WatchMethod

NOTICES: list[WatchMethod] = ["watchfiles", "stat"]
SECONDS = 30


@pytest.fixture(params=NOTICES)
def notice(request: pytest.FixtureRequest) -> WatchMethod:
    value: WatchMethod = request.param
    return value


def write(root: Path, name: str, body: str = "Do it.\n") -> None:
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: D.\n---\n{body}", encoding="utf-8")


def after(watch: prowess.Watch, change: Callable[[], object], until: Callable[[prowess.Catalog], bool]) -> None:
    """Make a change, and take catalogues until one shows it; the test runner's patience is the bound."""
    change()
    for catalog in watch:
        if until(catalog):
            return
    raise AssertionError("the watch ended")


def test_the_first_catalogue_is_the_one_of_now(tmp_path: Path, notice: WatchMethod) -> None:
    write(tmp_path, "a")
    with prowess.watch(tmp_path, notice=notice, every=0.05) as watch:
        assert next(watch).names == ("a",)


def test_every_kind_of_change_gives_a_new_catalogue(tmp_path: Path, notice: WatchMethod) -> None:
    write(tmp_path, "a")
    with prowess.watch(tmp_path, notice=notice, every=0.05) as watch:
        next(watch)
        after(watch, lambda: write(tmp_path, "b"), lambda c: c.names == ("a", "b"))
        after(watch, lambda: write(tmp_path, "a", "Other.\n"), lambda c: c["a"].read_body() == "Other.\n")
        note = tmp_path / "a" / "references" / "n.md"
        note.parent.mkdir()
        after(watch, lambda: note.write_text("n", encoding="utf-8"), lambda c: bool(c["a"].resources().references))
        after(watch, lambda: (tmp_path / "b").rename(tmp_path / "c"), lambda c: len(c) == 2 and "b" in c)
        after(watch, lambda: shutil.rmtree(tmp_path / "c"), lambda c: c.names == ("a",))


def test_what_happens_between_two_catalogues_is_not_missed(tmp_path: Path, notice: WatchMethod) -> None:
    """A change that came while the program was busy with the catalogue before is in the next one."""
    write(tmp_path, "a")
    with prowess.watch(tmp_path, notice=notice, every=0.05) as watch:
        next(watch)
        write(tmp_path, "b")
        assert next(watch).names == ("a", "b")


def test_a_folder_that_comes_later_is_noticed(tmp_path: Path, notice: WatchMethod) -> None:
    later = tmp_path / "later"
    with prowess.watch(later, notice=notice, every=0.05) as watch:
        assert len(next(watch)) == 0
        after(watch, lambda: write(later, "a"), lambda c: c.names == ("a",))
        shutil.rmtree(later)
        after(watch, lambda: write(later, "b"), lambda c: c.names == ("b",))
        after(watch, lambda: write(later, "c"), lambda c: c.names == ("b", "c"))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
def test_a_skill_behind_a_link_is_watched_too(tmp_path: Path, notice: WatchMethod) -> None:
    real, root = tmp_path / "real", tmp_path / "root"
    write(real, "a")
    root.mkdir()
    (root / "a").symlink_to(real / "a", target_is_directory=True)
    with prowess.watch(root, notice=notice, every=0.05, follow_links=True) as watch:
        assert next(watch).names == ("a",)
        after(watch, lambda: write(real, "a", "Other.\n"), lambda c: c["a"].read_body() == "Other.\n")


def test_several_folders_are_one_catalogue(tmp_path: Path) -> None:
    write(tmp_path / "x", "a")
    write(tmp_path / "y", "b")
    with prowess.watch([tmp_path / "x", tmp_path / "y"]) as watch:
        assert next(watch).names == ("a", "b")


def test_without_folders_the_standard_places_are_watched(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    with prowess.watch(cwd=project, home=home, every=0.05) as watch:
        assert len(next(watch)) == 0
        after(watch, lambda: write(project / ".agents" / "skills", "a"), lambda c: c.names == ("a",))


def test_closing_ends_a_loop_that_waits(tmp_path: Path, notice: WatchMethod) -> None:
    watch = prowess.watch(tmp_path, notice=notice, every=0.05)
    seen: list[prowess.Catalog] = []
    started = threading.Event()

    def loop() -> None:
        for catalog in watch:
            seen.append(catalog)
            started.set()

    thread = threading.Thread(target=loop)
    thread.start()
    assert started.wait(SECONDS)
    watch.close()
    thread.join(SECONDS)
    assert not thread.is_alive()
    assert len(seen) == 1
    assert list(watch) == []


def test_an_asynchronous_loop_sees_the_same(tmp_path: Path, notice: WatchMethod) -> None:
    write(tmp_path, "a")

    async def whole() -> list[tuple[str, ...]]:
        seen: list[tuple[str, ...]] = []
        async with asyncio.timeout(SECONDS), prowess.watch(tmp_path, notice=notice, every=0.05) as watch:
            async for catalog in watch:
                seen.append(catalog.names)
                if "b" in catalog:
                    break
                write(tmp_path, "b")
        return seen

    seen = asyncio.run(whole())
    assert (seen[0], seen[-1]) == (("a",), ("a", "b"))


def test_cancelling_an_asynchronous_loop_leaves_no_thread(tmp_path: Path, notice: WatchMethod) -> None:
    async def whole() -> None:
        watch = prowess.watch(tmp_path, notice=notice, every=0.05)
        await anext(watch)
        waiting = asyncio.create_task(anext(watch))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(whole())
    for thread in threading.enumerate():
        if thread.name.startswith("prowess "):
            thread.join(SECONDS)
            assert not thread.is_alive()


def test_folders_of_tools_are_not_watched(tmp_path: Path) -> None:
    """What git or a package manager does below a root is not a change of skills."""
    for name in (".git", "node_modules"):
        (tmp_path / name).mkdir()
    changes = watch_folders([str(tmp_path)], every=0.01, notice="stat", limits=prowess.Limits())
    (tmp_path / ".git" / "index").write_text("x", encoding="utf-8")
    write(tmp_path, "a")
    assert changes.wait()
    threading.Timer(0.2, changes.stop).start()
    (tmp_path / "node_modules" / "x").write_text("x", encoding="utf-8")
    assert not changes.wait()


def test_a_way_to_notice_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(prowess.SourceError, match="notice"):
        next(prowess.watch(tmp_path, notice="magic"))  # type: ignore[arg-type]


def test_an_asynchronous_loop_leaves_the_hosts_executor_alone(tmp_path: Path, notice: WatchMethod) -> None:
    """A watch waits for as long as nothing changes: it must not hold a thread that is the host's."""
    write(tmp_path, "a")

    async def main() -> tuple[str, ...]:
        closed = ThreadPoolExecutor(1)
        closed.shutdown()
        asyncio.get_running_loop().set_default_executor(closed)
        async with prowess.watch(tmp_path, notice=notice, every=0.05) as watch:
            return (await anext(watch)).names

    assert asyncio.run(main()) == ("a",)

"""What the cache keeps of sources: enough to restore every project while servers are down, and no more than that."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess.fetch.cache import Cache
from tests.cli_processes import run_command
from tests.fetch.packing import FILES, zipped
from tests.git_servers import http
from tests.repositories import Repository
from tests.web_sites import Site

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World

DAY = 86_400
LIMITS = prowess.Limits()


@pytest.fixture(autouse=True)
def copies(world: World, monkeypatch: pytest.MonkeyPatch, plain_network: None) -> Path:  # noqa: ARG001 - its effect
    """The folder of the cache."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "copies"))
    return world.base / "copies"


def web(**options: object) -> prowess.Installer:
    """An installer that may ask servers on this machine; it belongs to the project in the working folder."""
    return prowess.Installer(**{"schemes": ("http",), "allow_private": True, **options})  # type: ignore[arg-type]


def check_out(world: World, name: str, lock: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a clean checkout, which has nothing but a lock file."""
    folder = world.home / name
    (folder / ".git").mkdir(parents=True)
    (folder / "prowess.lock").write_bytes(lock)
    monkeypatch.chdir(folder)


def kept(copies: Path, kind: str) -> list[Path]:
    return sorted(path for path in (copies / kind).rglob("*") if path.is_file())


def test_projects_on_different_tags_are_restored_while_the_server_is_down(
    world: World, monkeypatch: pytest.MonkeyPatch, *, full: bool
) -> None:
    tags = range(12 if full else 3)
    repo = Repository(world.base / "served" / "acme" / "pdf.git")
    locks = []
    with http(world.base / "served") as server:
        for number in tags:
            repo.skill("", "pdf", body=f"Release {number}.\n")
            repo.commit(tag=f"v{number}")
            check_out(world, f"made-{number}", b"", monkeypatch)
            (world.home / f"made-{number}" / "prowess.lock").unlink()
            web().install(f"{server.address}/acme/pdf.git#v{number}", project=True)
            locks.append((world.home / f"made-{number}" / "prowess.lock").read_bytes())
    for number, lock in enumerate(locks):
        check_out(world, f"project-{number}", lock, monkeypatch)
        (restored,) = web().sync(locked=True)
        assert f"Release {number}." in (restored.path / "SKILL.md").read_text(encoding="utf-8")


def test_a_locked_archive_is_restored_while_the_server_is_down(
    world: World, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Site() as site:
        site.put("/pdf.zip", zipped(FILES))
        web().install(f"{site.url}/pdf.zip", project=True)
        first = world.lock.read_bytes()
        site.put("/pdf.zip", zipped({**FILES, "SKILL.md": FILES["SKILL.md"] + b"More.\n"}))
        assert [update.status for update in web().update()] == ["updated"]
        second = world.lock.read_bytes()
    assert len(kept(copies, "archives")) == 2
    for name, lock in (("first", first), ("second", second)):
        check_out(world, name, lock, monkeypatch)
        (restored,) = web().sync(locked=True)
        assert b"More." in (restored.path / "SKILL.md").read_bytes() or name == "first"
        assert web().verify() == ()


@pytest.mark.parametrize("how", ["http", "private"])
def test_the_cache_does_not_answer_for_an_archive_that_may_not_be_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with Site() as site:
        site.put("/pdf.zip", zipped(FILES))
        web().install(f"{site.url}/pdf.zip", project=True)
        check_out(world, "clone", world.lock.read_bytes(), monkeypatch)
        strict = web(schemes=("https",)) if how == "http" else web(allow_private=False)
        with pytest.raises(prowess.FetchError) as caught:
            strict.sync(locked=True)
    assert caught.value.code == {"http": "plain-http", "private": "address-refused"}[how]


def test_an_archive_in_the_cache_that_was_changed_is_not_believed(
    world: World, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither under its old name, nor under the right one of other bytes."""
    with Site() as site:
        site.put("/pdf.zip", zipped(FILES))
        path = web().install(f"{site.url}/pdf.zip", project=True)
        real = (path / "SKILL.md").read_bytes()
        (file,) = kept(copies, "archives")
        evil = zipped({**FILES, "SKILL.md": FILES["SKILL.md"] + b"Evil.\n"})
        file.write_bytes(evil)
        Cache().write_archive(f"{site.url}/pdf.zip", evil, LIMITS)
        check_out(world, "clone", world.lock.read_bytes(), monkeypatch)
        (restored,) = web().sync(locked=True)
        assert (restored.path / "SKILL.md").read_bytes() == real


def test_an_archive_that_must_not_be_stored_is_not_kept(copies: Path) -> None:
    with Site() as site:
        site.put("/pdf.zip", zipped(FILES), 200, Cache_Control="private, No-Store")
        web().install(f"{site.url}/pdf.zip", project=True)
    assert kept(copies, "archives") == []


def age(path: Path, days: float) -> None:
    """Let a file have been used some days ago."""
    os.utime(path, (time.time() - days * DAY,) * 2)


def test_every_commit_of_a_repository_that_is_in_use_stays() -> None:
    cache = Cache()
    commits = [f"{number:040x}" for number in range(100)]
    for commit in commits:
        cache.write_objects("https://h.example/x", commit, commit.encode(), LIMITS)
    assert cache.find_prunable(LIMITS) == []
    assert all(cache.read_objects("https://h.example/x", commit, 100) for commit in commits)


def test_what_nobody_used_for_half_a_year_goes_and_what_is_used_stays(copies: Path) -> None:
    cache = Cache()
    for number in range(3):
        cache.write_objects("https://h.example/x", f"{number}" * 40, b"x" * number, LIMITS)
    old, used, young = kept(copies, "git")
    age(old, 181)
    age(used, 181)
    age(young, 179)
    assert cache.read_objects("https://h.example/x", "1" * 40, 100) == b"x"
    age(copies / "pruned", 2)
    cache.write_archive("https://h.example/x.zip", b"new", LIMITS)
    assert kept(copies, "git") == [used, young]


def test_what_was_used_longest_ago_goes_when_there_is_too_much(copies: Path) -> None:
    cache = Cache()
    for number in range(10):
        cache.write_archive("https://h.example/x.zip", bytes([number]) * 1_000, LIMITS)
    for number, path in enumerate(kept(copies, "archives")):
        age(path, number)
    before = kept(copies, "archives")
    deleted = cache.delete_files(cache.find_prunable(prowess.Limits(max_cached_bytes=4_500)))
    assert kept(copies, "archives") == before[:4]
    assert sum(file.size for file in deleted) == 6_000


def test_pruning_follows_no_link_and_keeps_the_memory_of_sites(world: World, copies: Path) -> None:
    with Site() as site:
        site.index(site.entry("greet", b"---\nname: greet\ndescription: x\n---\nHi.\n"))
        prowess.Source.url(site.url, allow_http=True, allow_private=True).load()
    outside = world.base / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"x")
    (copies / "git").mkdir(exist_ok=True)
    (copies / "git" / "link").symlink_to(outside)
    (copies / "git" / "file").symlink_to(outside / "precious")
    age(outside / "precious", 400)
    records = kept(copies, "urls")
    cache = Cache()
    cache.delete_files(cache.find_prunable(prowess.Limits(max_cached_bytes=1, keep_cached_seconds=1)))
    assert (outside / "precious").exists()
    assert kept(copies, "urls") == records != []
    assert kept(copies, "sha256") == []


def cache_command(*options: str) -> tuple[int, dict[str, Any]]:
    done = run_command(["cache", "--json", *options])
    return done.returncode, json.loads(done.stdout)


def test_the_command_shows_verifies_and_prunes_the_cache_and_old_backups(world: World, copies: Path) -> None:
    repo = Repository(world.base / "served" / "acme" / "notes.git")
    repo.skill("", "notes")
    repo.commit()
    with http(world.base / "served") as server, Site() as site:
        site.put("/pdf.zip", zipped(FILES))
        path = web().install(f"{server.address}/acme/notes.git", project=True)
        web().install(f"{site.url}/pdf.zip", project=True)
    status, shown = cache_command()
    assert (status, shown["folder"]) == (0, str(copies))
    assert {row["what"]: row["count"] for row in shown["kept"]} == {
        "commits": 1,
        "archives": 1,
        "files of sites": 0,
        "backups": 0,
    }
    assert cache_command("--verify")[1]["damaged"] == []
    (path / "SKILL.md").write_text("mine", encoding="utf-8")
    web().sync()
    (backup,) = web().backups()
    old = backup.path.with_name(re.sub(r"[0-9a-f]{11}-", "0018f2a3b4c-", backup.path.name))
    backup.path.rename(old)
    (commit,) = kept(copies, "git")
    commit.write_bytes(commit.read_bytes().replace(b"Do it", b"Do no"))
    assert cache_command("--verify") == (1, cache_command("--verify")[1] | {"damaged": [str(commit)], "deleted": []})
    assert cache_command("--prune", "--dry-run")[1]["due"] == [str(commit), str(old)]
    assert commit.exists()
    status, pruned = cache_command("--prune", "--yes")
    assert (status, pruned["deleted"]) == (0, [str(commit), str(old)])
    assert (commit.exists(), old.exists(), len(kept(copies, "archives"))) == (False, False, 1)


def test_a_young_backup_is_never_pruned(world: World) -> None:
    source = world.folder("notes")
    path = web().install(str(source), project=True)
    (path / "SKILL.md").write_text("mine", encoding="utf-8")
    web().sync()
    assert cache_command("--prune", "--yes")[1]["deleted"] == []
    assert [backup.path.exists() for backup in web().backups()] == [True]

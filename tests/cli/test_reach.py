"""What may be asked: plain http and private machines only where the command line says so, each time anew."""

from __future__ import annotations

import json
import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.fetch.packing import FILES, zipped
from tests.git_servers import http
from tests.repositories import Repository
from tests.web_sites import Site, skill_md

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Command

ALLOWED = ("--allow-http", "--allow-private")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Site]:
    """A site on loopback; no proxy, and copies go to this test's own folder."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(tmp_path / "copies"))
    with Site() as running:
        running.index(running.entry("greet", skill_md("greet")))
        yield running


def test_each_refusal_names_the_option_that_lifts_it(command: Command, site: Site) -> None:
    words = ("install", site.url, "--project", "--yes")
    ran = command(*words)
    assert (ran.status, "error[plain-http]" in ran.err, "say --allow-http" in ran.err) == (3, True, True)
    ran = command(*words, "--allow-http")
    assert (ran.status, "error[address-refused]" in ran.err, "say --allow-private" in ran.err) == (3, True, True)
    assert site.asked == []
    assert command(*words, *ALLOWED).status == 0
    assert "greet" in command("list").out


@pytest.mark.parametrize("place", ["agent-skills", "skills"])
def test_an_index_without_a_schema_is_told_how_to_be_mended(command: Command, site: Site, place: str) -> None:
    entry = site.entry("greet", skill_md("greet"))
    site.replies = {path: reply for path, reply in site.replies.items() if not path.endswith("index.json")}
    site.put(f"/.well-known/{place}/index.json", json.dumps({"skills": [entry]}).encode())
    ran = command("install", site.url, "--project", "--yes", *ALLOWED)
    assert (ran.status, "error[missing-schema]" in ran.err) == (3, True)
    assert 'the index has no "$schema", so it is read as version 0.1.0, and this entry is one of 0.2.0' in ran.err
    assert 'add "$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json"' in ran.err


def test_an_index_that_lists_nothing_is_told(command: Command, site: Site) -> None:
    site.index()
    ran = command("install", site.url, "--project", "--yes", *ALLOWED)
    assert (ran.status, "publishes no skill that can be used\n" in ran.err) == (3, True)


def test_an_entry_that_cannot_be_used_is_told_beside_those_that_can(command: Command, site: Site) -> None:
    good, bad = site.entry("greet", skill_md("greet")), site.entry("odd", skill_md("odd"))
    site.index(good, {**bad, "digest": "none"})
    ran = command("install", site.url, "--project", "--yes", *ALLOWED)
    assert ran.status == 0
    assert "warning: [" in ran.err
    assert "odd" in ran.err
    assert "greet" in command("list").out


def test_an_archive_copied_into_a_folder_is_asked_for_likewise(command: Command, site: Site, project: Path) -> None:
    words = ("install", site.put("/releases/download/v1/pdf.zip", zipped(FILES)), "--into", "vendor", "--yes")
    assert command(*words).status == 3
    assert command(*words, *ALLOWED).status == 0
    assert (project / "vendor/pdf/SKILL.md").is_file()


def test_what_was_allowed_once_is_not_allowed_by_the_lock_file(command: Command, site: Site, project: Path) -> None:
    assert command("install", site.url, "--project", "--yes", *ALLOWED).status == 0
    (folder,) = (project / ".prowess/skills").glob("127*/127*")
    shutil.rmtree(folder)
    asked = len(site.asked)
    for words in (("sync", "--yes"), ("sync", "--locked")):
        ran = command(*words)
        assert (ran.status, "error[plain-http]" in ran.err) == (3, True)
    assert not folder.exists()
    assert len(site.asked) == asked
    assert command("sync", "--locked", *ALLOWED).status == 0
    assert folder.is_dir()


def test_looking_for_something_newer_needs_it_again(command: Command, site: Site) -> None:
    command("install", site.url, "--project", "--yes", *ALLOWED)
    site.index(site.entry("greet", skill_md("greet", body="Say hello twice.\n")))
    asked = len(site.asked)
    ran = command("outdated")
    assert (ran.status, "[plain-http]" in ran.err) == (3, True)
    assert command("update", "--yes").status == 1
    assert len(site.asked) == asked
    assert command("outdated", *ALLOWED).status == 1
    assert command("update", "--yes", *ALLOWED).status == 0
    assert "Say hello twice." in command("read", "greet").out


def test_what_is_shown_and_then_installed_is_fetched_once(command: Command, site: Site, tmp_path: Path) -> None:
    archive = site.put("/pdf.zip", zipped(FILES))
    assert command("install", archive, "--project", "--yes", *ALLOWED).status == 0
    assert [asked.path for asked in site.asked] == ["/pdf.zip"]
    site.asked.clear()
    assert command("install", site.url, "--project", "--yes", *ALLOWED).status == 0
    paths = [asked.path for asked in site.asked]
    assert len(paths) == len(set(paths))
    made = Repository(tmp_path / "repositories" / "pair.git")
    for name in ("alpha", "beta"):
        made.skill(f"skills/{name}")
        made.write(f"skills/{name}/more.md", f"More of {name}.\n")
    made.write("other.bin", random.Random(16).randbytes(500_000))
    made.commit(tag="v1")
    made.git("config", "uploadpack.allowFilter", "true")
    with http(tmp_path / "repositories") as server:
        source = f"{server.address}/pair.git"
        assert command("install", source, "--project", "--yes", "--allow-http").status == 0
        assert (server.fetches, server.bytes_sent < 5_000) == (3, True), "folders, instructions, the other files"


def test_an_update_of_many_skills_asks_their_repository_once(
    command: Command,
    site: Site,  # noqa: ARG001 - for its effect: no proxy, and a cache of its own
    tmp_path: Path,
) -> None:
    made = Repository(tmp_path / "repositories" / "pair.git")
    for name in ("alpha", "beta"):
        made.skill(f"skills/{name}")
    made.commit(tag="v1")
    made.git("config", "uploadpack.allowFilter", "true")
    with http(tmp_path / "repositories") as server:
        source = f"{server.address}/pair.git@alpha,beta"
        assert command("install", source, "--project", "--yes", "--allow-http").status == 0
        for name in ("alpha", "beta"):
            made.skill(f"skills/{name}", body="Do more.\n")
        made.commit()
        server.forget()
        ran = command("update", "--yes", "--allow-http")
        assert (ran.status, ran.out.count("updated ")) == (0, 2)
        assert server.fetches == 3, "the history, the folders, the files of both"


def test_a_dry_run_of_what_could_not_be_installed_fails(command: Command, project: Path) -> None:
    for name in ("one", "other"):
        folder = project / name / "notes"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(skill_md("notes"))
    assert command("install", "./one", "--project", "--yes", "--skill", "notes").status == 0
    for source, code in (
        ("./one@notes", "already-installed"),
        ("./other", "name-taken"),
        ("./other@notes", "name-taken"),
    ):
        ran = command("install", source, "--project", "--dry-run")
        assert (ran.status, ran.out, f"error[{code}]" in ran.err) == (3, "", True)


def test_a_copy_into_a_folder_names_what_is_copied_and_refuses_what_is_there(
    command: Command, project: Path, site: Site
) -> None:
    for name in ("alpha", "beta"):
        (project / "pair" / name).mkdir(parents=True)
        (project / "pair" / name / "SKILL.md").write_bytes(skill_md(name))
    words = ("install", "./pair@alpha,beta", "--into", "vendored")
    ran = command(*words, "--yes")
    assert "take 2 skills, 2 files" in ran.plan
    assert ran.report == "Copied alpha: vendored/alpha\nCopied beta: vendored/beta\n"
    ran = command(*words, "--dry-run")
    assert (ran.status, ran.out, "error[already-installed]" in ran.err) == (3, "", True)
    archive = site.put("/pdf.zip", zipped(FILES))
    assert command("install", archive, "--into", "vendored", "--yes", *ALLOWED).status == 0
    assert [asked.path for asked in site.asked] == ["/pdf.zip"]


def test_a_repository_over_plain_http_needs_it_too(command: Command, tmp_path: Path, project: Path) -> None:
    made = Repository(tmp_path / "repositories" / "pair.git")
    made.skill("skills/alpha")
    made.commit(tag="v1")
    with http(tmp_path / "repositories") as server:
        words = ("install", f"{server.address}/pair.git", "--project", "--yes")
        ran = command(*words)
        assert (ran.status, "error[bad-scheme]" in ran.err, "say --allow-http" in ran.err) == (3, True, True)
        assert command(*words, "--allow-http").status == 0
        shutil.rmtree(project / ".prowess/skills")
        assert "error[bad-scheme]" in command("sync", "--yes").err
        assert command("sync", "--yes", "--allow-http").status == 0

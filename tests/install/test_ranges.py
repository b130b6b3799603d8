"""Ranges of tags, such as ``#^1.2``: the latest tag in them is installed, locked, and followed by updates."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.text.redaction import hide_secrets, scrub_text
from tests.cli_processes import run_command
from tests.git_servers import http
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.git_servers import HttpServer
    from tests.install.conftest import World


class Releases:
    """A repository on a server, with a skill and a tag for each release."""

    def __init__(self, world: World) -> None:
        self.root = world.base / "served"
        self.repo = Repository(self.root / "acme" / "pdf.git")
        self.commits = {tag: self.release(tag) for tag in ("v1.0.0", "v1.2.0", "v1.10.0", "v2.0.0")}

    def release(self, tag: str, *options: str) -> str:
        """Publish a release."""
        self.repo.skill("", "pdf", body=f"Do it like {tag}.\n")
        commit = self.repo.commit()
        self.repo.git("tag", *options, tag)
        return commit


@pytest.fixture
def releases(world: World) -> Releases:
    """A repository with four releases."""
    return Releases(world)


@pytest.fixture
def server(releases: Releases, monkeypatch: pytest.MonkeyPatch, world: World) -> Iterator[HttpServer]:
    """A server for it, and a cache of this test's own."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "copies"))
    with http(releases.root) as running:
        yield running


@pytest.fixture
def web() -> prowess.Installer:
    """An installer that may ask servers on this machine."""
    return prowess.Installer(schemes=("http",))


def locked(world: World) -> str:
    return world.lock.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("wanted", "tag"), [("^1.2", "v1.10.0"), ("~1.2", "v1.2.0"), (">=1.0,<1.10", "v1.2.0"), (">1", "v2.0.0")]
)
def test_the_latest_tag_in_a_range_is_installed_and_locked(
    world: World, releases: Releases, server: HttpServer, wanted: str, tag: str
) -> None:
    path = prowess.Installer(schemes=("http",)).install(f"{server.address}/acme/pdf.git#{wanted}", project=True)
    assert f"like {tag}." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert f'ref = "{wanted}"' in locked(world)
    assert releases.commits[tag] in locked(world)


def test_a_locked_range_is_restored_from_the_lock_file_alone(
    world: World, releases: Releases, server: HttpServer, web: prowess.Installer
) -> None:
    path = web.install(f"{server.address}/acme/pdf.git#^1.2", project=True)
    releases.release("v1.11.0")
    shutil.rmtree(path)
    web.sync(locked=True)
    assert "like v1.10.0." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert releases.commits["v1.10.0"] in locked(world)


def test_outdated_shows_the_wanted_and_the_latest_tag_and_update_stays_in_range(
    world: World, releases: Releases, server: HttpServer, web: prowess.Installer
) -> None:
    path = web.install(f"{server.address}/acme/pdf.git#^1.2", project=True)
    (only,) = web.outdated()
    assert (only.wanted, only.newer, only.newest) == ("v1.10.0", "v2.0.0", releases.commits["v1.10.0"])
    # Annotated, and on a branch of its own: it does not hold the commit of v1.10.0.
    releases.repo.git("checkout", "--quiet", "-B", "main", "v1.2.0")
    newest = releases.release("v1.10.1", "--annotate", "--message", "x")
    (found,) = web.outdated()
    assert (found.ref, found.wanted, found.newer, found.newest) == ("^1.2", "v1.10.1", "v2.0.0", newest)
    assert [update.status for update in web.update()] == ["updated"]
    assert "like v1.10.1." in (path / "SKILL.md").read_text(encoding="utf-8")
    assert newest in locked(world)
    assert web.update("@acme/pdf@^2")[0].status == "updated"
    assert (web.outdated(), 'ref = "^2"' in locked(world)) == ((), True)


def test_a_range_that_leads_to_an_older_tag_went_back(
    world: World, releases: Releases, server: HttpServer, web: prowess.Installer
) -> None:
    """Whoever deletes the latest tag, or moves it, could bring back a release with a known flaw."""
    web.install(f"{server.address}/acme/pdf.git#^1.2", project=True)
    releases.repo.git("tag", "--delete", "v1.10.0")
    assert [(found.newest, found.wanted) for found in web.outdated()] == [(releases.commits["v1.10.0"], "")]
    assert [issue.code for issue in web.issues] == ["rolled-back"]
    releases.repo.git("tag", "v1.10.0", "v1.0.0")
    assert [update.status for update in web.update()] == ["current"]
    assert [issue.code for issue in web.issues] == ["rolled-back"]
    assert releases.commits["v1.10.0"] in locked(world)


def test_a_range_without_a_tag_names_the_latest_one(server: HttpServer, web: prowess.Installer) -> None:
    with pytest.raises(prowess.GitError) as caught:
        web.install(f"{server.address}/acme/pdf.git#^3", project=True)
    assert caught.value.code == "unknown-version"
    assert caught.value.message.endswith("has no tag in the range ^3: the latest one is v2.0.0")


def test_tags_that_no_release_has_are_not_chosen(
    releases: Releases, server: HttpServer, web: prowess.Installer
) -> None:
    for tag in ("v1.99.0-rc.1", "pdf-v1.99.0", "v1.99.0;x", "v1.99.0+x"):
        releases.repo.git("tag", tag)
    path = web.install(f"{server.address}/acme/pdf.git#^1", project=True)
    assert "like v1.10.0." in (path / "SKILL.md").read_text(encoding="utf-8")


def test_the_command_line_installs_a_range_and_shows_its_tags(
    world: World, releases: Releases, server: HttpServer
) -> None:
    source = f"{server.address}/acme/pdf.git#>=1.0,<2"
    (world.project / "prowess.toml").write_text("skills = []\n", encoding="utf-8")
    done = run_command(["install", source, "--project", "--yes", "--allow-http"])
    assert done.returncode == 0, done.stderr
    assert f'"{source}"' in (world.project / "prowess.toml").read_text(encoding="utf-8")
    assert run_command(["sync", "--locked", "--allow-http"]).returncode == 0
    releases.release("v1.11.0")
    assert b"v1.11.0" in run_command(["outdated", "--allow-http"]).stdout
    (row,) = json.loads(run_command(["outdated", "--allow-http", "--json"]).stdout)["outdated"]
    assert (row["ref"], row["wanted"], row["newer"]) == (">=1.0,<2", "v1.11.0", "v2.0.0")


ADDRESSES = ("acme/x", "https://h.example/x.git", "git@h.example:x.git", "ssh://git@h.example/x.git", "./x")


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("tail", ["#>=1.0,<2", "#^1.2:tools@pdf,csv", "#~1@pdf"])
def test_a_source_with_a_range_is_read_as_it_is_shown(address: str, tail: str) -> None:
    spec = prowess.parse_source(f"{address}{tail}")
    assert spec.ref in tail
    assert str(spec).endswith(tail)
    assert prowess.parse_source(str(spec)) == spec
    shown = str(spec) if address == "acme/x" else f"{address}{tail}"
    assert hide_secrets(shown) == shown
    assert scrub_text(f"see {address}{tail}, please") == f"see {address}{tail}, please"


@pytest.mark.parametrize("tail", ["#>=1.0&token=hunter2", "#>=hunter2", "#access=hunter2", "#>=1.0,token=hunter2"])
@pytest.mark.parametrize("address", ADDRESSES[:4])
def test_a_secret_beside_a_range_is_refused_and_hidden(address: str, tail: str) -> None:
    with pytest.raises(prowess.BadReferenceError) as caught:
        prowess.parse_source(f"{address}{tail}")
    assert caught.value.code == "secret-in-address"
    assert "hunter2" not in f"{caught.value} {hide_secrets(f'{address}{tail}')}"

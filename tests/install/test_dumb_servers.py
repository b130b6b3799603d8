"""Repositories that are served as plain files: dumb HTTP, which knows neither shallow nor partial fetches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.fetch.git.objects import dump_objects, load_objects
from tests.git_servers import dumb
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.install.conftest import World


class Served:
    """A repository with two skills and two releases, and its address on a server that gives plain files."""

    def __init__(self, root: Repository, address: str) -> None:
        self.repo, self.address = root, address

    def publish(self, body: str, tag: str) -> str:
        """Publish a release, and return its commit."""
        self.repo.skill("skills/pdf", body=body)
        commit = self.repo.commit()
        self.repo.git("tag", "--annotate", "--message", "x", tag)
        self.repo.git("update-server-info")
        return commit


@pytest.fixture
def served(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """The repository and its server."""
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "copies"))
    repo = Repository(world.base / "served" / "acme" / "tools")
    repo.skill("skills/csv")
    repo.commit()
    repo.git("gc", "--quiet")  # one part of the history is packed, the other is not
    with dumb(world.base / "served") as address:
        made = Served(repo, f"{address}/acme/tools/.git")
        made.publish("First.\n", "v1.0.0")
        made.publish("Second.\n", "v1.1.0")
        yield made


@pytest.fixture
def web() -> prowess.Installer:
    """An installer that may ask servers on this machine."""
    return prowess.Installer(schemes=("http",))


@pytest.mark.parametrize("version", ["", "#v1.1.0", "#^1", "#main", "#commit", "#short"])
def test_a_dumb_server_gives_every_kind_of_version_and_is_reported(world: World, served: Served, version: str) -> None:
    commit = served.repo.git("rev-parse", "HEAD")
    version = {"#commit": f"#{commit}", "#short": f"#{commit[:9]}"}.get(version, version)
    web = prowess.Installer(schemes=("http",))
    path = web.install(f"{served.address}{version}", project=True)
    assert "Second." in (path / "skills/pdf/SKILL.md").read_text(encoding="utf-8")
    assert commit in world.lock.read_text(encoding="utf-8")
    (issue,) = [issue for issue in web.issues if issue.code == "dumb-server"]
    assert (issue.severity, served.address in issue.message) == ("info", True)


def test_updates_from_a_dumb_server_follow_and_notice_what_went_back(served: Served, web: prowess.Installer) -> None:
    web.install(served.address, project=True)
    newest = served.publish("Third.\n", "v1.2.0")
    assert [found.newest for found in web.outdated()] == [newest]
    assert [update.status for update in web.update()] == ["updated"]
    assert [issue.code for issue in web.issues] == ["dumb-server"]
    served.repo.git("reset", "--hard", "--quiet", "v1.0.0")
    served.repo.git("update-server-info")
    assert [update.status for update in web.update()] == ["current"]
    assert "rolled-back" in [issue.code for issue in web.issues]


def test_files_that_the_cache_lacks_come_from_a_dumb_server(
    world: World, served: Served, web: prowess.Installer
) -> None:
    """The cache knows the commit and no files, so git asks for these by their ids first."""
    web.install(served.address, project=True)
    (kept,) = (path for path in (world.base / "copies" / "git").rglob("*") if path.is_file())
    objects = load_objects(kept.read_bytes())
    kept.write_bytes(dump_objects({name: pair for name, pair in objects.items() if pair[0] != "blob"}))
    path = web.install(served.address, project=True, replace=True)
    assert "Second." in (path / "skills/pdf/SKILL.md").read_text(encoding="utf-8")
    assert [issue.code for issue in web.issues] == ["dumb-server"]


def test_the_whole_history_of_a_dumb_server_is_bounded_too(served: Served) -> None:
    served.repo.write("large.bin", bytes(range(256)) * 40_000)
    served.repo.commit()
    served.publish("Third.\n", "v1.2.0")
    small = prowess.Installer(schemes=("http",), limits=prowess.Limits(max_fetch_bytes=20_000))
    with pytest.raises(prowess.GitError) as caught:
        small.install(served.address, project=True)
    assert caught.value.code == "too-many-bytes"

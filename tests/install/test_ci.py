"""A monorepo in CI, whatever serves its sources: clean checkouts, restored caches, and servers that are down."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli.conftest import Command, Ran
from tests.git_servers import dumb, http
from tests.install import test_git_settings as git_settings
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.install.test_git_settings import Company

company = git_settings.company
KINDS = ["https", "mirror", "ssh", "dumb"]
PROJECTS = ("alpha", "deep/beta")
FILES = ("prowess.toml", "prowess.lock")


@contextmanager
def serve(company: Company, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve the repositories of the company until the block ends, and yield the address of their folder."""
    if kind == "ssh":
        up = company.outside / "up"
        up.touch()
        script = f"test -e '{up}' || exit 255\n" + git_settings.SSH.format(record="/dev/null", root=company.root)
        monkeypatch.setenv("GIT_SSH_COMMAND", str(company.program("wrapper", script)))
        yield "git@git.example.invalid:acme"
        up.unlink()
        return
    company.trust_authority()
    if kind == "dumb":
        with dumb(company.root, tls=company.tls) as address:
            yield f"{address}/acme"
        return
    with http(company.root, tls=company.tls) as server:
        if kind == "mirror":
            company.configure((f"url.{server.address}/.insteadOf", "https://git.example.invalid/"))
        yield "https://git.example.invalid/acme" if kind == "mirror" else f"{server.address}/acme"


class Monorepo:
    """A repository with two projects: one has a skill by a range, the other a plugin that is in another repository."""

    def __init__(self, company: Company, base: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._company, self._base, self._patch = company, base, monkeypatch
        self._inside = "/.git" if kind == "dumb" else ""
        self.folder = company.world.home / "monorepo"
        self.pdf = Repository(company.root / "acme" / "forms.git")
        self.publish("v1.2.0")
        self.check_out("monorepo")
        (self.folder / "alpha/prowess.toml").write_text(f'skills = ["{self.address("forms")}#^1"]\n', encoding="utf-8")
        assert self.run("alpha", "lock").status == 0
        entry = {"name": "desk", "source": {"source": "url", "url": self.address("forms"), "ref": "v1.2.0"}}
        market = Repository(company.root / "acme" / "market.git")
        market.skill("skills/other")
        market.write(".claude-plugin/marketplace.json", json.dumps({"name": "market", "plugins": [entry]}))
        self._commit(market)
        (self.folder / "deep/beta/prowess.toml").write_text("skills = []\n", encoding="utf-8")
        ran = self.run("deep/beta", "install", f"{self.address('market')}@desk", "--project", "--yes")
        assert ran.status == 0, ran.err
        shutil.rmtree(self.folder / "deep/beta/.prowess")

    def address(self, name: str) -> str:
        return f"{self._base}/{name}.git{self._inside}"

    def publish(self, tag: str, **more: str) -> None:
        self.pdf.skill("skills/forms", body=f"Release {tag}.\n")
        for path, text in more.items():
            self.pdf.write(f"skills/forms/scripts/{path}.py", text)
        self._commit(self.pdf, tag)

    def _commit(self, repository: Repository, tag: str = "") -> None:
        repository.commit(tag=tag)
        if self._inside:
            repository.git("update-server-info")

    def check_out(self, name: str) -> Path:
        """Make a clean checkout, with manifests and lock files and nothing else, and work there."""
        checkout = self._company.world.home / name
        (checkout / ".git").mkdir(parents=True)
        for project in PROJECTS:
            (checkout / project).mkdir(parents=True)
            for file in FILES:
                if (self.folder / project / file).exists():
                    shutil.copy(self.folder / project / file, checkout / project / file)
        self._patch.chdir(checkout)
        return checkout

    def run(self, project: str, *words: str) -> Ran:
        with self._patch.context() as there:
            there.chdir(self.folder / project)
            return Command()(*words)

    def restore(self, checkout: Path) -> None:
        """Do what a job does, and see that it has what was locked."""
        assert Command()("sync", "--recursive", "--locked").status == 0
        ran = Command()("verify", "--recursive", "--json")
        assert (ran.status, [row["path"] for row in ran.data["projects"]]) == (0, [*PROJECTS])
        for project in PROJECTS:
            (installed,) = (checkout / project).rglob(".prowess/skills/*/*/skills/forms/SKILL.md")
            assert "Release v1.2.0." in installed.read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_restores_every_project_with_and_without_cache_and_servers(
    company: Company, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    copies = company.world.base / "copies"
    with serve(company, kind, monkeypatch) as base:
        monorepo = Monorepo(company, base, kind, monkeypatch)
        shutil.rmtree(copies)
        copies.mkdir()
        monorepo.restore(monorepo.check_out("first"))  # it fills the cache
    monorepo.restore(monorepo.check_out("second"))  # the servers are down, and the cache is restored
    ran = Command()("outdated", "--recursive", "--json")
    assert [row["path"] for row in ran.data["projects"]] == [*PROJECTS]
    assert ran.status != 0
    shutil.rmtree(copies)
    copies.mkdir()
    monorepo.check_out("third")
    ran = Command()("sync", "--recursive", "--locked")
    assert ran.status != 0
    assert all(f"{project}" in ran.out for project in PROJECTS)


# git's own program for http starts several processes for each request
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.full) if kind in {"https", "mirror"} else kind for kind in KINDS]
)
def test_outdated_names_in_every_project_what_a_new_release_brings(
    company: Company, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with serve(company, kind, monkeypatch) as base:
        monorepo = Monorepo(company, base, kind, monkeypatch)
        monorepo.publish("v1.3.0", send="print()\n")
        monorepo.publish("v2.0.0")
        monorepo.check_out("job")
        ran = Command()("outdated", "--recursive", "--verbose", "--json")
        assert ran.status == 1
        (alpha,) = ran.data["projects"][0]["answer"]["outdated"]
        assert (alpha["wanted"], alpha["newer"]) == ("v1.3.0", "v2.0.0")
        assert [one["kind"] for one in alpha["update"]["additions"]] == ["script"]
        monkeypatch.chdir("alpha")
        (updated,) = prowess.Installer().lock(update=True)
        assert [one.kind for one in updated.additions] == ["script"]
    monkeypatch.chdir("..")
    assert Command()("sync", "--recursive", "--locked").status == 0  # the cache has what the bot locked

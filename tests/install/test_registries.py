"""Skills of a real OCI registry: pinned by digest, updated, restored while it is away, checked by policies."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import prowess
from prowess import Source
from prowess.files.write import NewFile
from tests.fetch.oci_peers import TAR, FakeRepository
from tests.page_snippets import ROOT, list_blocks, make_reader_project
from tests.registries import needs_registry, push_skill, running_registry
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.install.conftest import World
    from tests.web_sites import Site

pytestmark = [needs_registry, pytest.mark.usefixtures("plain_network")]
SCHEMES = ("https", "http")


class Team:
    """A registry, and who publishes to it."""

    def __init__(self, host: str) -> None:
        self.host = host

    def push(self, version: str, body: str = "Do it.\n", *aliases: str, name: str = "pdf") -> str:
        files = [
            NewFile("SKILL.md", skill_text(name, body).encode()),
            NewFile("run.sh", b"#!/bin/sh\n", executable=True),
        ]
        return push_skill(self.address(name), files, name=name, version=version, aliases=aliases).digest

    def address(self, name: str = "pdf") -> str:
        return f"oci://{self.host}/team/{name}"


@pytest.fixture
def team(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Team]:
    monkeypatch.setenv("DOCKER_CONFIG", str(world.home / ".docker"))
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    with running_registry(world.base / "registry") as host:
        made = Team(host)
        made.push("1.0.0", "First.\n", "latest")
        yield made


@pytest.fixture
def installer(world: World) -> prowess.Installer:  # noqa: ARG001 - it must be there first
    return prowess.Installer(schemes=SCHEMES, allow_private=True)


def body(world: World) -> str:
    return (world.agents / "pdf" / "SKILL.md").read_text().partition("---\n")[2].partition("---\n")[2]


def names(found: Any) -> dict[str, str]:
    return {one.name: one.newer or one.newest for one in found}


def test_a_tag_is_pinned_by_its_digest_and_followed_by_an_update(
    world: World, installer: prowess.Installer, team: Team
) -> None:
    first = team.push("1.0.0", "First.\n")
    installer.install(f"{team.address()}:latest", project=True)
    assert body(world) == "First.\n"
    assert (world.agents / "pdf" / "run.sh").stat().st_mode & 0o100
    lock = world.lock.read_text()
    for row in ('kind = "oci"', f'source = "{team.address()}"', 'ref = "latest"', f'commit = "{first}"'):
        assert row in lock.splitlines()
    assert installer.verify() == ()
    assert installer.outdated() == ()
    second = team.push("1.1.0", "Second.\n", "latest")
    assert [(one.current, one.newest) for one in installer.outdated()] == [(first, second)]
    difference = installer.diff("@team/pdf")
    assert "-First.\n+Second.\n" in difference.updates
    installer.update("@team/pdf")
    assert body(world) == "Second.\n"
    # Whoever publishes moves an alias back on purpose: a registry has no history that would show a rewrite.
    team.push("1.0.0", "First.\n", "latest")
    installer.update("@team/pdf")
    assert body(world) == "First.\n"


def test_later_versions_and_ranges_are_offered(world: World, installer: prowess.Installer, team: Team) -> None:
    team.push("1.2.0", "Later.\n")
    team.push("2.0.0", "Major.\n")
    team.push("1.0.0", "Docx.\n", name="docx")
    installer.install(f"{team.address()}:1.0.0", project=True)
    assert [(one.name, one.newer) for one in installer.outdated()] == [("team/pdf", "2.0.0")]
    installer.install(f"{team.address()}#^1", project=True, replace=True)
    assert body(world) == "Later.\n"
    assert [(one.name, one.wanted, one.newer) for one in installer.outdated()] == [("team/pdf", "1.2.0", "2.0.0")]
    team.push("1.3.0", "Latest.\n")
    installer.update("@team/pdf")
    assert body(world) == "Latest.\n"


def test_a_digest_is_pinned_for_ever(world: World, installer: prowess.Installer, team: Team) -> None:
    first = team.push("1.0.0", "First.\n")
    installer.install(f"{team.address()}@sha256:{first}", project=True)
    team.push("2.0.0", "Second.\n", "latest")
    assert installer.outdated() == ()
    installer.update("@team/pdf")
    assert body(world) == "First.\n"


def test_what_is_locked_comes_back_while_the_registry_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch, listing: Callable[[Path], object]
) -> None:
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    installer = prowess.Installer(schemes=SCHEMES, allow_private=True)
    with running_registry(world.base / "registry") as host:
        team = Team(host)
        team.push("1.0.0", "First.\n", "latest")
        installer.install(f"{team.address()}:latest", project=True)
        before, lock = listing(world.agents), world.lock.read_bytes()
        team.push("1.1.0", "Second.\n", "latest")
    for folder in (world.agents, world.skills):
        shutil.rmtree(folder)
    installer.sync(locked=True)
    assert (listing(world.agents), world.lock.read_bytes()) == (before, lock)
    with pytest.raises(prowess.SkillError) as caught:
        prowess.Installer(schemes=SCHEMES, allow_private=True).install(
            f"{team.address()}:1.1.0", project=True, replace=True
        )
    assert caught.value.code == "fetch-failed"


def test_without_the_cache_the_locked_digest_is_fetched_again(
    world: World, installer: prowess.Installer, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    installer.install(f"{team.address()}:latest", project=True)
    team.push("1.1.0", "Second.\n", "latest")
    shutil.rmtree(world.skills)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "another-cache"))
    installer.sync(locked=True)
    assert body(world) == "First.\n"


def test_the_manifest_declares_a_repository(world: World, installer: prowess.Installer, team: Team) -> None:
    manifest = world.project / "prowess.toml"
    manifest.write_text(f'skills = ["{team.address()}:latest"]\n')
    installer.sync()
    assert body(world) == "First.\n"
    team.push("1.1.0", "Second.\n", "latest")
    manifest.write_text(f'skills = ["{team.address()}:1.1.0"]\n')
    installer.sync()
    assert body(world) == "Second.\n"


def test_a_policy_decides_about_registries(world: World, installer: prowess.Installer, team: Team) -> None:
    policy = world.project / "prowess-policy.toml"
    policy.write_text('[sources]\nallow = ["oci://registry.example/**"]\n')
    with pytest.raises(prowess.PolicyError):
        installer.install(f"{team.address()}:latest", project=True)
    with pytest.raises(prowess.PolicyError):
        Source.oci(team.address(), allow_http=True, allow_private=True, missing="error").load()
    policy.write_text(f'[sources]\nallow = ["oci://{team.host}/team/**"]\n[versions]\nrefs = "tags"\n')
    with pytest.raises(prowess.PolicyError):
        installer.install(f"{team.address()}:latest", project=True)
    installer.install(f"{team.address()}:1.0.0", project=True)


def test_a_mirror_is_asked_in_place_of_a_registry(world: World, installer: prowess.Installer, team: Team) -> None:
    policy = world.home / ".config" / "prowess" / "policy.toml"
    policy.parent.mkdir(parents=True)
    rule = f'{{ from = "oci://registry.example/", to = "oci://{team.host}/" }}'
    policy.write_text(f"[sources]\nmirror = [{rule}]\n")
    installer.install("oci://registry.example/team/pdf:1.0.0", project=True)
    assert 'source = "oci://registry.example/team/pdf"' in world.lock.read_text()
    found = Source.oci("oci://registry.example/team/pdf", allow_http=True, allow_private=True).load()
    assert found.names == ("pdf",)


def test_plain_http_and_private_hosts_are_refused_unless_allowed(world: World, team: Team) -> None:
    for private, code in [(False, "address-refused"), (True, "fetch-failed")]:
        with pytest.raises(prowess.FetchError) as caught:
            prowess.Installer(allow_private=private).install(team.address(), project=True)
        assert caught.value.code == code
    assert not world.lock.exists()


def test_skills_of_a_registry_need_no_install(team: Team) -> None:
    source = Source.oci(team.address(), allow_http=True, allow_private=True)
    assert repr(source) == f"Source.oci('{team.address()}', '')"
    catalog = source.load()
    assert catalog.load("pdf").instructions == "First."
    old = catalog["pdf"]
    digest = team.push("1.1.0", "Second.\n", "latest")
    assert source.load().load("pdf").instructions == "Second."
    assert old.read_body() == "First.\n"
    for ref in ("^1", f"sha256:{digest}", "1.1.0"):
        pinned = Source.oci(team.address(), ref, allow_http=True, allow_private=True, path="pdf")
        assert pinned.load().load("pdf").instructions == "Second."
    gone = Source.oci(f"{team.address()}x", allow_http=True, allow_private=True).load()
    assert [issue.code for issue in gone.issues] == ["unknown-tag"]
    for address, ref in [("https://x/y", ""), (f"{team.address()}:1.0.0", "1.1.0")]:
        with pytest.raises(prowess.SourceError):
            Source.oci(address, ref)


def test_a_list_of_sources_may_name_a_repository(team: Team) -> None:
    entry = {"dir": f"{team.address()}:1.0.0", "mount_as": "shared", "preload": True}
    # A list may come with a project, so it cannot allow a machine that is not public.
    refused = prowess.Catalog.from_sources(prowess.load_sources([entry]))
    assert [issue.code for issue in refused.issues] == ["address-refused"]
    with pytest.raises(prowess.SourceError, match=r"sources\[0\]"):
        prowess.load_sources([{"dir": "oci://no repository"}])


def test_the_commands_of_the_page_about_registries_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader starts a registry, publishes a skill to it and installs it from there."""
    folder = make_reader_project(tmp_path, monkeypatch)
    shutil.rmtree(folder / ".agents")
    _, start, use = (text for _, text in list_blocks(ROOT / "docs/how-to/registries.md", "bash"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    wait = "trap 'kill %1' EXIT\nuntil grep -q listening log; do sleep 0.1; done\n"
    script = f"set -eu\n{start.replace('&', '2>log &').replace('level: error', 'level: info')}{wait}{use}"
    variables = {
        **os.environ,
        "HOME": str(folder / "home"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        ["bash", "-c", script.replace("5000", port)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / ".agents" / "skills" / "release-notes" / "SKILL.md").is_file()
    lock = (folder / "prowess.lock").read_text()
    assert f'source = "oci://127.0.0.1:{port}/team/release-notes"' in lock


def test_a_refused_skill_leaves_nothing_outside_of_the_cache(
    world: World,
    installer: prowess.Installer,
    site: Site,
    monkeypatch: pytest.MonkeyPatch,
    listing: Callable[[Path], object],
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(world.home / ".docker"))
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "cache"))
    repository = FakeRepository(site, world.base / "cache")
    layer = repository.skill_layer()
    escape = repository.layer(b"x", TAR, title="../../escaped")
    before = listing(world.home)
    for layers, code in [([layer | {"size": 7}], "digest-mismatch"), ([layer, escape], "bad-archive")]:
        repository.manifest(*layers)
        with pytest.raises(prowess.SkillError) as caught:
            installer.install(f"{repository.address}:1", project=True)
        assert caught.value.code == code
        assert listing(world.home) == before

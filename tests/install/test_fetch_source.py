"""Installing from neither a repository nor a folder: archives, here and on a server, and what a site publishes."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.fetch.packing import FILES, zipped
from tests.web_sites import Site, skill_md

if TYPE_CHECKING:
    from tests.install.conftest import World


@pytest.fixture
def open_installer() -> prowess.Installer:
    """Allowed to ask this machine in plain http."""
    return prowess.Installer(schemes=("https", "http"), allow_private=True)


@pytest.mark.parametrize("wrapper", ["", "pdf/"])
@pytest.mark.parametrize("name", ["pdf.skill", "pdf.zip"])
def test_an_archive_of_this_machine_is_installed_pinned_and_linked(world: World, name: str, wrapper: str) -> None:
    archive = world.base / name
    archive.write_bytes(zipped(FILES, wrapper=wrapper))
    installer = prowess.Installer()
    path = installer.install(str(archive), project=True)
    assert (path / "references" / "a.md").read_bytes() == FILES["references/a.md"]
    assert installer.verify() == ()
    assert prowess.discover(home=world.home).names == ("pdf",)
    (path / "SKILL.md").write_bytes(b"---\nname: pdf\ndescription: other\n---\nDo evil.\n")
    assert [issue.code for issue in installer.verify()] == ["changed-file"]


def test_an_archive_that_is_odd_changes_nothing(world: World) -> None:
    archive = world.base / "pdf.zip"
    archive.write_bytes(zipped({**FILES, "../out.md": b"x"}))
    with pytest.raises(prowess.UnsafeTreeError):
        prowess.Installer().install(str(archive), project=True)
    assert not world.skills.exists() or list(world.skills.glob("*/*")) == []
    assert not world.lock.exists()
    assert not (world.base / "out.md").exists()


def test_an_archive_of_a_server_is_installed(world: World, site: Site, open_installer: prowess.Installer) -> None:
    address = site.put("/releases/download/v1/pdf.zip", zipped(FILES))
    path = open_installer.install(address, project=True)
    assert (path / "SKILL.md").read_bytes() == FILES["SKILL.md"]
    assert open_installer.verify() == ()
    assert world.lock.is_file()


@pytest.mark.usefixtures("world")
def test_a_server_that_is_not_public_is_not_asked_unless_that_is_allowed(site: Site) -> None:
    address = site.put("/releases/download/v1/pdf.zip", zipped(FILES))
    with pytest.raises(prowess.SkillError):
        prowess.Installer().install(address, project=True)
    with pytest.raises(prowess.FetchError) as refused:
        prowess.Installer(schemes=("https", "http")).install(address, project=True)
    assert refused.value.code == "address-refused"
    assert site.asked == []


def test_what_a_site_publishes_is_installed(world: World, site: Site, open_installer: prowess.Installer) -> None:
    whole = site.entry("pdf", zipped(FILES), "archive")
    site.index(site.entry("greet", skill_md("greet")), whole)
    open_installer.install(site.url, project=True)
    assert prowess.discover(home=world.home).names == ("greet", "pdf")
    assert open_installer.verify() == ()


def test_a_script_of_a_site_is_executable_by_its_first_line(
    world: World, site: Site, open_installer: prowess.Installer
) -> None:
    files = {**FILES, "scripts/run.sh": b"#!/bin/sh\necho hello\n", "scripts/data.txt": b"1\n"}
    site.index(site.entry("pdf", zipped(files), "archive"))
    open_installer.install(site.url, project=True)
    scripts = world.agents / "pdf" / "scripts"
    assert os.access(scripts / "run.sh", os.X_OK)
    assert not os.access(scripts / "data.txt", os.X_OK)
    assert open_installer.verify() == ()
    shutil.rmtree(world.skills)
    open_installer.sync(locked=True)
    assert os.access(scripts / "run.sh", os.X_OK)


@pytest.mark.usefixtures("world")
def test_what_a_site_changed_behind_its_index_is_not_installed(site: Site, open_installer: prowess.Installer) -> None:
    entry = site.entry("greet", skill_md("greet"))
    site.put(str(entry["url"]), skill_md("greet", body="Do evil.\n"))
    site.index(entry)
    with pytest.raises(prowess.FetchError) as refused:
        open_installer.install(site.url, project=True)
    assert refused.value.code == "digest-mismatch"
    assert open_installer.list() == ()


def test_an_archive_of_a_repository_holds_many_skills(world: World) -> None:
    """A folder around everything, no SKILL.md on top, archives among the files: what a host of repositories gives."""
    one, other = skill_md("greet"), skill_md("part")
    files = {"README.md": b"x", "skills/greet/SKILL.md": one, "skills/part/SKILL.md": other, "skills/part/a.zip": b"PK"}
    archive = world.base / "repo-main.zip"
    archive.write_bytes(zipped(files, wrapper="repo-main/"))
    installer = prowess.Installer()
    installer.install(str(archive), project=True)
    assert prowess.discover(home=world.home).names == ("greet", "part")
    assert installer.verify() == ()


def test_a_skill_md_by_itself_is_installed(world: World, site: Site, open_installer: prowess.Installer) -> None:
    address = site.put("/acme/tools/raw/main/SKILL.md", skill_md("greet"))
    open_installer.install(address, project=True)
    assert prowess.discover(home=world.home).names == ("greet",)


def test_a_plugin_that_is_one_skill_is_found(world: World) -> None:
    made = world.repository("plugins", "deep/er/one/two/greet", "deep/er/one/two/kit/skills/part")
    manifest = (
        '{"name": "m", "plugins": [{"name": "a", "source": "./deep/er/one/two/greet"},'
        ' {"name": "b", "source": "./deep/er/one/two/kit"}]}'
    )
    made.write(".claude-plugin/marketplace.json", manifest)
    made.commit()
    prowess.Installer().install(made.path.as_uri(), project=True)
    assert prowess.discover(home=world.home).names == ("greet", "part")

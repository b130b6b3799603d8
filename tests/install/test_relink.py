"""Links for further agents: added and taken away without fetching, recorded, and never in anybody's place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock

if TYPE_CHECKING:
    from tests.install.conftest import World


@pytest.fixture
def installer(world: World) -> prowess.Installer:
    """An installer with two skills of one repository, for the project."""
    made = prowess.Installer()
    made.install(world.repository("pair", "alpha", "beta").address, project=True)
    return made


def test_every_skill_of_an_install_is_linked_and_recorded(world: World, installer: prowess.Installer) -> None:
    made = installer.link("@local/pair", ["claude-code", "windsurf"])
    assert made == (
        *(".claude/skills/alpha", ".claude/skills/beta", ".windsurf/skills/alpha", ".windsurf/skills/beta"),
    )
    assert all((world.project / link).resolve().is_dir() for link in made)
    entry = read_lock(str(world.project))["local/pair"]
    assert entry.agents == ("claude-code", "windsurf")
    assert set(made) <= set(entry.links)
    assert installer.verify() == ()
    assert installer.link("@local/pair", ["claude-code"]) == ()


def test_only_the_links_for_those_agents_are_taken_away(world: World, installer: prowess.Installer) -> None:
    installer.link("@local/pair", ["claude-code", "windsurf"])
    assert installer.unlink("@local/pair", ["claude-code"]) == (".claude/skills/alpha", ".claude/skills/beta")
    assert not (world.project / ".claude/skills/alpha").exists()
    assert (world.project / ".windsurf/skills/alpha").is_symlink()
    assert (world.agents / "alpha").is_symlink()
    assert installer.unlink("@local/pair", ["cline"]) == (), "cline looks in the shared folder, which stays"
    assert installer.verify() == ()


def test_what_somebody_else_put_there_stays(world: World, installer: prowess.Installer) -> None:
    taken = world.project / ".claude/skills/beta"
    taken.mkdir(parents=True)
    with pytest.raises(prowess.NameTakenError):
        installer.link("@local/pair", ["claude-code"])
    assert not (world.project / ".claude/skills/alpha").exists(), "all or nothing"
    assert taken.is_dir()
    assert installer.verify() == ()


def test_what_is_not_installed_or_in_no_lock_file_cannot_be_linked(world: World, installer: prowess.Installer) -> None:
    with pytest.raises(prowess.NotInstalledError):
        installer.link("@local/nope", ["claude-code"])
    world.lock.write_text("version = 1\n", encoding="utf-8")
    with pytest.raises(prowess.InstallError) as caught:
        installer.link("@local/pair", ["claude-code"])
    assert caught.value.code == "not-in-lock"
    with pytest.raises(prowess.SourceError):
        installer.link("@local/pair", "claude-code")


def test_after_a_sync_there_is_no_difference(world: World, installer: prowess.Installer) -> None:
    assert installer.difference() == ()
    (world.skills / "local/pair/alpha/SKILL.md").write_text("changed", encoding="utf-8")
    (world.project / "prowess.toml").write_text(f'skills = ["{world.folder("notes")}"]\n', encoding="utf-8")
    rows = installer.difference()
    assert any(row.startswith("install ") for row in rows)
    assert any(row.startswith("restore: ") for row in rows)
    installer.sync()
    assert installer.difference() == ()


def test_a_link_that_somebody_turned_to_a_place_with_a_longer_name_is_left(world: World) -> None:
    installer = prowess.Installer()
    for name in ("tool", "tool-box"):
        installer.install_local(world.folder(name), project=True)
    link = world.agents / "tool"
    link.unlink()
    link.symlink_to(world.skills / "local" / "tool-box")
    installer.remove("@local/tool")
    assert link.resolve() == (world.skills / "local" / "tool-box").resolve()
    assert not (world.skills / "local" / "tool").exists()

"""Installs that are copies: real files where agents look, pinned like links, whole in a clone without Prowess."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import skill_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.install.conftest import World

PLACES = (".agents/skills/pdf", ".claude/skills/pdf")


@pytest.fixture
def source(world: World) -> Path:
    """A folder with one skill of two files."""
    made = world.folder("pdf")
    (made / "scripts").mkdir()
    (made / "scripts" / "run.sh").write_text("#!/bin/sh\n", encoding="utf-8")
    (made / "scripts" / "run.sh").chmod(0o755)
    return made


def publish(source: Path, body: str) -> None:
    """Let the source have other instructions."""
    (source / "SKILL.md").write_text(skill_text("pdf", body), encoding="utf-8")


@pytest.fixture
def copied(source: Path, installer: prowess.Installer) -> prowess.Installer:
    """An installer that has put copies of it where two agents look."""
    installer.install_local(source, project=True, agents=["claude-code"], copy=True)
    return installer


def make_clone(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What git would commit of the project, on a machine where nothing else is; its only way to the source is gone."""
    clone = world.base / "elsewhere" / "project"
    shutil.copytree(world.project, clone, ignore=shutil.ignore_patterns(".prowess"))
    for sources in ("folders", "repositories"):
        shutil.rmtree(world.base / sources, ignore_errors=True)
    monkeypatch.setenv("HOME", str(world.base / "elsewhere"))
    monkeypatch.chdir(clone)
    return clone


def test_copies_are_real_files_and_nothing_lies_in_the_install_base(world: World, copied: prowess.Installer) -> None:
    for place in PLACES:
        folder = world.project / place
        assert not folder.is_symlink()
        assert (folder / "SKILL.md").read_text(encoding="utf-8") == skill_text("pdf")
        assert os.access(folder / "scripts" / "run.sh", os.X_OK)
    entry = read_lock(str(world.project))["local/pdf"]
    assert (entry.mode, entry.links, entry.copies) == ("copy", PLACES, PLACES)
    assert 'mode = "copy"' in world.lock.read_text(encoding="utf-8")
    assert not (world.skills / "local").exists()
    assert [(one.full_name, one.path) for one in copied.list()] == [("local/pdf", world.project / PLACES[0])]
    assert copied.resolve("@local/pdf") == world.project / PLACES[0]
    assert copied.verify() == ()
    assert (copied.difference(), copied.difference(locked=True), copied.sync(), copied.sync(locked=True)) == ((),) * 4


def test_a_clone_without_any_cache_verifies_and_loads_offline(
    world: World, copied: prowess.Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copied.verify() == ()
    clone = make_clone(world, monkeypatch)
    there = prowess.Installer()
    assert there.verify() == ()
    assert there.sync(locked=True) == ()
    catalog = prowess.discover(cwd=clone, home=clone.parent, verify="lock")
    assert (catalog.names, catalog.issues) == (("pdf",), ())
    assert prowess.Catalog.from_sources([prowess.Source.installed("@local/pdf", verify="lock")]).names == ("pdf",)
    (clone / PLACES[0] / "SKILL.md").write_text(skill_text("pdf", "Send it to me.\n"), encoding="utf-8")
    assert [(issue.code, issue.path) for issue in there.verify()] == [
        ("changed-file", str(clone / PLACES[0] / "SKILL.md"))
    ]
    with pytest.raises(prowess.LockMismatchError):
        there.sync(locked=True)
    catalog = prowess.discover(cwd=clone, home=clone.parent, verify="lock")
    assert catalog["pdf"].location == str(clone / PLACES[1] / "SKILL.md")
    assert [issue.code for issue in catalog.failures] == ["changed-since-locked"]


def test_a_missing_copy_is_restored_from_another_without_asking_the_source(
    world: World, copied: prowess.Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert copied.verify() == ()
    clone = make_clone(world, monkeypatch)
    there = prowess.Installer()
    before = (clone / "prowess.lock").read_bytes()
    for locked in (True, False):
        shutil.rmtree(clone / PLACES[1])
        assert [issue.code for issue in there.verify()] == ["missing-skill"]
        assert there.difference(locked=locked) != ()
        assert [one.full_name for one in there.sync(locked=locked)] == ["local/pdf"]
        assert (there.verify(), (clone / "prowess.lock").read_bytes()) == ((), before)


def test_copies_that_are_all_gone_are_fetched_again(world: World, copied: prowess.Installer) -> None:
    for place in PLACES:
        shutil.rmtree(world.project / place)
    assert copied.list() == ()
    assert len(copied.verify()) == len(PLACES)
    copied.sync(locked=True)
    assert copied.verify() == ()


def test_a_link_in_place_of_a_copy_is_not_a_copy(world: World, copied: prowess.Installer) -> None:
    """It leads into the install base, where a clone has nothing."""
    shutil.rmtree(world.project / PLACES[1])
    (world.project / PLACES[1]).symlink_to("../../.prowess/skills/local/pdf")
    assert [issue.code for issue in copied.verify()] == ["broken-link"]
    copied.sync(locked=True)
    assert not (world.project / PLACES[1]).is_symlink()
    assert copied.verify() == ()


def test_an_update_renews_every_copy_and_keeps_what_was_edited(
    world: World, source: Path, copied: prowess.Installer
) -> None:
    publish(source, "Newer.\n")
    (update,) = copied.update("@local/pdf")
    assert (update.status, update.path) == ("updated", world.project / PLACES[0])
    assert "+Newer." in update.diff
    assert all("Newer." in (world.project / place / "SKILL.md").read_text(encoding="utf-8") for place in PLACES)
    assert copied.verify() == ()
    mine = world.project / PLACES[1] / "SKILL.md"
    mine.write_text("mine", encoding="utf-8")
    publish(source, "Newest.\n")
    with pytest.raises(prowess.LocalEditsError, match=r"\.claude/skills/pdf/SKILL\.md"):
        copied.update("@local/pdf")
    assert mine.read_text(encoding="utf-8") == "mine"
    assert copied.update()[0].status == "edited"
    assert copied.update("@local/pdf", force=True)[0].status == "updated"
    assert "Newest." in mine.read_text(encoding="utf-8")
    assert [file.read_text(encoding="utf-8") for file in (world.skills / ".backup").glob("*/SKILL.md")] == ["mine"]
    assert copied.verify() == ()


@pytest.mark.parametrize("act", [prowess.Installer.sync, lambda one: one.remove("@local/pdf")], ids=["sync", "remove"])
def test_an_edited_copy_goes_to_the_backups(world: World, copied: prowess.Installer, act: object) -> None:
    (world.project / PLACES[1] / "SKILL.md").write_text("mine", encoding="utf-8")
    act(copied)  # type: ignore[operator]
    assert [file.read_text(encoding="utf-8") for file in (world.skills / ".backup").glob("*/SKILL.md")] == ["mine"]
    assert [backup.skill for backup in copied.backups()] == ["pdf"]
    assert copied.verify() == ()


def test_removing_takes_every_copy_and_the_entry(world: World, copied: prowess.Installer) -> None:
    assert copied.remove("@local/pdf") == world.project / PLACES[0]
    assert (copied.issues, copied.list()) == ((), ())
    assert not any((world.project / place).exists() for place in PLACES)
    assert not world.lock.exists()
    assert not (world.skills / ".backup").exists()


def test_an_install_changes_between_links_and_copies(world: World, source: Path, copied: prowess.Installer) -> None:
    with pytest.raises(prowess.AlreadyInstalledError):
        copied.install_local(source, project=True)
    copied.install_local(source, project=True, agents=["claude-code"], replace=True)
    assert all((world.project / place).is_symlink() for place in PLACES)
    assert (read_lock(str(world.project))["local/pdf"].mode, copied.verify()) == ("", ())
    copied.install_local(source, project=True, agents=["claude-code"], replace=True, copy=True)
    assert not any((world.project / place).is_symlink() for place in PLACES)
    assert not (world.skills / "local" / "pdf").exists()
    assert copied.verify() == ()


def test_a_copied_install_is_linked_for_further_agents_as_copies(world: World, copied: prowess.Installer) -> None:
    assert copied.link("@local/pdf", ["goose"]) == (".goose/skills/pdf",)
    assert (world.project / ".goose/skills/pdf/scripts/run.sh").is_file()
    assert not (world.project / ".goose/skills/pdf").is_symlink()
    assert copied.verify() == ()
    assert copied.unlink("@local/pdf", ["goose"]) == (".goose/skills/pdf",)
    assert copied.verify() == ()


def test_only_the_skills_of_a_repository_are_copied(
    world: World, installer: prowess.Installer, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = world.repository("many", "skills/a", "skills/b")
    repo.write("notes/large.txt", "not of any skill\n")
    repo.commit()
    installer.install(repo.address, project=True, copy=True)
    entry = read_lock(str(world.project))["local/many"]
    assert sorted(entry.files) == ["skills/a/SKILL.md", "skills/b/SKILL.md"]
    assert installer.update()[0].status == "current"
    assert installer.outdated() == ()
    make_clone(world, monkeypatch)
    assert prowess.Installer().verify() == ()
    assert prowess.Catalog.from_sources([prowess.Source.installed("@local/many")]).names == ("a", "b")


def test_a_manifest_says_that_a_project_has_copies(world: World, source: Path) -> None:
    manifest = world.project / "prowess.toml"
    manifest.write_text(f'mode = "copy"\nskills = ["{source}"]\n', encoding="utf-8")
    installer = prowess.Installer()
    installer.sync()
    assert read_lock(str(world.project))["local/pdf"].mode == "copy"
    assert (installer.verify(), installer.sync(), installer.sync(locked=True)) == ((), (), ())
    manifest.write_text(f'skills = ["{source}"]\n', encoding="utf-8")
    with pytest.raises(prowess.LockMismatchError):
        installer.sync(locked=True)
    installer.sync()
    assert (world.project / PLACES[0]).is_symlink()
    manifest.write_text(f'skills = [{{ source = "{source}", mode = "copy" }}]\n', encoding="utf-8")
    installer.sync()
    assert not (world.project / PLACES[0]).is_symlink()
    assert (installer.verify(), installer.sync(), installer.difference()) == ((), (), ())
    manifest.write_text('mode = "clone"\n', encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="copy") as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"


def test_a_lock_file_with_a_mode_that_there_is_not_is_refused(world: World, copied: prowess.Installer) -> None:
    text = world.lock.read_text(encoding="utf-8")
    world.lock.write_text(text.replace('mode = "copy"', 'mode = "hope"'), encoding="utf-8")
    with pytest.raises(prowess.InstallError, match="hope") as caught:
        copied.verify()
    assert caught.value.code == "bad-lock"


def test_what_lies_in_the_install_base_of_copies_is_not_believed(world: World, copied: prowess.Installer) -> None:
    """A clone may bring a tree there, which would be found before the copies."""
    stray = world.skills / "local" / "pdf"
    stray.mkdir(parents=True)
    (stray / "SKILL.md").write_text(skill_text("pdf", "Send it to me.\n"), encoding="utf-8")
    assert {issue.code for issue in copied.verify()} >= {"changed-file"}
    catalog = prowess.discover(cwd=world.project, home=world.home, verify="lock")
    assert catalog["pdf"].location == str(world.project / PLACES[0] / "SKILL.md")


def test_a_copy_that_another_install_takes_over_is_kept_only_where_it_was_edited(
    world: World, copied: prowess.Installer
) -> None:
    other = world.folder("pdf-tools")
    (other / "SKILL.md").write_text(skill_text("pdf", "Otherwise.\n"), encoding="utf-8")
    (world.project / PLACES[1] / "notes.md").write_text("mine", encoding="utf-8")
    copied.install_local(other, project=True, agents=["claude-code"], replace=True)
    (backup,) = copied.backups()
    assert ((backup.path / "notes.md").is_file(), backup.why) == (True, "somebody had changed it by hand")
    assert copied.verify() == ()


def test_copies_that_lie_there_byte_for_byte_are_taken_for_what_they_are_without_a_lock_file(
    world: World, source: Path, copied: prowess.Installer
) -> None:
    text = f'skills = [{{ source = "{source}", agents = ["claude-code"], mode = "copy" }}]\n'
    (world.project / "prowess.toml").write_text(text, encoding="utf-8")
    world.lock.unlink()
    copied.sync()
    assert (copied.verify(), copied.backups(), copied.sync(locked=True)) == ((), (), ())
    world.lock.unlink()
    (world.project / PLACES[1] / "notes.md").write_text("mine", encoding="utf-8")
    with pytest.raises(prowess.NameTakenError, match="is not what Prowess put there"):
        copied.sync()

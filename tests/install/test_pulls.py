"""A team's ordinary days: what a pull, a switch or a cache of CI leaves here, and what sync makes of it."""

from __future__ import annotations

import errno
import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.files import syscalls
from prowess.installed.placed import RECORD_FILE, digest_folder
from prowess.installed.verifier import LockVerifier
from prowess.mcp.served_skills import SkillLoader
from tests.install.teams import Team

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def team(tmp_path: Path) -> Team:
    """Ada installed two skills, and Ben has synced them."""
    made = Team(tmp_path, "pdf", "evil")
    made.install(made.ada, "pdf", "evil")
    made.ben.pull()
    with made.ben.working() as installer:
        installer.sync(locked=True)
    return made


def update(team: Team, version: int = 2) -> None:
    """Ada updates a skill, and Ben pulls."""
    team.release("pdf", version)
    with team.ada.working() as installer:
        installer.update("@local/pdf")
    team.ada.publish()
    team.ben.pull()


def remove(team: Team) -> None:
    """Ada removes a skill, and Ben pulls."""
    with team.ada.working() as installer:
        installer.remove("@local/evil")
    team.ada.publish()
    team.ben.pull()


# -- an update ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locked", [True, False])
def test_a_pulled_update_is_synced_without_a_backup(team: Team, locked: bool) -> None:
    update(team)
    with team.ben.working() as installer:
        assert [issue.code for issue in installer.verify()] == ["not-synced"]
        assert [one.full_name for one in installer.sync(locked=locked)] == ["local/pdf"]
        assert installer.verify() == ()
    assert "Version 2" in team.ben.installed_file("pdf").read_text(encoding="utf-8")
    assert team.ben.backups() == []


def test_a_pulled_update_is_planned_as_a_replacement(team: Team) -> None:
    update(team)
    with team.ben.working() as installer:
        assert installer.difference(locked=True) == (
            "restore local/pdf as the lock file records it: another version is here",
        )
        (row,) = installer.difference()
        assert row.startswith("replace ")
        assert "backup" not in row


def test_an_edit_before_a_pull_is_refused_by_a_locked_sync_and_kept_by_a_plain_one(team: Team) -> None:
    team.ben.installed_file("pdf").write_text("mine", encoding="utf-8")
    update(team)
    with team.ben.working() as installer:
        with pytest.raises(prowess.LockMismatchError):
            installer.sync(locked=True)
        assert team.ben.installed_file("pdf").read_text(encoding="utf-8") == "mine"
        installer.sync()
        assert installer.verify() == ()
    (backup,) = team.ben.backups()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "mine"


def test_ten_switches_between_two_branches_leave_no_backup(team: Team) -> None:
    team.ben.git("switch", "--quiet", "--create", "old")
    team.ben.git("switch", "--quiet", "main")
    update(team)
    for branch in ("old", "main") * 5:
        team.ben.git("switch", "--quiet", branch)
        with team.ben.working() as installer:
            installer.sync(locked=True)
            assert installer.verify() == ()
    assert team.ben.backups() == []


def test_an_old_checkout_that_cannot_be_fetched_keeps_what_is_here(team: Team) -> None:
    old = team.ben.git("rev-parse", "HEAD")
    update(team)
    with team.ben.working() as installer:
        installer.sync(locked=True)
        team.ben.git("checkout", "--quiet", old)
        team.source.path.rename(team.base / "offline")
        with pytest.raises(prowess.GitError):
            installer.sync(locked=True)
        assert "Version 2" in team.ben.installed_file("pdf").read_text(encoding="utf-8")
        (team.base / "offline").rename(team.source.path)
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert "Version 1" in team.ben.installed_file("pdf").read_text(encoding="utf-8")
    assert team.ben.backups() == []


def test_a_cache_that_ci_restored_is_brought_up_to_date(team: Team, tmp_path: Path) -> None:
    shutil.copytree(team.ben.base.parent, tmp_path / "cache", symlinks=True)
    update(team)
    remove(team)
    shutil.rmtree(team.ben.base.parent)
    shutil.copytree(tmp_path / "cache", team.ben.base.parent, symlinks=True)
    with team.ben.working() as installer:
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert team.ben.offered() == ("pdf",)
    assert team.ben.backups() == []


def test_a_cache_without_the_record_is_known_after_one_sync(team: Team) -> None:
    (team.ben.base / RECORD_FILE).unlink()
    with team.ben.working() as installer:
        installer.sync(locked=True)
    update(team)
    with team.ben.working() as installer:
        installer.sync(locked=True)
    assert team.ben.backups() == []


def test_an_update_of_what_was_not_synced_is_not_a_local_edit(team: Team) -> None:
    update(team)
    team.release("pdf", 3)
    with team.ben.working() as installer:
        assert [one.status for one in installer.update("@local/pdf", dry_run=True)] == ["available"]
        assert [one.status for one in installer.update("@local/pdf")] == ["updated"]
        assert installer.verify() == ()
    assert team.ben.backups() == []


def test_an_update_to_the_locked_version_brings_the_disk_up_to_date(team: Team) -> None:
    update(team)
    with team.ben.working() as installer:
        assert [one.status for one in installer.update("@local/pdf")] == ["updated"]
        assert installer.verify() == ()


# -- an install of several skills --------------------------------------------------------------------------------------


@pytest.fixture
def whole(tmp_path: Path) -> Team:
    """Ada installed a whole source of four skills, and Ben has synced it."""
    made = Team(tmp_path, "csv", "evil", "pdf", "png")
    with made.ada.working() as installer:
        installer.install(made.source.address, project=True)
    made.ada.publish()
    made.ben.pull()
    with made.ben.working() as installer:
        installer.sync(locked=True)
    return made


def file_of(team: Team, skill: str) -> Path:
    """The file of a skill in Ben's install of the whole source."""
    return team.ben.base / "local" / "source" / "skills" / skill / "SKILL.md"


def edit_one_of_several(team: Team) -> None:
    """Ben edits one skill; Ada's update changes it and another, adds one and removes one; Ben pulls."""
    file_of(team, "pdf").write_text("---\nname: pdf\ndescription: d\n---\nmine\n", encoding="utf-8")
    shutil.rmtree(team.source.path / "skills" / "evil")
    team.source.skill("skills/new", body="New.\n")
    team.source.skill("skills/csv", body="Version 2 of csv.\n")
    team.release("pdf", 2)
    with team.ada.working() as installer:
        installer.update()
    team.ada.publish()
    team.ben.pull()


def test_an_edit_of_one_skill_of_an_install_leaves_its_siblings_pristine(whole: Team) -> None:
    edit_one_of_several(whole)
    with whole.ben.working() as installer:
        found = {(issue.code, issue.message) for issue in installer.verify() if not issue.code.endswith("link")}
        assert found == {
            ("changed-file", "skills/pdf/SKILL.md is not what the lock file says"),
            ("not-synced", "skills/csv is another version than the lock file has"),
            ("not-synced", "skills/evil is another version than the lock file has"),
            ("not-synced", "local/source is another version than the lock file has"),
        }
        with pytest.raises(prowess.LockMismatchError) as caught:
            installer.sync(locked=True)
        assert caught.value.message == "local/source is not what the lock file says: skills/pdf/SKILL.md (changed)"
        skills = [*prowess.discover(cwd=whole.ben.project, home=whole.ben.home).skills]
        _, issues = LockVerifier((installer.project,), prowess.Limits()).verify_skills(skills)
    assert [issue.code for issue in issues] == ["not-synced", "changed-since-locked"]  # csv and pdf


def test_a_sync_keeps_only_the_edited_skill_of_an_install_and_names_it(whole: Team) -> None:
    edit_one_of_several(whole)
    with whole.ben.working() as installer:
        rows = [row for row in installer.difference() if row.endswith("a backup is kept")]
        assert len(rows) == 1
        assert "skills/pdf" in rows[0]
        installer.sync()
        (issue,) = [issue for issue in installer.issues if issue.code == "backed-up"]
        assert issue.message.startswith("local/source/skills/pdf is kept at ")
        assert issue.message.endswith("somebody had changed it by hand")
        assert installer.verify() == ()
    (backup,) = whole.ben.backups()
    assert [path.name for path in backup.iterdir()] == ["SKILL.md"]
    assert "mine" in (backup / "SKILL.md").read_text(encoding="utf-8")
    assert "Version 2" in file_of(whole, "csv").read_text(encoding="utf-8")
    assert whole.ben.offered() == ("csv", "new", "pdf", "png")


def test_a_skill_that_left_an_install_is_kept_if_it_was_edited(whole: Team) -> None:
    file_of(whole, "evil").write_text("mine", encoding="utf-8")
    shutil.rmtree(whole.source.path / "skills" / "evil")
    whole.release("pdf", 2)
    with whole.ada.working() as installer:
        installer.update()
    whole.ada.publish()
    whole.ben.pull()
    with whole.ben.working() as installer:
        installer.sync()
        assert installer.verify() == ()
    (backup,) = whole.ben.backups()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "mine"
    assert not file_of(whole, "evil").exists()


def test_a_forged_name_of_a_skill_in_the_record_leads_nowhere(whole: Team) -> None:
    """The record names folders outside of the install, and one inside a skill."""
    mine = whole.ben.home / "mine"
    mine.mkdir()
    (mine / "SKILL.md").write_text("mine", encoding="utf-8")
    record = whole.ben.base / RECORD_FILE
    data = json.loads(record.read_text(encoding="utf-8"))
    digest = digest_folder(str(mine), prowess.Limits())
    outside = os.path.relpath(mine, whole.ben.base / "local" / "source")
    data["trees"]["local/source"] |= {outside: digest, str(mine): digest, "skills": digest, "skills/pdf/..": digest}
    record.write_text(json.dumps(data), encoding="utf-8")
    edit_one_of_several(whole)
    with whole.ben.working() as installer:
        installer.sync()
        assert installer.verify() == ()
    assert (mine / "SKILL.md").read_text(encoding="utf-8") == "mine"
    (backup,) = whole.ben.backups()
    assert "mine" in next(backup.rglob("pdf/SKILL.md")).read_text(encoding="utf-8")


# -- a removal ---------------------------------------------------------------------------------------------------------


def test_a_pulled_removal_is_not_offered_before_the_sync(team: Team) -> None:
    remove(team)
    assert team.ben.installed_file("evil").exists()
    catalog = prowess.discover(cwd=team.ben.project, home=team.ben.home)
    assert catalog.names == ("pdf",)
    (issue,) = [issue for issue in catalog.issues if issue.code == "not-in-lock"]
    assert (issue.field, issue.severity) == ("local/evil", "warning")
    assert "adopt" in issue.hint
    assert "--remove" in issue.hint


@pytest.mark.parametrize("locked", [True, False])
def test_a_pulled_removal_is_removed_without_a_question_or_a_backup(team: Team, locked: bool) -> None:
    remove(team)
    with team.ben.working() as installer:
        assert installer.difference(locked=locked) == (
            "remove local/evil, which the lock file does not record any more",
        )
        installer.sync(locked=locked)
        assert [issue.code for issue in installer.issues] == ["removed-by-sync"]
        assert installer.verify() == ()
    assert not team.ben.installed_file("evil").exists()
    assert team.ben.backups() == []


def test_links_that_git_ignores_go_with_the_removal(team: Team) -> None:
    link = team.ben.project / ".claude" / "skills" / "evil"
    with team.ben.working() as installer:
        installer.link("@local/evil", ["claude-code"])
        team.ben.git("checkout", "--quiet", "prowess.lock")
        assert link.is_symlink()
    remove(team)
    with team.ben.working() as installer:
        installer.sync(locked=True)
    assert not os.path.lexists(link)


def test_a_removal_of_an_edited_skill_keeps_the_edit(team: Team) -> None:
    team.ben.installed_file("evil").write_text("---\nname: evil\ndescription: d\n---\nmine\n", encoding="utf-8")
    remove(team)
    with team.ben.working() as installer:
        with pytest.raises(prowess.LockMismatchError):
            installer.sync(locked=True)
        assert "evil" not in team.ben.offered()
        installer.sync(remove=True)
    (backup,) = team.ben.backups()
    assert "mine" in (backup / "SKILL.md").read_text(encoding="utf-8")


def test_a_removal_by_name_keeps_an_edit_that_the_lock_file_knows_no_more(team: Team) -> None:
    team.ben.installed_file("evil").write_text("mine", encoding="utf-8")
    remove(team)
    with team.ben.working() as installer:
        installer.remove("@local/evil")
    (backup,) = team.ben.backups()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "mine"


def test_a_removal_by_name_of_what_is_pristine_keeps_nothing(team: Team) -> None:
    remove(team)
    with team.ben.working() as installer:
        installer.remove("@local/evil")
    assert team.ben.backups() == []


def test_an_unreadable_lock_file_leaves_the_skills_offered_with_an_issue(team: Team) -> None:
    (team.ben.project / "prowess.lock").write_text("<<<<<<< ours\n", encoding="utf-8")
    catalog = prowess.discover(cwd=team.ben.project, home=team.ben.home)
    assert catalog.names == ("evil", "pdf")
    assert [issue.code for issue in catalog.issues] == ["lock-conflict"]


def test_an_unrecorded_install_can_be_adopted(team: Team) -> None:
    remove(team)
    with team.ben.working() as installer:
        assert [one.full_name for one in installer.adopt("local/evil")] == ["local/evil"]
        assert installer.verify() == ()
    assert team.ben.offered() == ("evil", "pdf")
    assert team.ben.backups() == []


def test_a_removed_skill_can_be_installed_again_without_a_sync(team: Team) -> None:
    remove(team)
    with team.ben.working() as installer:
        installer.install(team.source.address, project=True, select="evil")
        assert installer.verify() == ()
    assert team.ben.backups() == []


def test_a_skill_that_left_its_source_is_not_offered_after_the_pull(tmp_path: Path) -> None:
    """One install holds all skills of the source, and stays recorded."""
    team = Team(tmp_path, "pdf", "evil")
    with team.ada.working() as installer:
        installer.install(team.source.address, project=True)
    team.ada.publish()
    team.ben.pull()
    with team.ben.working() as installer:
        installer.sync(locked=True)
    shutil.rmtree(team.source.path / "skills" / "evil")
    team.source.commit("evil is gone")
    with team.ada.working() as installer:
        installer.update()
    team.ada.publish()
    team.ben.pull()
    assert team.ben.offered() == ("pdf",)
    with team.ben.working() as installer:
        installer.sync(locked=True)
    assert team.ben.backups() == []


def test_a_server_of_the_standard_places_does_not_serve_a_removed_skill(team: Team) -> None:
    remove(team)
    with team.ben.working():
        loader = SkillLoader((), prowess.Limits())
        assert [skill.name for skill in loader.load().loaded] == ["pdf"]
        assert str(team.ben.project / "prowess.lock") in loader.watched_folders(None)


@pytest.mark.parametrize("notice", ["stat", "auto"])
def test_a_running_program_drops_a_removed_skill_with_the_pull(team: Team, notice: str) -> None:
    """Only the lock file changes: the links are not committed here."""
    options = {"cwd": team.ben.project, "home": team.ben.home}
    lock = team.ben.project / "prowess.lock"
    with prowess.watch(every=0.05, notice=notice, **options) as catalogs:  # type: ignore[arg-type]
        assert next(catalogs).names == ("evil", "pdf")
        text = lock.read_text(encoding="utf-8")
        entry, rest = text.index("[[skill]]"), text.rindex("[[skill]]")
        lock.write_text(text[:entry] + text[rest:], encoding="utf-8")
        assert next(catalogs).names == ("pdf",)


# -- copies ------------------------------------------------------------------------------------------------------------


def without_links(name: str, moment: str, path: str) -> None:
    """A system that cannot make links."""
    if name == "symlink" and moment == "before":
        raise OSError(errno.EPERM, "no links here", path)


def test_a_copy_in_place_of_a_link_goes_only_if_nobody_changed_it(tmp_path: Path) -> None:
    team = Team(tmp_path, "pdf", "evil")
    (team.ada.project / ".gitignore").write_text(".prowess/\n.agents/\n", encoding="utf-8")
    syscalls.set_watcher(without_links)
    try:
        team.install(team.ada, "pdf", "evil")
        team.ben.pull()
        with team.ben.working() as installer:
            installer.sync(locked=True)
    finally:
        syscalls.set_watcher(None)
    copies = {name: team.ben.project / ".agents" / "skills" / name / "SKILL.md" for name in ("pdf", "evil")}
    assert not copies["pdf"].parent.is_symlink()
    copies["pdf"].write_text("mine", encoding="utf-8")
    with team.ada.working() as installer:
        installer.remove(["@local/pdf", "@local/evil"])
    team.ada.publish()
    team.ben.pull()
    with team.ben.working() as installer:
        installer.sync(locked=True)
    assert not copies["evil"].exists()
    assert copies["pdf"].read_text(encoding="utf-8") == "mine"


def test_copies_that_are_committed_belong_to_git(team: Team) -> None:
    """A branch on which the same skill was committed by hand, without a lock file."""
    own = team.ben.project / ".agents" / "skills" / "own" / "SKILL.md"
    folder = team.base / "own"
    folder.mkdir()
    (folder / "SKILL.md").write_text("---\nname: own\ndescription: d\n---\nOwn.\n", encoding="utf-8")
    shutil.copytree(folder, own.parent)
    team.ben.publish("by hand")
    team.ben.git("branch", "by-hand")
    with team.ben.working() as installer:
        installer.install_local(folder, project=True, copy=True, replace=True)
    team.ben.publish("with Prowess")
    team.ben.git("switch", "--quiet", "by-hand")
    with team.ben.working() as installer:
        installer.sync(locked=True)
    assert own.exists()
    assert team.ben.git("status", "--porcelain") == ""


# -- accidents ---------------------------------------------------------------------------------------------------------


def test_a_lock_file_that_was_deleted_is_reported_before_anything_goes(team: Team) -> None:
    (team.ben.project / "prowess.lock").unlink()
    with team.ben.working() as installer:
        assert "lock-missing" in {issue.code for issue in installer.verify()}
        assert installer.difference()
        assert [issue.code for issue in installer.issues] == ["lock-missing"]
        installer.sync(locked=True)
        assert installer.issues[0].code == "lock-missing"
        team.ben.git("checkout", "--quiet", "prowess.lock")
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert team.ben.offered() == ("evil", "pdf")


def test_a_locked_sync_that_refuses_has_removed_nothing(team: Team) -> None:
    """One skill was removed by the other, and a folder that somebody made is in the way."""
    own = team.ben.base / "me" / "own"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("---\nname: own\ndescription: d\n---\nx\n", encoding="utf-8")
    remove(team)
    with team.ben.working() as installer, pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert caught.value.code == "not-in-lock"
    assert team.ben.installed_file("evil").exists()


def test_an_adopted_skill_without_a_source_is_kept_when_it_is_removed(team: Team) -> None:
    own = team.ben.project / ".agents" / "skills" / "own"
    own.mkdir()
    (own / "SKILL.md").write_text("---\nname: own\ndescription: d\n---\nThe only one.\n", encoding="utf-8")
    with team.ben.working() as installer:
        installer.adopt("own")
        before = {backup.path for backup in installer.backups()}
        installer.remove("@local/own")
        (backup,) = [backup for backup in installer.backups() if backup.path not in before]
    assert backup.why == "no source could give it back"


def test_an_adoption_of_nothing_makes_no_folder(team: Team, tmp_path: Path) -> None:
    with team.ben.working():
        os.chdir(tmp_path)
        prowess.Installer(project_dir=tmp_path / "empty" / ".prowess" / "skills").adopt()
    assert not (tmp_path / "empty").exists()


# -- the record --------------------------------------------------------------------------------------------------------


def test_the_record_holds_names_and_digests_and_no_paths(team: Team) -> None:
    record = json.loads((team.ben.base / RECORD_FILE).read_text(encoding="utf-8"))
    assert record.keys() == {"version", "trees"}
    assert record["trees"].keys() == {"local/pdf", "local/evil"}
    assert all(len(digest) == 64 for parts in record["trees"].values() for digest in parts.values())


@pytest.mark.parametrize(
    "forge",
    [
        lambda record: record.write_text("{", encoding="utf-8"),
        lambda record: record.write_text('{"version": 1, "trees": ["a"]}', encoding="utf-8"),
        lambda record: record.write_text('{"version": 1, "trees": {"../../x": "0", "local/pdf": 7}}', encoding="utf-8"),
        lambda record: record.write_text('{"version": 1, "trees": {"local/pdf": {"": 7}}}', encoding="utf-8"),
        lambda record: record.write_text('{"version": 1, "trees": {"local/\\ud800": {"": "0"}}}', encoding="utf-8"),
        lambda record: (record.unlink(), record.symlink_to("/etc/passwd")),
        lambda record: (record.unlink(), record.mkdir()),
    ],
    ids=["broken", "a list", "odd names", "a number", "half a character", "a link", "a folder"],
)
def test_a_malformed_record_costs_a_backup_and_nothing_more(team: Team, forge: Callable[[Path], object]) -> None:
    forge(team.ben.base / RECORD_FILE)
    update(team)
    with team.ben.working() as installer:
        installer.sync()
        assert installer.verify() == ()
    assert len(team.ben.backups()) == 1


def test_a_forged_record_decides_nothing_about_what_is_right(team: Team) -> None:
    """It claims that an edited skill is as Prowess put it there: the locked version comes back, without a backup."""
    file = team.ben.installed_file("pdf")
    file.write_text("---\nname: pdf\ndescription: d\n---\nforged\n", encoding="utf-8")
    record = team.ben.base / RECORD_FILE
    data = json.loads(record.read_text(encoding="utf-8"))
    data["trees"]["local/pdf"] = {"": digest_folder(str(file.parent), prowess.Limits())}
    record.write_text(json.dumps(data), encoding="utf-8")
    with team.ben.working() as installer:
        assert [issue.code for issue in installer.verify()] == ["not-synced"]
        installer.sync(locked=True)
        assert installer.verify() == ()
    assert "Version 1" in file.read_text(encoding="utf-8")
    assert team.ben.backups() == []


def test_an_edit_in_the_moment_before_the_deletion_is_kept(team: Team) -> None:
    """The folder was found pristine; somebody saves a file just before it is renamed away."""
    update(team)
    file = team.ben.installed_file("pdf")

    saved: list[str] = []

    def save_before_the_first_move(_name: str, _moment: str, path: str) -> None:
        if not saved and path.endswith(".prowess.journal"):
            saved.append(path)
            file.write_text("saved at the last moment", encoding="utf-8")

    syscalls.set_watcher(save_before_the_first_move)
    try:
        with team.ben.working() as installer:
            installer.sync(locked=True)
    finally:
        syscalls.set_watcher(None)
    assert saved
    (backup,) = team.ben.backups()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "saved at the last moment"

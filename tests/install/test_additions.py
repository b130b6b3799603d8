"""What a new version adds is said before it comes: skills, scripts, commands, tools, and fields that ask for power."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli_processes import run_command
from tests.repositories import ENV

if TYPE_CHECKING:
    from tests.install.conftest import World
    from tests.repositories import Repository


@pytest.fixture
def repo(world: World) -> Repository:
    """A repository with two skills, of which one has a script, a command and tools."""
    repo = world.repository("kit", "skills/pdf", "skills/csv")
    repo.skill("skills/pdf", body="First !`git status`.\n", fields="allowed-tools: Read Bash(git:*)\n")
    repo.write("skills/pdf/scripts/fill.py", "pass\n")
    repo.commit(tag="v2")
    return repo


def release(repo: Repository) -> str:
    """Commit a version that adds one of everything."""
    body = "First !`git status`, then !`git push`.\n"
    repo.skill("skills/pdf", body=body, fields="allowed-tools: Read Bash(git log:*) Bash\nhooks: x\n")
    repo.write("skills/pdf/scripts/fill.py", "print()\n")
    repo.write("skills/pdf/scripts/sign.py", "pass\n")
    repo.skill("skills/xlsx")
    repo.write("skills/xlsx/scripts/read.py", "pass\n")
    return repo.commit(tag="v3")


EXPECTED = [
    ("xlsx", "skill", "xlsx"),
    ("pdf", "script", "scripts/sign.py"),
    ("xlsx", "script", "scripts/read.py"),
    ("pdf", "command", "git push"),
    ("pdf", "allowed-tool", "Bash"),
    ("pdf", "power", "hooks"),
]


def list_rows(update: prowess.Update | None) -> list[tuple[str, str, str]]:
    assert update is not None
    return [(one.skill, one.kind, one.value) for one in update.additions]


def test_an_update_names_what_the_new_version_adds(repo: Repository, installer: prowess.Installer) -> None:
    installer.install(repo.address, project=True)
    release(repo)
    (dry,) = installer.update(dry_run=True)
    (done,) = installer.update()
    assert list_rows(dry) == list_rows(done) == EXPECTED
    assert done.additions[1] == prowess.UpdateAddition("pdf", "script", "scripts/sign.py")
    assert done.additions[1].title == "new script"


def test_a_version_that_takes_something_away_adds_nothing(repo: Repository, installer: prowess.Installer) -> None:
    installer.install(f"{repo.address}@pdf", project=True)
    repo.skill("skills/pdf", body="Less.\n", fields="allowed-tools: Bash(git log:*)\n")
    (repo.path / "skills/pdf/scripts/fill.py").unlink()
    repo.commit()
    (update,) = installer.update()
    assert (update.status, update.additions) == ("updated", ())


def test_a_skill_that_moved_to_another_folder_adds_only_what_is_new(
    repo: Repository, installer: prowess.Installer
) -> None:
    installer.install(repo.address, project=True)
    (repo.path / "skills/pdf").rename(repo.path / "skills/paper")
    repo.write("skills/paper/scripts/sign.py", "pass\n")
    repo.commit()
    (update,) = installer.update()
    assert list_rows(update) == [("pdf", "script", "scripts/sign.py")]


def test_an_update_over_an_edit_compares_with_what_is_here(repo: Repository, installer: prowess.Installer) -> None:
    path = installer.install(repo.address, project=True)
    (path / "skills/pdf/scripts/sign.py").write_text("mine\n", encoding="utf-8")
    release(repo)
    (update,) = installer.update(force=True)
    assert list_rows(update) == [row for row in EXPECTED if row[2] != "scripts/sign.py"]


def test_outdated_says_it_when_asked_and_fetches_nothing_otherwise(
    repo: Repository, installer: prowess.Installer
) -> None:
    installer.install(repo.address, project=True)
    new = release(repo)
    (plain,) = installer.outdated()
    (verbose,) = installer.outdated(updates=True)
    assert plain.update is None
    assert verbose.update is not None
    assert (list_rows(verbose.update), verbose.update.after) == (EXPECTED, new)
    assert "+++ b/skills/xlsx/SKILL.md" in verbose.update.diff
    assert installer.verify() == ()


def test_outdated_shows_the_next_tag_where_the_version_asked_for_is_current(
    repo: Repository, installer: prowess.Installer
) -> None:
    installer.install(f"{repo.address}#v2", project=True)
    new = release(repo)
    (outdated,) = installer.outdated(updates=True)
    assert (outdated.newer, outdated.newest) == ("v3", outdated.current)
    assert outdated.update is not None
    assert (outdated.update.after, list_rows(outdated.update)) == (new, EXPECTED)


@pytest.mark.parametrize("state", ["missing", "edited", "as the lock file says"])
def test_outdated_compares_with_the_lock_file_whatever_is_on_the_disk(
    repo: Repository, installer: prowess.Installer, world: World, state: str
) -> None:
    path = installer.install(repo.address, project=True)
    release(repo)
    if state == "missing":
        shutil.rmtree(world.skills)
    elif state == "edited":
        (path / "skills/pdf/SKILL.md").write_text("mine", encoding="utf-8")
    (outdated,) = installer.outdated(updates=True)
    assert list_rows(outdated.update) == EXPECTED
    assert outdated.update is not None
    assert "-First !`git status`.\n+First !`git status`, then !`git push`.\n" in outdated.update.diff


def test_where_nobody_has_the_old_files_their_names_still_count(world: World, installer: prowess.Installer) -> None:
    folder = world.folder("notes", "Do !`git status`.\n")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "a.py").touch()
    path = installer.install(str(folder), project=True)
    (folder / "scripts" / "b.py").touch()
    shutil.rmtree(path)
    (outdated,) = installer.outdated(updates=True)
    assert outdated.update is not None
    assert list_rows(outdated.update) == [("notes", "script", "scripts/b.py"), ("notes", "command", "git status")]
    assert (outdated.update.diff, bool(outdated.update.why)) == ("", True)


def test_the_commands_say_it_before_the_diff_and_as_data(repo: Repository, installer: prowess.Installer) -> None:
    installer.install(repo.address, project=True)
    release(repo)
    for words in (["update", "--dry-run"], ["outdated", "--verbose"]):
        shown = run_command(words, env=ENV).stdout.decode()
        assert "new skill: xlsx" in shown
        assert "new scripts: scripts/sign.py (pdf), scripts/read.py (xlsx)" in shown
        assert "new allowed tool: Bash (pdf)" in shown
        assert shown.index("new field: hooks (pdf)") < shown.index("--- a/skills/pdf/SKILL.md")
    rows = [{"skill": skill, "kind": kind, "value": value} for skill, kind, value in EXPECTED]
    update = json.loads(run_command(["update", "--dry-run", "--json"], env=ENV).stdout.decode())["updates"][0]
    outdated = json.loads(run_command(["outdated", "--verbose", "--json"], env=ENV).stdout.decode())["outdated"][0]
    assert update["additions"] == outdated["update"]["additions"] == rows
    assert "update" not in json.loads(run_command(["outdated", "--json"], env=ENV).stdout.decode())["outdated"][0]
    offered = run_command(["install", f"{repo.address}@pdf", "--list"], env=ENV).stdout.decode()
    assert "allowed tools: Read, Bash(git log:*), Bash" in offered

"""The lock file brought up to date while nothing is installed, as a bot does it in a clean checkout."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.cli_processes import run_command
from tests.repositories import ENV

if TYPE_CHECKING:
    from tests.install.conftest import World


def declare(world: World, *sources: str) -> None:
    rows = "".join(f'  "{source}",\n' for source in sources)
    text = f'agents = ["claude-code"]\nskills = [\n{rows}]\n'
    (world.project / "prowess.toml").write_text(text, encoding="utf-8")


def list_project(world: World) -> set[str]:
    """What is in the project beside git's folder and empty folders of Prowess."""
    paths = (path.relative_to(world.project) for path in world.project.rglob("*"))
    return {path.as_posix() for path in paths if path.parts[0] not in {".git", ".prowess"}}


def test_a_lock_records_exactly_what_a_sync_would(world: World, installer: prowess.Installer) -> None:
    declare(world, f"{world.repository('kit', 'skills/pdf', 'skills/csv').address}#v1", world.repository("one").address)
    changes = installer.lock()
    assert [(one.name, one.status) for one in changes] == [("local/kit", "added"), ("local/one", "added")]
    assert list_project(world) == {"prowess.toml", "prowess.lock"}
    assert not any(world.skills.rglob("SKILL.md"))
    locked = world.lock.read_bytes()
    world.lock.unlink()
    installer.sync()
    assert world.lock.read_bytes() == locked
    assert installer.lock() == ()
    installer.sync(locked=True)


def test_copies_are_locked_as_a_sync_would(world: World, installer: prowess.Installer) -> None:
    declare(world, world.repository("one").address)
    manifest = world.project / "prowess.toml"
    manifest.write_text(f'mode = "copy"\n{manifest.read_text(encoding="utf-8")}', encoding="utf-8")
    installer.lock()
    locked, attributes = world.lock.read_bytes(), (world.project / ".gitattributes").read_bytes()
    installer.sync(locked=True)
    assert installer.verify() == ()
    assert (world.lock.read_bytes(), (world.project / ".gitattributes").read_bytes()) == (locked, attributes)


def test_what_is_installed_neither_counts_nor_changes(world: World, installer: prowess.Installer) -> None:
    kit, one = world.repository("kit", "skills/pdf"), world.repository("one")
    declare(world, kit.address, one.address)
    installer.sync()
    file = world.skills / "local/kit/skills/pdf/SKILL.md"
    file.write_text("mine", encoding="utf-8")
    shutil.rmtree(world.skills / "local/one")
    kit.skill("skills/pdf", body="Two !`date`.\n")
    new = kit.commit()
    (update,) = installer.lock(update="@local/kit")
    assert (update.name, update.status, update.after) == ("local/kit", "updated", new)
    assert [(one.kind, one.value) for one in update.additions] == [("command", "date")]
    assert "-Do it.\n+Two !`date`.\n" in update.diff
    assert file.read_text(encoding="utf-8") == "mine"
    assert not (world.skills / "local/one").exists()
    # The next sync keeps the edit, as after a pulled update.
    with pytest.raises(prowess.LockMismatchError):
        installer.sync(locked=True)
    installer.sync()
    (backup,) = installer.backups()
    assert [path.read_text(encoding="utf-8") for path in backup.path.rglob("SKILL.md")] == ["mine"]
    assert installer.verify() == ()


def test_without_update_nothing_that_is_locked_moves(world: World, installer: prowess.Installer) -> None:
    one = world.repository("one")
    declare(world, one.address)
    installer.lock()
    locked = world.lock.read_bytes()
    one.skill("", body="Two.\n")
    one.commit()
    declare(world, one.address, world.repository("two").address)
    assert [(change.name, change.status) for change in installer.lock()] == [("local/two", "added")]
    assert locked.removesuffix(b"\n") in world.lock.read_bytes()
    assert [change.status for change in installer.lock(update=True)] == ["updated"]


def test_what_is_declared_no_more_leaves_the_lock_file_and_stays_until_the_next_sync(
    world: World, installer: prowess.Installer
) -> None:
    one, two = world.repository("one"), world.repository("two")
    declare(world, one.address, two.address)
    installer.sync()
    declare(world, one.address)
    assert [(change.name, change.status) for change in installer.lock()] == [("local/two", "removed")]
    assert (world.skills / "local/two/SKILL.md").exists()
    installer.sync(locked=True)
    assert not (world.skills / "local/two").exists()


def test_a_declaration_that_fails_stops_no_other_and_removes_nothing(
    world: World, installer: prowess.Installer
) -> None:
    one, two = world.repository("one"), world.repository("two")
    declare(world, one.address)
    installer.lock()
    declare(world, two.address, f"file://{world.base}/nowhere")
    with pytest.raises(prowess.GitError):
        installer.lock()
    assert sorted(read_lock(str(world.project))) == ["local/one", "local/two"]


def test_an_update_that_fails_is_a_status_and_stops_no_other(world: World, installer: prowess.Installer) -> None:
    one, two = world.repository("one"), world.repository("two")
    declare(world, one.address, two.address)
    installer.lock()
    shutil.rmtree(one.path)
    two.skill("", body="Two.\n")
    new = two.commit()
    assert [(change.name, change.status) for change in installer.lock(update=True)] == [
        ("local/one", "failed"),
        ("local/two", "updated"),
    ]
    assert read_lock(str(world.project))["local/two"].commit == new


def test_a_version_is_changed_in_the_manifest(world: World, installer: prowess.Installer) -> None:
    one = world.repository("one")
    declare(world, f"{one.address}#v1")
    installer.lock()
    one.skill("", body="Two.\n")
    new = one.commit(tag="v2")
    with pytest.raises(prowess.SkillError, match="manifest"):
        installer.lock(update="@local/one@v2")
    declare(world, f"{one.address}#v2")
    assert [(change.status, change.after) for change in installer.lock()] == [("updated", new)]


def test_a_dry_run_changes_nothing(world: World, installer: prowess.Installer) -> None:
    declare(world, world.repository("one").address)
    assert [change.status for change in installer.lock(dry_run=True)] == ["added"]
    assert list_project(world) == {"prowess.toml"}
    assert not (world.project / ".prowess").exists()


def test_a_bot_locks_in_a_clean_checkout_and_reads_what_came(world: World, installer: prowess.Installer) -> None:
    kit = world.repository("kit", "skills/pdf")
    declare(world, kit.address)
    installer.lock()
    kit.skill("skills/csv")
    kit.commit()
    assert run_command(["lock", "--update", "--dry-run"], env=ENV).returncode == 1
    ran = run_command(["lock", "--update", "--json"], env=ENV)
    answer = json.loads(ran.stdout)
    assert (ran.returncode, answer["changed"]) == (0, True)
    assert answer["updates"][0]["additions"] == [{"skill": "csv", "kind": "skill", "value": "csv"}]
    assert "new file" not in ran.stderr.decode()
    assert list_project(world) == {"prowess.toml", "prowess.lock"}
    shown = run_command(["lock"], env=ENV)
    assert (shown.returncode, shown.stdout) == (0, b"prowess.lock records what is declared.\n")
    assert run_command(["sync", "--locked"], env=ENV).returncode == 0
    assert "csv" in prowess.discover(cwd=world.project, home=world.home)


@pytest.mark.usefixtures("world")
def test_where_nothing_is_declared_it_names_the_project_instead_of_a_lock_file() -> None:
    ran = run_command(["lock", "--update"], env=ENV)
    assert (ran.returncode, ran.stdout) == (0, b"Nothing is declared.\n")
    assert b"no prowess.lock here: the project is" in ran.stderr


@pytest.mark.parametrize(
    "words", [("pdf",), ("--user",), ("--merge", "--update"), ("--merge", "pdf"), ("--merge", "--dry-run")], ids=str
)
def test_options_that_contradict_each_other_are_refused(world: World, words: tuple[str, ...]) -> None:
    declare(world)
    assert run_command(["lock", *words], env=ENV).returncode == 2
    assert not world.lock.exists()

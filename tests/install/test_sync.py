"""Manifest, lock file and disk: made equal, or said to differ."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import ENV, Repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.install.conftest import World


def declare(world: World, text: str, file: str = "prowess.toml") -> None:
    (world.project / file).write_text(text, encoding="utf-8")


def names(installer: prowess.Installer) -> list[str]:
    return [one.full_name for one in installer.list()]


@pytest.mark.parametrize("file", ["prowess.toml", "pyproject.toml"])
def test_what_the_manifest_declares_is_installed_and_locked(
    world: World, installer: prowess.Installer, file: str
) -> None:
    repo = world.repository("many", "skills/a", "skills/b")
    head = "[tool.prowess]\n" if file == "pyproject.toml" else ""
    entry = f'{{ source = "{repo.address}", ref = "v1", skills = ["b"], agents = ["goose"] }}'
    declare(world, f'{head}agents = ["claude-code"]\nskills = ["../../folders/notes", {entry}]\n', file)
    world.folder("notes")
    done = installer.sync()
    assert [one.full_name for one in done] == ["local/notes", "local/b"]
    locked = read_lock(str(world.project))
    assert locked["local/b"].ref == "v1"
    assert (world.project / ".claude" / "skills" / "notes").is_symlink()
    assert (world.project / ".goose" / "skills" / "b").is_symlink()
    assert not os.path.lexists(world.project / ".goose" / "skills" / "notes")
    assert installer.sync() == ()
    assert installer.sync(locked=True) == ()
    assert installer.verify() == ()


def test_a_fresh_checkout_gets_the_same_bytes(
    world: World, installer: prowess.Installer, listing: Callable[[Path], dict[str, object]]
) -> None:
    """A locked sync puts back the recorded bytes, or fails."""
    repo = world.repository("pdf")
    declare(world, f'skills = ["{repo.address}"]\n')
    installer.sync()
    before = listing(world.project)
    repo.skill("", body="Newer.\n")
    repo.commit()
    shutil.rmtree(world.skills)
    shutil.rmtree(world.project / ".agents")
    assert [one.full_name for one in installer.sync(locked=True)] == ["local/pdf"]
    assert listing(world.project) == before


def test_links_that_are_gone_come_back(world: World, installer: prowess.Installer) -> None:
    installer.install(world.repository("pdf").address, project=True)
    (world.agents / "pdf").unlink()
    assert [issue.code for issue in installer.verify()] == ["broken-link"]
    assert [one.full_name for one in installer.sync(locked=True)] == ["local/pdf"]
    assert installer.verify() == ()


def test_links_come_back_without_the_source(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    installer.install(repo.address, project=True)
    shutil.rmtree(repo.path)
    (world.agents / "pdf").unlink()
    assert [one.full_name for one in installer.sync(locked=True)] == ["local/pdf"]
    assert installer.verify() == ()


def test_a_version_that_is_declared_anew_takes_the_place_of_the_old(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    repo.skill("", body="Two.\n")
    repo.commit(tag="v2")
    declare(world, f'skills = ["{repo.address}#v1"]\n')
    installer.sync()
    declare(world, f'skills = ["{repo.address}#v2"]\n')
    with pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert caught.value.code == "lock-outdated"
    installer.sync()
    assert "Two." in (world.skills / "local" / "pdf" / "SKILL.md").read_text(encoding="utf-8")
    assert names(installer) == ["local/pdf"]
    assert installer.sync(locked=True) == ()


def codes(installer: prowess.Installer) -> list[tuple[str, str]]:
    return [(issue.code, issue.field) for issue in installer.issues]


def test_what_is_declared_no_more_is_named_and_goes_only_when_its_removal_is_asked_for(
    world: World, installer: prowess.Installer
) -> None:
    repo = world.repository("pdf")
    declare(world, f'skills = ["{repo.address}"]\n')
    installer.sync()
    installer.install(world.repository("charts").address, project=True, save=False)
    declare(world, "skills = []\n")
    with pytest.raises(prowess.LockMismatchError):
        installer.sync(locked=True)
    assert installer.difference() == ()
    assert codes(installer) == [("declared-no-more", "local/pdf")]
    for _ in range(2):
        assert installer.sync() == ()
        assert codes(installer) == [("declared-no-more", "local/pdf")]
        assert names(installer) == ["local/charts", "local/pdf"]
    assert [row.partition(" ")[0] for row in installer.difference(remove=True)] == ["remove"]
    assert installer.issues == ()
    installer.sync(remove=True)
    assert names(installer) == ["local/charts"]
    assert not os.path.lexists(world.agents / "pdf")
    assert (installer.issues, installer.backups()) == ((), ())
    assert installer.sync(locked=True) == ()


def test_a_locked_sync_cannot_be_asked_to_remove(installer: prowess.Installer) -> None:
    with pytest.raises(prowess.SkillError) as caught:
        installer.sync(locked=True, remove=True)
    assert caught.value.code == "bad-argument"


def test_what_was_installed_by_hand_may_be_declared_later(world: World, installer: prowess.Installer) -> None:
    repo = world.repository("pdf")
    installer.install(repo.address, project=True)
    declare(world, f'skills = ["{repo.address}"]\n')
    assert installer.sync() == ()
    assert read_lock(str(world.project))["local/pdf"].declared == repo.address
    assert installer.sync(locked=True) == ()


def test_what_someone_edited_is_an_error_when_locked_and_goes_to_the_backups_otherwise(
    world: World, installer: prowess.Installer
) -> None:
    path = installer.install(world.repository("pdf").address, project=True)
    (path / "SKILL.md").write_text("mine", encoding="utf-8")
    with pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert "SKILL.md (changed)" in caught.value.message
    assert (path / "SKILL.md").read_text(encoding="utf-8") == "mine"
    installer.sync()
    assert installer.verify() == ()
    (backup,) = (world.skills / ".backup").iterdir()
    assert (backup / "SKILL.md").read_text(encoding="utf-8") == "mine"


def test_what_is_in_no_lock_file_is_named_and_goes_to_the_backups_only_when_its_removal_is_asked_for(
    world: World, installer: prowess.Installer
) -> None:
    (world.skills / "acme" / "tool").mkdir(parents=True)
    (world.skills / "acme" / "tool" / "x").write_text("x", encoding="utf-8")
    with pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert "acme/tool is not in the lock file" in caught.value.message
    assert installer.sync() == ()
    assert codes(installer) == [("not-in-lock", "acme/tool")]
    assert (world.skills / "acme" / "tool" / "x").is_file()
    installer.sync(remove=True)
    assert names(installer) == []
    (backup,) = installer.backups()
    assert (backup.path / "x").read_text(encoding="utf-8") == "x"
    assert [(issue.code, issue.path) for issue in installer.issues] == [("backed-up", str(backup.path))]


def edit(path: Path) -> None:
    (path / "SKILL.md").write_text("mine", encoding="utf-8")


def sync(installer: prowess.Installer) -> None:
    edit(installer.resolve("@local/pdf"))
    installer.sync()


def remove(installer: prowess.Installer) -> None:
    edit(installer.resolve("@local/pdf"))
    installer.remove("@local/pdf")


def update(installer: prowess.Installer) -> None:
    edit(installer.resolve("@local/pdf"))
    installer.update("@local/pdf", force=True)


def update_all(installer: prowess.Installer) -> None:
    edit(installer.resolve("@local/pdf"))
    installer.update(force=True)


def replace(installer: prowess.Installer) -> None:
    path = installer.resolve("@local/pdf")
    edit(path)
    installer.install(str(path.parents[5] / "repositories" / "pdf"), project=True, replace=True)


def replace_foreign(installer: prowess.Installer) -> None:
    link = installer.resolve("@local/pdf").parents[3] / ".agents" / "skills" / "pdf"
    installer.remove("@local/pdf")
    link.mkdir(parents=True)
    edit(link)
    installer.install(str(link.parents[4] / "repositories" / "pdf"), project=True, replace=True)


def adopt(installer: prowess.Installer) -> None:
    link = installer.resolve("@local/pdf").parents[3] / ".agents" / "skills" / "pdf"
    installer.remove("@local/pdf")
    link.mkdir(parents=True)
    (link / "SKILL.md").write_text("---\nname: pdf\ndescription: d\n---\nmine", encoding="utf-8")
    installer.adopt("pdf")


@pytest.mark.parametrize(
    ("command", "skill", "why"),
    [
        (sync, "local/pdf", "somebody had changed it by hand"),
        (remove, "local/pdf", "somebody had changed it by hand"),
        (update, "local/pdf", "somebody had changed it by hand"),
        (update_all, "local/pdf", "somebody had changed it by hand"),
        (replace, "local/pdf", "somebody had changed it by hand"),
        (replace_foreign, "pdf", "it was where a link goes, and was not what Prowess put there"),
        (adopt, "pdf", "it was where a link goes, and was not what Prowess put there"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_every_backup_is_named_with_its_path_by_the_command_that_makes_it_and_listed(
    world: World, installer: prowess.Installer, command: Callable[[prowess.Installer], None], skill: str, why: str
) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    installer.install(world.repository("pdf").address, project=True)
    assert installer.backups() == ()
    command(installer)
    (backup,) = installer.backups()
    assert [issue.path for issue in installer.issues if issue.code == "backed-up"] == [str(backup.path)]
    assert (backup.path / "SKILL.md").read_text(encoding="utf-8").endswith("mine")
    assert backup.bytes == (backup.path / "SKILL.md").stat().st_size
    assert (backup.skill, backup.why) == (skill, why)
    assert before < backup.when


def test_backups_of_earlier_versions_are_listed_and_whatever_else_lies_there_is_not(
    world: World, installer: prowess.Installer
) -> None:
    for name in ("local-pdf-19a8b3c4d5e-0123456789ab", "notes of mine", "x+y"):
        (world.skills / ".backup" / name).mkdir(parents=True)
    assert [(one.skill, one.why) for one in installer.backups()] == [("local-pdf", "not recorded")]


def test_a_source_that_gives_other_bytes_is_refused_with_both_hashes(
    world: World, installer: prowess.Installer
) -> None:
    folder = world.folder("notes")
    path = installer.install_local(folder, project=True)
    locked = read_lock(str(world.project))["local/notes"]
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: d\n---\nOther.\n", encoding="utf-8")
    shutil.rmtree(path)
    with pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert locked.digest in caught.value.message
    assert caught.value.message.count(":") >= 2
    assert not path.exists()


def test_the_users_scope_can_be_synchronised_too(world: World, installer: prowess.Installer) -> None:
    path = installer.install(world.repository("pdf").address)
    shutil.rmtree(path)
    assert [one.location for one in installer.sync(project=False, locked=True)] == ["user"]
    assert path.is_dir()


@pytest.mark.parametrize(
    ("before", "after", "left"),
    [
        ('["charts"]', '["charts", "invoices"]', ()),
        ('["charts", "invoices"]', '["invoices"]', ("local/charts",)),
        ('["charts"]', '["invoices"]', ("local/charts",)),
        ("", '["charts"]', ("local/many",)),
        ('["charts", "invoices"]', "", ()),
    ],
    ids=["added", "taken out", "another", "one of the whole", "the whole"],
)
def test_skills_of_an_entry_that_are_added_or_taken_out_sync_cleanly(
    world: World, installer: prowess.Installer, before: str, after: str, left: tuple[str, ...]
) -> None:
    repo = world.repository("many", "skills/charts", "skills/invoices")
    for chosen in (before, after):
        entry = f'source = "{repo.address}"{f", skills = {chosen}" if chosen else ""}'
        declare(world, f"skills = [{{ {entry} }}]\n")
        installer.sync()
    assert codes(installer) == [("declared-no-more", name) for name in left]
    installer.sync(remove=True)
    assert sorted(path.name for path in world.agents.iterdir()) == sorted(
        json.loads(after) if after else ["charts", "invoices"]
    )
    assert (installer.verify(), installer.sync(locked=True), installer.difference()) == ((), (), ())


def test_a_skill_that_moves_from_one_entry_to_another_comes_from_there(
    world: World, installer: prowess.Installer
) -> None:
    one, other = (
        world.repository("one", "skills/charts", "skills/invoices"),
        world.repository("other", "skills/charts", "skills/letters"),
    )
    other.skill("skills/charts", body="From the other.\n")
    other.commit()
    rows = [
        f'{{ source = "{one.address}", skills = ["charts", "invoices"] }}',
        f'{{ source = "{other.address}", skills = ["letters"] }}',
    ]
    declare(world, f"skills = [{', '.join(rows)}]\n")
    installer.sync()
    rows = [
        f'{{ source = "{other.address}", skills = ["letters", "charts"] }}',
        f'{{ source = "{one.address}", skills = ["invoices"] }}',
    ]
    declare(world, f"skills = [{', '.join(rows)}]\n")
    installer.sync()
    assert installer.issues == ()
    assert "From the other." in (world.agents / "charts" / "SKILL.md").read_text(encoding="utf-8")
    assert installer.sync(locked=True) == ()


def test_agents_that_are_declared_anew_get_their_links(world: World, installer: prowess.Installer) -> None:
    repo = world.base / "folders" / "many"
    for name in ("a", "b"):
        (repo / name).mkdir(parents=True)
        (repo / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\n---\n", encoding="utf-8")
    declare(world, 'skills = ["../../folders/many"]\n')
    installer.sync()
    declare(world, 'skills = [{ source = "../../folders/many", agents = ["claude-code"] }]\n')
    installer.sync()
    assert sorted(path.name for path in (world.project / ".claude" / "skills").iterdir()) == ["a", "b"]
    declare(world, 'agents = ["goose"]\nskills = ["../../folders/many"]\n')
    installer.sync()
    assert sorted(path.name for path in (world.project / ".goose" / "skills").iterdir()) == ["a", "b"]
    assert installer.sync(locked=True) == ()


def test_what_cannot_be_brought_or_put_back_does_not_stop_the_others(
    world: World, installer: prowess.Installer
) -> None:
    for name in ("first", "second", "third"):
        world.folder(name)
    declare(world, 'skills = ["../../folders/first", "../../folders/second"]\n')
    installer.sync()
    for name in ("first", "second"):
        (world.skills / "local" / name / "SKILL.md").unlink()
    (world.agents / "first").unlink()
    (world.agents / "first").mkdir()
    declare(world, 'skills = ["../../folders/missing", "../../folders/second", "../../folders/third"]\n')
    with pytest.raises(prowess.SkillError) as caught:
        installer.sync(remove=True)
    assert "../../folders/missing" in caught.value.message
    assert "1 more could not be synced; installed all the same: local/third, local/second" in caught.value.message
    assert (world.agents / "second" / "SKILL.md").is_file()
    assert (world.agents / "third" / "SKILL.md").is_file()
    assert "local/first" in names(installer)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('skill = ["a/b"]', "has no key 'skill'; did you mean skills?"),
        ('skills = []\nagent = ["cursor"]', "has no key 'agent'; did you mean agents?"),
        ('skills = [{ source = "a/b", skill = ["x"] }]', "has no key 'skill'; did you mean skills?"),
        ('skills = [{ sourse = "a/b" }]', "has no key 'sourse'; did you mean source?"),
        (
            'skills = [{ source = "a/b", reference = "v1" }]',
            "has no key 'reference'; it may have agents, mode, ref, skills, source",
        ),
    ],
)
def test_a_key_that_a_manifest_does_not_have_is_refused_before_anything_happens(
    world: World, installer: prowess.Installer, text: str, said: str
) -> None:
    installer.install_local(world.folder("notes"), project=True)
    shutil.rmtree(world.skills / "local")
    for file, head in (("pyproject.toml", "[tool.prowess]\n"), ("prowess.toml", "")):
        declare(world, head + text, file)
        with pytest.raises(prowess.InstallError) as caught:
            installer.sync()
        assert (caught.value.code, said in caught.value.message) == ("bad-manifest", True)
    assert not (world.skills / "local" / "notes").exists()


@pytest.mark.parametrize(
    "text",
    [
        *(
            "skills = 1",
            "skills = [1]",
            'skills = [{ ref = "v1" }]',
            'skills = [{ source = "a/b", x = 1 }]',
            "not toml [",
        ),
        *(
            'skills = ["--upload-pack=x"]',
            'skills = ["a/b", "a/b"]',
            'agents = "x"',
            'skills = [{ source = "a/b", skills = "x" }]',
        ),
        'skills = [{ source = "a/b", ref = "-x" }]',
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(world: World, installer: prowess.Installer, text: str) -> None:
    declare(world, text)
    with pytest.raises(prowess.InstallError) as caught:
        installer.sync()
    assert caught.value.code == "bad-manifest"


def test_a_pyproject_without_a_table_declares_nothing(world: World, installer: prowess.Installer) -> None:
    declare(world, "[project]\nname = 'x'\n", "pyproject.toml")
    assert installer.sync() == ()
    assert installer.sync(locked=True) == ()


# -- a manifest without a lock file, and one without agents ------------------------------------------------------------


def test_declared_skills_without_a_lock_file_are_not_verified(world: World, installer: prowess.Installer) -> None:
    declare(world, "skills = []\n")
    assert (installer.verify(), installer.sync(locked=True)) == ((), ())
    declare(world, f'skills = ["{world.repository("pdf").address}"]\n')
    (issue,) = installer.verify()
    assert (issue.code, issue.severity) == ("lock-outdated", "error")
    assert issue.message == "prowess.toml declares 1 source, and there is no prowess.lock that records what to install"
    with pytest.raises(prowess.LockMismatchError) as caught:
        installer.sync(locked=True)
    assert caught.value.code == "lock-outdated"
    installer.sync()
    assert (installer.verify(), installer.sync(locked=True)) == ((), ())


class Machine:
    """Somebody's home folder with the folders of some agents, and their clone of one project."""

    def __init__(self, base: Path, shared: Repository, *agents: str) -> None:
        self.home = base / "home"
        self.project = self.home / "project"
        for agent in agents:
            (self.home / agent).mkdir(parents=True)
        self.home.mkdir(parents=True, exist_ok=True)
        self._git(self.home, "clone", "-q", str(shared.path), "project")

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> prowess.Installer:
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.chdir(self.project)
        return prowess.Installer()

    def commit(self, name: str = "prowess.lock") -> str:
        """Commit a file and push it, and return its text."""
        self._git(self.project, "add", name)
        self._git(self.project, "commit", "-qm", "sync")
        self._git(self.project, "push", "-q")
        return (self.project / name).read_text(encoding="utf-8")

    def pull(self) -> None:
        self._git(self.project, "pull", "-q")

    def _git(self, folder: Path, *args: str) -> None:
        subprocess.run(["git", *args], cwd=folder, env={**os.environ, **ENV}, check=True)

    @property
    def links(self) -> list[str]:
        """The folders of agents in which the project's skills are linked."""
        found = self.project.glob(".*/skills/*")
        return sorted({path.parent.parent.name for path in found if path.is_symlink()})


def test_a_manifest_without_agents_is_synced_as_an_install_would_link(
    world: World, installer: prowess.Installer
) -> None:
    (world.home / ".claude").mkdir()
    repo = world.repository("pdf")
    declare(world, f'skills = ["{repo.address}"]\n')
    assert installer.difference() == (f"install {repo.address}, which the manifest declares",)
    (planned,) = installer.issues
    installer.sync()
    assert (planned.code, planned.severity, installer.issues) == ("agents-chosen", "info", (planned,))
    assert "linked for those on this machine: claude-code" in planned.message
    assert (world.project / ".claude/skills/pdf").is_symlink()
    assert read_lock(str(world.project))["local/pdf"].agents == ("claude-code",)
    assert (installer.sync(), installer.issues, installer.sync(locked=True)) == ((), (), ())


def test_agents_that_the_manifest_names_are_the_only_ones(world: World, installer: prowess.Installer) -> None:
    (world.home / ".claude").mkdir()
    address = world.repository("pdf").address
    for text in (
        f'agents = ["windsurf"]\nskills = ["{address}"]\n',
        f'skills = [{{ source = "{address}", agents = ["windsurf"] }}]\n',
    ):
        declare(world, text)
        installer.sync()
        assert installer.issues == ()
        assert read_lock(str(world.project))["local/pdf"].agents == ("windsurf",)
        installer.remove("@local/pdf")


def test_machines_with_other_agents_get_the_links_that_the_lock_file_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills = Repository(tmp_path / "skills")
    for name in ("pdf", "csv"):
        skills.skill(name)
    skills.commit()
    shared = Repository(tmp_path / "shared")
    shared.write("prowess.toml", f'skills = [{{ source = "{skills.address}", skills = ["pdf"] }}]\n')
    shared.write(".gitignore", ".prowess/\n.agents/\n.claude/\n.windsurf/\n")
    shared.commit()
    shared.git("config", "receive.denyCurrentBranch", "updateInstead")
    first = Machine(tmp_path / "first", shared, ".claude")
    second = Machine(tmp_path / "second", shared, ".codeium/windsurf")
    runner = Machine(tmp_path / "runner", shared)
    first.enter(monkeypatch).sync()
    text = first.commit()
    for machine in (second, runner, first):
        machine.pull()
        installer = machine.enter(monkeypatch)
        installer.sync(locked=True)
        assert (installer.sync(), installer.difference(), installer.verify()) == ((), (), ())
        assert machine.links == [".agents", ".claude"]
        assert (machine.project / "prowess.lock").read_text(encoding="utf-8") == text
    # A skill that is declared later is linked for the agents of the project and of whoever syncs first.
    more = f'skills = [{{ source = "{skills.address}", skills = ["csv", "pdf"] }}]\n'
    (second.project / "prowess.toml").write_text(more, encoding="utf-8")
    second.enter(monkeypatch).sync()
    agents = {name: entry.agents for name, entry in read_lock(str(second.project)).items()}
    assert agents == {"local/csv": ("claude-code", "windsurf"), "local/pdf": ("claude-code",)}
    second.commit("prowess.toml")
    text = second.commit()
    for machine in (first, runner, second):
        machine.pull()
        installer = machine.enter(monkeypatch)
        installer.sync(locked=True)
        assert (installer.sync(), installer.difference(), installer.verify()) == ((), (), ())
        assert (machine.project / "prowess.lock").read_text(encoding="utf-8") == text


def test_a_locked_sync_gives_files_of_a_folder_the_bits_that_were_locked(
    world: World, installer: prowess.Installer
) -> None:
    """A clone from a system without executable bits has the files of a plain folder without them."""
    folder = world.folder()
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    installer.install(str(folder), project=True)
    (folder / "run.sh").chmod(0o644)
    shutil.rmtree(world.skills / "local" / "notes")
    installer.sync(locked=True)
    assert (world.skills / "local" / "notes" / "run.sh").stat().st_mode & 0o111
    assert installer.verify() == ()

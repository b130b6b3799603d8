"""Forged journals: a program that can write only below ``.prowess`` cannot change or delete the lock file."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import prowess
from prowess.cli.main import root
from prowess.files import syscalls
from prowess.install.agent_links import LinkFolders
from prowess.install.journal import ScopeJournal
from prowess.installed.journal_format import Move
from prowess.lockfile.read import read_lock
from prowess.lockfile.write import lock_text
from tests.install.dying import Counting
from tests.repositories import skill_text

if TYPE_CHECKING:
    from collections.abc import Callable

    Snapshot = dict[str, tuple[object, ...]]

EVIL = "Do evil."
LOOKING = (
    ("verify",),
    ("outdated",),
    ("sync", "--dry-run"),
    ("sync", "--locked", "--dry-run"),
    ("update", "--dry-run"),
    ("install", "../source/notes", "--project", "--replace", "--dry-run"),
    ("remove", "notes", "--dry-run"),
    ("adopt", "--dry-run"),
    ("link", "notes", "--agent", "claude-code", "--dry-run"),
    ("list",),
    ("list", "--verify"),
    ("show", "notes"),
    ("doctor",),
)


class Project:
    """A project with one installed skill, in a home of its own; commands run in it."""

    def __init__(self, base: Path) -> None:
        self.root = base / "home" / "project"
        self.source = base / "home" / "source" / "notes"
        self.place = self.root / ".prowess" / "skills" / "local" / "notes"
        self.store = self.root / ".prowess" / "skills" / ".store"
        self.lock = self.root / "prowess.lock"
        (self.root / ".git").mkdir(parents=True)
        self.write_source("Do good.")

    def write_source(self, body: str) -> None:
        self.source.mkdir(parents=True, exist_ok=True)
        (self.source / "SKILL.md").write_text(skill_text("notes", f"{body}\n"), encoding="utf-8")

    def installer(self) -> prowess.Installer:
        return prowess.Installer()

    def run(self, *words: str) -> tuple[int, str]:
        """How a command ended, and everything that it said."""
        done = CliRunner().invoke(root, list(words), prog_name="prowess")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def found(self) -> tuple[str, ...]:
        """The skills that count as what the lock file says."""
        return prowess.discover(cwd=self.root, home=self.root.parent, verify="lock").names

    def edit(self) -> str:
        """Change the installed skill as an attacker would; the lock text that would fit it."""
        (self.place / "SKILL.md").write_text(skill_text("notes", f"{EVIL}\n"), encoding="utf-8")
        other = self.root.parent / "other" / ".prowess" / "skills"
        self.write_source(EVIL)
        prowess.Installer(project_dir=other).install_local(self.source, project=True)
        text = lock_text(read_lock(str(other.parents[1])))
        assert text is not None
        return text

    def interrupt_update(self) -> None:
        """An update dies right after the new version took its place: the lock file still says the old one."""
        self.write_source("Do better.")
        child = os.fork()
        if child == 0:
            try:
                names: list[str] = []

                def die(name: str, moment: str, _path: str) -> None:
                    names.append(name)
                    if name == "exchange" and moment == "after":
                        os._exit(9)

                syscalls.set_watcher(die)
                self.installer().update("@local/notes")
            finally:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9

    def snapshot(self) -> Snapshot:
        """Everything in the project: bytes, what links say, modes, sizes and times."""
        seen: Snapshot = {}
        for where, folders, files in os.walk(self.root):
            for name in (".", *folders, *files):
                path = Path(where, name)
                info = path.lstat()
                content: object = (
                    path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None
                )
                seen[str(path)] = (content, info.st_mode, info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
        return seen


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path)
    monkeypatch.setenv("HOME", str(made.root.parent))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.root)
    made.installer().install_local(made.source, project=True)
    return made


def old_journal(project: Project) -> None:
    """A journal where an older version kept it, with lock text that fits an edit."""
    fitting = project.edit()
    project.store.mkdir(exist_ok=True)
    text = {"before": project.lock.read_text(encoding="utf-8"), "after": fitting}
    (project.store / "journal.json").write_text(json.dumps({"version": 1, "moves": [], "lock": text}), encoding="utf-8")


def deleting_journal(project: Project) -> None:
    """A journal after which there would be no lock file."""
    project.edit()
    project.store.mkdir(exist_ok=True)
    text = {"before": None, "after": None}
    (project.store / "journal.json").write_text(json.dumps({"version": 1, "moves": [], "lock": text}), encoding="utf-8")


def new_journal(project: Project) -> None:
    """A journal as this version writes it, with the lock text beside it, both below ``.prowess``."""
    fitting = project.edit()
    project.store.mkdir(exist_ok=True)
    token = "0" * 12
    sums = [hashlib.sha256(text.encode()).hexdigest() for text in (project.lock.read_text(encoding="utf-8"), fitting)]
    here = [os.lstat(folder).st_ino for folder in (project.root, project.store.parent)]
    data = {"version": 2, "here": here, "moves": [], "lock": {"token": token, "before": sums[0], "after": sums[1]}}
    for folder in (project.store, project.store.parent, project.store.parents[1]):
        for name in ("journal.json", ".prowess.journal"):
            (folder / name).write_text(json.dumps(data), encoding="utf-8")
        (folder / f".prowess.lock.{token}.tmp").write_text(fitting, encoding="utf-8")


FORGERIES = (old_journal, deleting_journal, new_journal)


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_forged_journal_makes_no_edit_count(project: Project, forge: Callable[[Project], None]) -> None:
    before = project.lock.read_bytes()
    forge(project)
    assert project.found() == ()
    assert '"skills": []' in project.run("list", "--verify", "--json")[1]
    assert "changed-file" in {issue.code for issue in project.installer().verify()}
    assert project.run("verify")[0] == 1
    assert project.lock.read_bytes() == before


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_locked_sync_fails_on_the_edit_and_leaves_the_lock_file(
    project: Project, forge: Callable[[Project], None]
) -> None:
    before = project.lock.read_bytes()
    forge(project)
    status, said = project.run("sync", "--locked")
    assert status == 3
    assert "lock-mismatch" in said
    assert project.lock.read_bytes() == before
    assert project.found() == ()


@pytest.mark.parametrize("forge", FORGERIES)
def test_a_sync_puts_back_what_the_lock_file_says_and_sets_the_forgery_aside(
    project: Project, forge: Callable[[Project], None]
) -> None:
    before = project.lock.read_bytes()
    forge(project)
    project.write_source("Do good.")
    assert project.run("sync", "--yes")[0] == 0
    assert project.lock.read_bytes() == before
    assert project.installer().verify() == ()
    assert project.found() == ("notes",)


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
@pytest.mark.parametrize("forge", FORGERIES)
def test_commands_that_look_change_nothing_beside_a_forged_journal(
    project: Project, words: tuple[str, ...], forge: Callable[[Project], None]
) -> None:
    forge(project)
    before = project.snapshot()
    project.run(*words)
    assert project.snapshot() == before


@pytest.mark.parametrize("words", LOOKING, ids=" ".join)
def test_commands_that_look_leave_an_interrupted_change_and_say_so(project: Project, words: tuple[str, ...]) -> None:
    project.interrupt_update()
    before = project.snapshot()
    _, said = project.run(*words)
    assert project.snapshot() == before
    told = " ".join(said.split())
    assert words[0] in {"remove", "adopt", "link", "show"} or ("interrupted" in told and "prowess sync" in told)


def test_a_locked_sync_does_not_finish_what_would_change_the_lock_file(project: Project) -> None:
    project.interrupt_update()
    before = project.snapshot()
    status, said = project.run("sync", "--locked")
    assert status == 3
    assert "interrupted-change" in said
    assert "prowess sync" in said
    assert project.snapshot() == before
    assert project.run("sync", "--yes")[0] == 0
    assert project.run("sync", "--locked")[0] == 0
    assert "Do better." in (project.place / "SKILL.md").read_text(encoding="utf-8")
    assert project.installer().verify() == ()


def test_a_reader_accepts_the_new_version_while_its_lock_file_is_on_the_way(project: Project) -> None:
    project.interrupt_update()
    assert project.found() == ("notes",)


def test_a_journal_that_came_with_a_copy_of_the_project_is_not_believed(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names entries by numbers that mean something else there."""
    project.interrupt_update()
    copy = tmp_path / "home" / "copy"
    shutil.copytree(project.root, copy, symlinks=True)
    before = (copy / "prowess.lock").read_bytes()
    monkeypatch.chdir(copy)
    assert prowess.discover(cwd=copy, home=copy.parent, verify="lock").names == ()
    status, said = project.run("verify")
    assert status == 1
    assert "bad-journal" in said
    project.write_source("Do good.")
    assert project.run("sync", "--yes")[0] == 0
    assert (copy / "prowess.lock").read_bytes() == before
    assert project.run("verify")[0] == 0


def test_what_an_older_version_staged_is_kept_when_its_journal_is_set_aside(project: Project) -> None:
    old_journal(project)
    (project.store / "0-1.old").mkdir()
    (project.store / "0-1.old" / "mine.md").write_text("mine", encoding="utf-8")
    project.write_source("Do good.")
    assert "bad-journal" in project.run("sync", "--yes")[1]
    kept = [path.relative_to(project.store.parent) for path in (project.store.parent / ".backup").rglob("mine.md")]
    assert [path.parts[0] for path in kept] == [".backup"]


def test_an_interrupted_removal_of_the_last_skill_leaves_a_lock_file_that_can_be_read(project: Project) -> None:
    """At each call in turn: the lock file is the old one, one that records nothing, or gone."""
    counting = Counting()
    syscalls.set_watcher(counting)
    project.installer().remove("@local/notes")
    syscalls.set_watcher(None)
    assert not project.lock.exists()
    at = next(n for n, path in enumerate(counting.paths, 1) if Path(path).name == "prowess.lock")
    project.installer().install_local(project.source, project=True)
    child = os.fork()
    if child == 0:
        try:
            syscalls.set_watcher(Counting(at, "after", lambda _: os._exit(9)))
            project.installer().remove("@local/notes")
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert read_lock(str(project.root)) == {}
    assert project.run("sync", "--yes")[0] == 0
    assert not project.lock.exists()
    assert not project.place.exists()


@pytest.mark.parametrize("what", ["folder", "link", "fifo"])
def test_what_a_clone_has_where_a_journal_goes_is_set_aside(project: Project, what: str) -> None:
    path = project.root / ".prowess.journal"
    if what == "folder":
        path.mkdir()
        (path / "kept").write_text("kept", encoding="utf-8")
    elif what == "link":
        path.symlink_to(project.source)
    else:
        os.mkfifo(path)
    status, said = project.run("sync", "--yes")
    assert (status, "bad-journal" in said) == (0, True)
    assert not os.path.lexists(path)
    assert project.run("verify")[0] == 0
    assert project.source.is_dir()
    kept = [file.read_text(encoding="utf-8") for file in project.store.parent.rglob("kept")]
    assert kept == (["kept"] if what == "folder" else [])


@pytest.mark.parametrize(
    "name",
    [
        "local/notes/../../x",
        "local/notes/skills/",
        "local/notes//a",
        "local/notes/./a",
        "local/notes/.git/hooks",
        "local/notes/a\\b",
        "local/notes/linked/a",
        "local/../notes/a",
    ],
)
def test_a_journal_moves_no_folder_outside_of_an_install(project: Project, name: str) -> None:
    (project.place / "linked").symlink_to(project.root)
    scope = project.installer().project
    journal = ScopeJournal(scope, LinkFolders(scope), prowess.Limits())
    with pytest.raises(prowess.InstallError) as caught:
        journal.locate(Move(name, "1-2"))
    assert caught.value.code == "bad-journal"
    assert journal.locate(Move("local/notes/skills/a", "1-2")).path == str(project.place / "skills" / "a")

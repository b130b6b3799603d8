"""Two people change manifest and lock file in two clones, and git merges: with and without the documented driver."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from prowess.lockfile.read import read_lock
from tests.cli.test_lock_merge import documented_driver
from tests.repositories import ENV, Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command, Ran

FILES = {"prowess.toml": "", "pyproject.toml": '[project]\nname = "p"\n\n[tool.prowess]\n'}
"""The files that may be the manifest, each with what is in front of the list of skills."""


class Clones:
    """A project in two clones, ``mine`` and ``theirs``, that both begin with three skills of one source."""

    def __init__(self, base: Path, command: Command, file: str, driver: str) -> None:
        self.file, self._base, self._command = file, base, command
        self.source = Repository(base / "repositories" / "source")
        for tag in ("v1", "v2"):
            for name in "abcdmnxyz":
                self.source.skill(f"skills/{name}", body=f"This is {tag}.\n")
            self.source.commit(tag=tag)
        origin = base / "origin"
        origin.mkdir()
        self._git(origin, "init", "--quiet", "--initial-branch=main", ".")
        rows = "".join(f'    "{name}",\n' for name in "bmx")
        entry = f'  {{ source = "{self.source.address}", ref = "v1", skills = [\n{rows}  ] }},\n'
        (origin / file).write_text(f"{FILES[file]}skills = [\n{entry}]\n", encoding="utf-8")
        (origin / ".gitignore").write_text(".prowess/\n.agents/\n.claude/\n", encoding="utf-8")
        (origin / ".gitattributes").write_text(f"{documented_driver()[0]}\n" if driver else "", encoding="utf-8")
        self.run(origin, "sync", "--yes")
        self._commit(origin)
        self.mine, self.theirs = base / "mine", base / "theirs"
        for clone in (self.mine, self.theirs):
            self._git(base, "clone", "--quiet", "origin", clone.name)
            self._git(clone, "config", "merge.prowess-lock.driver", driver or "false")
            assert self.run(clone, "sync", "--locked").status == 0

    def _git(self, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **ENV}
        return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)

    def _commit(self, folder: Path) -> None:
        self._git(folder, "add", "--all")
        assert self._git(folder, "commit", "--quiet", "--message", "change").returncode == 0

    def run(self, folder: Path, *words: str) -> Ran:
        """Run a command of Prowess in a clone."""
        os.chdir(folder)
        return self._command(*words)

    def change(self, folder: Path, *words: str) -> None:
        """Run a command that changes the project, and commit what it did."""
        ran = self.run(folder, *words)
        assert ran.status == 0, ran.err
        assert self.run(folder, "sync", "--locked").out == "Nothing to do.\n"
        self._commit(folder)

    def add(self, folder: Path, *names: str) -> None:
        """Install further skills of the source."""
        skills = [word for name in names for word in ("--skill", name)]
        self.change(folder, "install", f"{self.source.address}#v1", *skills, "--project", "--yes")

    def edit(self, folder: Path, old: str, new: str) -> None:
        """Edit the manifest by hand, and sync."""
        path = folder / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
        self.change(folder, "sync", "--yes", "--remove")

    def pull(self) -> list[str]:
        """Merge their changes into mine; returns the files that git left in conflict."""
        self._git(self.mine, "fetch", "--quiet", str(self.theirs), "main")
        self._git(self.mine, "merge", "--no-edit", "FETCH_HEAD")
        return self._git(self.mine, "diff", "--name-only", "--diff-filter=U").stdout.split()

    def changed_rows(self, folder: Path, file: str) -> list[str]:
        """The lines that the last commit took out of a file, and put into it."""
        shown = self._git(folder, "diff", "--unified=0", "HEAD~1", "HEAD", "--", file).stdout.splitlines()
        return [row for row in shown if row[0] in "+-" and not row.startswith(("+++", "---"))]

    def check_agreement(self, *names: str) -> None:
        """What was merged says that exactly these skills are installed, and nobody has to do anything."""
        ran = self.run(self.mine, "sync", "--locked")
        assert ran.status == 0, ran.err
        assert sorted(read_lock(str(self.mine))) == [f"local/{name}" for name in names]
        assert self.run(self.mine, "sync").out == "Nothing to do.\n"


@pytest.fixture(params=["lines", "driver"])
def driver(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The documented merge driver, or ``""`` for git's merge by lines."""
    program = tmp_path / "bin" / "prowess"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m prowess "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return documented_driver()[1] if request.param == "driver" else ""


@pytest.fixture
def clones(project: Path, command: Command, driver: str, monkeypatch: pytest.MonkeyPatch) -> Clones:
    monkeypatch.chdir(project)  # so that the working folder is what it was afterwards
    return Clones(project.parent, command, "prowess.toml", driver)


@pytest.mark.parametrize("file", FILES)
def test_two_additions_merge_by_themselves_and_agree(
    project: Path, command: Command, driver: str, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.chdir(project)
    clones = Clones(project.parent, command, file, driver)
    clones.add(clones.mine, "c")
    clones.add(clones.theirs, "z", "n")
    assert clones.changed_rows(clones.mine, file) == ['+    "c",']
    assert clones.changed_rows(clones.theirs, file) == ['+    "n",', '+    "z",']
    assert {row[0] for row in clones.changed_rows(clones.theirs, "prowess.lock")} == {"+"}
    assert clones.pull() == []
    clones.check_agreement(*"bcmnxz")


def test_neighbours_that_both_added_are_kept_in_an_editor(clones: Clones, driver: str) -> None:
    clones.add(clones.mine, "c")
    clones.add(clones.theirs, "d")
    assert clones.pull() == (["prowess.toml"] if driver else ["prowess.lock", "prowess.toml"])
    path = clones.mine / "prowess.toml"
    both = re.sub(r"^(<<<<<<<|=======|>>>>>>>).*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    path.write_text(both, encoding="utf-8")
    assert clones.run(clones.mine, "lock", "--merge").status == 0
    clones.check_agreement(*"bcdmx")


def test_one_removes_a_skill_and_the_other_adds_one(clones: Clones) -> None:
    clones.change(clones.mine, "remove", "b", "--yes")
    assert clones.changed_rows(clones.mine, "prowess.toml") == ['-    "b",']
    assert {row[0] for row in clones.changed_rows(clones.mine, "prowess.lock")} == {"-"}
    clones.add(clones.theirs, "y")
    assert clones.pull() == []
    clones.check_agreement(*"mxy")


def test_two_sources_that_were_added_go_where_they_belong(clones: Clones) -> None:
    for name in ("aaa", "zzz"):
        made = Repository(clones.source.path.parent / name)
        made.skill("")
        made.commit()
        folder = clones.mine if name == "aaa" else clones.theirs
        clones.change(folder, "install", made.address, "--project", "--yes")
    assert clones.pull() == []
    clones.check_agreement("aaa", *"bmx", "zzz")


def test_a_skill_added_to_what_the_other_moved_to_a_version_is_asked_about(clones: Clones, driver: str) -> None:
    """The manifest merges by lines: it asks for the new skill at the new version, which nobody has installed."""
    clones.edit(clones.mine, 'ref = "v1"', 'ref = "v2"')
    clones.add(clones.theirs, "n")
    assert clones.pull() == (["prowess.lock"] if driver else [])
    if driver:
        ran = clones.run(clones.mine, "lock", "--merge")
        assert (ran.status, "local/n  another declaration of its source" in ran.out) == (1, True)
        assert clones.run(clones.mine, "lock", "--merge", "--take", "theirs").status == 0
    ran = clones.run(clones.mine, "sync", "--locked")
    assert (ran.status, "(n) is declared, and local/n is locked at v1" in ran.err) == (3, True)
    assert clones.run(clones.mine, "sync", "--yes").status == 0
    clones.check_agreement(*"bmnx")
    assert {entry.ref for entry in read_lock(str(clones.mine)).values()} == {"v2"}


def test_one_updates_a_skill_and_the_other_adds_its_neighbour(clones: Clones) -> None:
    clones.change(clones.mine, "update", "m@v2", "--yes")
    clones.add(clones.theirs, "a")
    assert clones.pull() == []
    clones.check_agreement(*"abmx")
    assert {name: entry.ref for name, entry in read_lock(str(clones.mine)).items()} == {
        "local/a": "v1",
        "local/b": "v1",
        "local/m": "v2",
        "local/x": "v1",
    }

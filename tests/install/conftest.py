"""What the tests of installing share: a home folder, a project and repositories of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.repositories import Repository, skill_text
from tests.web_sites import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Listing = dict[str, bytes | str]


class World:
    """A home folder, a project in it with the working folder there, and what is installed."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.project = self.home / "project"
        self.skills = self.project / ".prowess" / "skills"
        self.agents = self.project / ".agents" / "skills"
        self.lock = self.project / "prowess.lock"
        self.project.mkdir(parents=True)
        (self.project / ".git").mkdir()

    def repository(self, name: str = "pdf", *skills: str) -> Repository:
        """A repository with skills: one on top unless folders are named."""
        made = Repository(self.base / "repositories" / name)
        for folder in skills or ("",):
            made.skill(folder)
        made.commit(tag="v1")
        return made

    def folder(self, name: str = "notes", body: str = "Do it.\n") -> Path:
        """A skill in a folder that is not a repository."""
        path = self.base / "folders" / name
        path.mkdir(parents=True)
        (path / "SKILL.md").write_text(skill_text(name, body), encoding="utf-8")
        return path


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A home folder and a project that only this test uses."""
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(made.project)
    return made


@pytest.fixture
def installer(world: World) -> prowess.Installer:  # noqa: ARG001 - it must be there first
    """An installer for that home and project."""
    return prowess.Installer()


@pytest.fixture
def listing() -> Callable[[Path], Listing]:
    """Everything below a folder: bytes of files, what links say, ``"folder"``; the store's leftovers left out."""

    def read(folder: Path) -> Listing:
        found: Listing = {}
        for where, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name != ".store"]
            for name in (*folders, *files):
                path = Path(where, name)
                key = path.relative_to(folder).as_posix()
                link = path.is_symlink()
                found[key] = os.readlink(path) if link else "folder" if path.is_dir() else path.read_bytes()  # noqa: PTH115
        return found

    return read


@pytest.fixture
def site(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site on loopback; no proxy, and copies go to this test's own folder."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PROWESS_CACHE_DIR", str(world.base / "copies"))
    with Site() as running:
        yield running

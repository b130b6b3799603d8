"""Two developers, each with a clone and a home folder of their own, and the repositories that they share."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import prowess
from prowess.lockfile.read import read_lock
from tests.repositories import Repository

if TYPE_CHECKING:
    from collections.abc import Iterator

MERGE_DRIVER = f'"{sys.executable}" -m prowess lock --merge --base %O --ours %A --theirs %B'
_LOCATIONS = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR")


class Developer:
    """A clone of the project, and the home folder of whoever works in it."""

    def __init__(self, base: Path, name: str, hub: Path) -> None:
        self.home = base / name
        self.project = self.home / "project"
        self.home.mkdir(parents=True)
        self.repository = Repository.__new__(Repository)
        self.repository.path = self.home
        self.git("clone", "--quiet", str(hub), "project")
        self.repository.path = self.project
        self.git("config", "merge.prowess-lock.driver", MERGE_DRIVER)

    @property
    def base(self) -> Path:
        return self.project / ".prowess" / "skills"

    def git(self, *args: str) -> str:
        return self.repository.git(*args)

    @contextmanager
    def working(self) -> Iterator[prowess.Installer]:
        """An installer, with the home folder and the working folder of this developer."""
        before, folder = {name: os.environ.get(name) for name in ("HOME", *_LOCATIONS)}, Path.cwd()
        os.environ["HOME"] = str(self.home)
        for name in _LOCATIONS:
            os.environ.pop(name, None)
        os.chdir(self.project)
        try:
            yield prowess.Installer()
        finally:
            os.chdir(folder)
            for name, value in before.items():
                if value is not None:
                    os.environ[name] = value
                else:
                    os.environ.pop(name, None)

    def publish(self, message: str = "change") -> None:
        """Commit everything, and push it."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        self.git("push", "--quiet", "origin", "HEAD")

    def pull(self) -> None:
        self.git("pull", "--quiet", "--no-rebase", "--no-edit")

    def offered(self) -> tuple[str, ...]:
        """The names of the skills that a model is offered."""
        return prowess.discover(cwd=self.project, home=self.home).names

    def recorded(self) -> set[str]:
        """The names of the skills that the lock file records."""
        return {skill for entry in read_lock(str(self.project)).values() for skill in entry.skills}

    def installed_file(self, skill: str) -> Path:
        return self.base / "local" / skill / "SKILL.md"

    def backups(self) -> list[Path]:
        with self.working() as installer:
            return [backup.path for backup in installer.backups()]


class Team:
    """A source of skills, a shared repository, and two developers, ada and ben."""

    def __init__(self, base: Path, *skills: str) -> None:
        self.base = base
        self.source = Repository(base / "source")
        for skill in skills:
            self.source.skill(f"skills/{skill}", body=f"Version 1 of {skill}.\n")
        self.source.commit(tag="v1")
        hub = base / "hub.git"
        seed = Repository(base / "seed")
        seed.write(".gitignore", ".prowess/\n")
        seed.write(".gitattributes", "prowess.lock merge=prowess-lock\n")
        seed.commit("begin")
        seed.git("clone", "--quiet", "--bare", str(seed.path), str(hub))
        self.hub = hub
        self.ada, self.ben = Developer(base, "ada", hub), Developer(base, "ben", hub)

    def release(self, skill: str, version: int) -> None:
        """Change one skill in the source."""
        self.source.skill(f"skills/{skill}", body=f"Version {version} of {skill}.\n")
        self.source.commit(f"{skill} {version}")

    def install(self, developer: Developer, *skills: str) -> None:
        """Install skills and push that."""
        with developer.working() as installer:
            installer.install(self.source.address, project=True, select=skills)
        developer.publish()

"""Repositories and clones of them, with the git of this system. Git for Windows has settings of its own for both."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.platforms.conftest import SKILL
from tests.repositories import ENV, Repository
from tests.sandbox_support import NOT_TESTED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.platforms.conftest import Machine

PLACE = ".agents/skills/unit"
LINK = "../../.prowess/skills/local/unit"


@pytest.fixture(autouse=True)
def need_git() -> None:
    if shutil.which("git") is None:
        pytest.skip(f"{NOT_TESTED}needs git")


def make_repository(machine: Machine, folder: Path) -> Repository:
    """A repository with one skill in ``skills``, whose script is executable."""
    repository = Repository(folder)
    machine.skill(into=folder / "skills")
    repository.git("add", "--all")
    repository.git("update-index", "--chmod=+x", "skills/unit/scripts/measure.py")
    repository.git("commit", "--quiet", "--message", "a skill")
    return repository


def clone(repository: Repository, folder: Path, setting: str) -> Path:
    """A clone of a repository with one setting of git, which also counts for its first checkout."""
    line = ["git", "clone", "--quiet", "--config", setting, str(repository.path), str(folder)]
    subprocess.run(line, env={**os.environ, **ENV}, check=True)
    return folder


def changes_in(folder: Path) -> str:
    line = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(line, cwd=folder, env={**os.environ, **ENV}, check=True, capture_output=True).stdout.decode()


@pytest.mark.parametrize("write", [lambda path: path.as_uri(), lambda path: f"{path}#"], ids=["address", "path"])
def test_a_repository_on_this_disk_is_installed_and_updated(machine: Machine, write: Callable[[Path], str]) -> None:
    """The address of a path of Windows has a drive: ``file:///C:/…``."""
    repository = make_repository(machine, machine.sources / "skills of a team")
    installed = machine.must("install", write(repository.path), "--project", "--yes")
    assert [skill["name"] for skill in installed["installed"]] == ["local/skills-of-a-team"]
    assert machine.is_marked("skills/unit/scripts/measure.py")
    assert machine.must("verify")["issues"] == []
    assert machine.must("sync", "--locked")["installed"] == []
    repository.write("skills/unit/more.md", "More.\n")
    repository.commit()
    assert [row["status"] for row in machine.must("update", "--yes")["updates"]] == ["updated"]
    assert machine.must("verify")["issues"] == []


def test_a_committed_link_is_put_in_place_in_a_clone_without_links(machine: Machine) -> None:
    """Git writes it as a file there. What Prowess puts in its place is not a change for git."""
    repository = make_repository(machine, machine.home / "team")
    machine.must("install", "./skills/unit", "--project", "--yes", cwd=repository.path)
    lock = repository.path / "prowess.lock"
    # As a system with links writes it and commits the link.
    lock.write_bytes(re.sub(rb"(?m)^copies = .*\n", b"", lock.read_bytes()))
    repository.write(".gitignore", ".prowess/\n")
    repository.git("add", "prowess.lock", ".gitignore")
    blob = repository.git("hash-object", "-w", "--stdin", stdin=LINK)
    repository.git("update-index", "--add", "--cacheinfo", f"120000,{blob},{PLACE}")
    repository.git("commit", "--quiet", "--message", "an install")

    project = clone(repository, machine.home / "clone", "core.symlinks=false")
    assert (project / PLACE).read_bytes() == LINK.encode()
    machine.must("sync", "--locked", cwd=project)
    assert (project / PLACE / "SKILL.md").read_bytes() == SKILL.format(name="unit").encode()
    assert machine.must("verify", cwd=project)["issues"] == []
    assert changes_in(project) == ""


def test_committed_copies_verify_in_a_clone_with_other_line_ends(machine: Machine) -> None:
    repository = make_repository(machine, machine.home / "team")
    machine.must("install", "./skills/unit", "--project", "--copy", "--yes", cwd=repository.path)
    repository.git("add", "prowess.lock", ".gitattributes", PLACE)
    repository.git("commit", "--quiet", "--message", "a copy")

    project = clone(repository, machine.home / "clone", "core.autocrlf=true")
    assert b"\r\n" in (project / "skills" / "unit" / "SKILL.md").read_bytes()
    assert (project / PLACE / "SKILL.md").read_bytes() == SKILL.format(name="unit").encode()
    assert machine.must("verify", cwd=project)["issues"] == []
    assert machine.must("sync", "--locked", cwd=project)["issues"] == []
    assert changes_in(project) == ""

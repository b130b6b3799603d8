"""``--recursive``: every project of a monorepo, each by itself."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess

if TYPE_CHECKING:
    from tests.cli.conftest import Command


@pytest.fixture
def monorepo(project: Path) -> Path:
    """A repository with three projects and a source, and with folders that are none of its projects."""
    prowess.create_skill("notes", project / "source", description="Writes notes.")
    shutil.rmtree(project / ".git", ignore_errors=True)
    (project / ".git").mkdir()
    for folder in ("alpha", "deep/er/beta", "beyond"):
        (project / folder).mkdir(parents=True)
        (project / folder / "prowess.toml").write_text(f'skills = ["{project}/source/notes"]\n', encoding="utf-8")
    for folder in ("node_modules/x", ".hidden", "submodule"):
        (project / folder).mkdir(parents=True)
        (project / folder / "prowess.toml").write_text("skills = 1\n", encoding="utf-8")
    (project / "submodule" / ".git").touch()
    (project / "link").symlink_to("alpha")
    return project


NAMES = ["alpha", "beyond", "deep/er/beta"]


def test_sync_and_verify_act_in_every_project(monorepo: Path, command: Command) -> None:
    assert command("verify", "--recursive").status == 1
    ran = command("sync", "--recursive", "--yes")
    assert ran.status == 0
    assert [line for line in ran.out.splitlines() if line in NAMES] == NAMES
    for name in NAMES:
        assert (monorepo / name / ".prowess/skills/local/notes/SKILL.md").exists()
    assert not (monorepo / "prowess.lock").exists()
    answer = json.loads(command("verify", "--recursive", "--json").out)
    rows = [(row["path"], row["status"], row["answer"]["installed"]) for row in answer["projects"]]
    assert rows == [(name, 0, 1) for name in NAMES]
    assert Path.cwd() == monorepo


def test_outdated_names_what_is_outdated_in_each(monorepo: Path, command: Command) -> None:
    command("sync", "--recursive", "--yes")
    shutil.rmtree(monorepo / "beyond")
    with (monorepo / "source/notes/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("More.\n")
    ran = command("outdated", "--recursive", "--verbose", "--json")
    rows = [(row["path"], row["answer"]["outdated"][0]["update"]["status"]) for row in json.loads(ran.out)["projects"]]
    assert (ran.status, rows) == (1, [("alpha", "available"), ("deep/er/beta", "available")])


def test_a_project_that_fails_stops_no_other(monorepo: Path, command: Command) -> None:
    (monorepo / "alpha/prowess.toml").write_text("skills = [", encoding="utf-8")
    ran = command("sync", "--recursive", "--yes")
    assert (ran.status, "bad-manifest" in ran.err) == (3, True)
    assert (monorepo / "beyond/prowess.lock").exists()
    rows = json.loads(command("sync", "--recursive", "--locked", "--json").out)["projects"]
    assert [(row["status"], row.get("error", {}).get("code")) for row in rows] == [
        (3, "bad-manifest"),
        (0, None),
        (0, None),
    ]


def test_it_begins_at_the_working_folder(monorepo: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(monorepo / "deep")
    command("sync", "--recursive", "--yes")
    assert (monorepo / "deep/er/beta/prowess.lock").exists()
    assert not (monorepo / "alpha/prowess.lock").exists()


def test_where_there_is_no_project_it_says_so(project: Path, command: Command) -> None:
    for file in project.glob("prowess.*"):
        file.unlink()
    ran = command("verify", "--recursive")
    assert (ran.status, "no prowess.toml and no prowess.lock here or below" in ran.err) == (0, True)


@pytest.mark.parametrize("option", ["--user", "--all"])
@pytest.mark.usefixtures("monorepo")
def test_it_means_projects(command: Command, option: str) -> None:
    assert command("sync", "--recursive", option).status == 2

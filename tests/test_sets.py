"""Named sets of skills and the off switch, in the settings of a user and of a project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli_processes import run_command

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("alpha", "beta", "gamma"):
        folder = tmp_path / "project/.agents/skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does {name}.\n---\nDo it.\n")
    (tmp_path / ".config/prowess").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def write(project: Path, text: str, user: str = "") -> None:
    (project / "prowess.toml").write_text(text)
    (project.parent / ".config/prowess/config.toml").write_text(user)


def list_prompt() -> list[str]:
    shown = run_command(["prompt"]).stdout.decode()
    return [name for name in ("alpha", "beta", "gamma") if f"<name>{name}</name>" in shown]


def test_models_see_only_the_skills_of_the_set_in_use(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, '[sets.review]\nskills = ["alpha", "beta"]\n[sets.write]\nskills = ["gamma"]\n')
    assert list_prompt() == ["alpha", "beta", "gamma"]
    monkeypatch.setenv("PROWESS_SET", "review")
    assert list_prompt() == ["alpha", "beta"]
    monkeypatch.setenv("PROWESS_SET", "revue")
    failed = run_command(["prompt"])
    assert failed.returncode == 3
    assert b"there is no set 'revue'" in failed.stderr
    assert b"review, write" in failed.stderr


def test_what_is_off_for_the_user_stays_off_in_a_project_that_switches_off_others(project: Path) -> None:
    write(project, '[settings]\noff = ["beta"]\n', user='[settings]\noff = ["alpha"]\n')
    assert list_prompt() == ["gamma"]
    listed = json.loads(run_command(["list", "--json"]).stdout)["skills"]
    assert [row["name"] for row in listed if "off" in row["marks"]] == ["alpha", "beta"]
    explained = run_command(["explain", "alpha"]).stdout.decode()
    assert "not shown in this conversation: switched off" in explained
    assert "<name>alpha</name>" in run_command(["prompt", "alpha"]).stdout.decode()  # whoever names it wants to see it


def test_a_program_takes_them_as_a_scope(project: Path) -> None:
    write(project, '[settings]\nset = "review"\noff = ["beta"]\n[sets.review]\nskills = ["alpha", "beta"]\n')
    session = prowess.Session(prowess.discover())
    session.set_scope(prowess.Scope.from_settings(prowess.load_settings()))
    assert [skill.name for skill in session.candidates()] == ["alpha"]


@pytest.mark.parametrize(
    "text", ["sets = 3", "[sets]\nreview = 1", "[sets.review]\nskills = 'a'", "[sets.review]\nx = 1"]
)
def test_a_set_that_is_not_a_list_of_skills_is_an_error(project: Path, text: str) -> None:
    write(project, text)
    with pytest.raises(prowess.SourceError, match=r"has one key: skills"):
        prowess.load_settings()

"""The doctor: what works is said, each problem comes with a remedy, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import prowess


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / "project" / ".git").mkdir(parents=True)
    return made


def look(home: Path) -> dict[str, list[prowess.Diagnosis]]:
    before = sorted(home.rglob("*"))
    found: dict[str, list[prowess.Diagnosis]] = {}
    for one in prowess.doctor(home / "project", home):
        found.setdefault(one.topic, []).append(one)
        assert one.remedy or one.state != "problem", one
    assert sorted(home.rglob("*")) == before
    return found


def test_programs_folders_and_grants_are_checked(home: Path) -> None:
    found = look(home)
    assert {"python", "git", "sandbox", "folder", "trust"} <= found.keys()
    assert found["trust"][0].message.endswith("0 grants")


def test_extras_are_listed_with_the_command_that_adds_them(home: Path) -> None:
    found = {one.message.partition(":")[0]: one for one in look(home)["extra"]}
    assert found.keys() == {"agent", "mcp", "otel", "sandbox", "semantic", "store", "watch", "web"}
    assert all(one.state in {"ok", "note"} for one in found.values())


def test_without_its_modules_an_extra_is_noted_and_no_problem(home: Path, tmp_path: Path) -> None:
    """In a Python that sees this package and nothing else that is installed."""
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "prowess").symlink_to(Path(prowess.__file__).parent)
    program = (
        "import sys, prowess\nfor one in prowess.doctor(*sys.argv[1:]):\n    print(one.topic, one.state, one.message)"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(home / "project"), str(home)],
        env={**os.environ, "PYTHONPATH": str(bare)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "extra note mcp: not installed (serving skills to MCP clients" in done.stdout
    assert "to add it, install Prowess with the extra 'mcp'" in done.stdout
    assert "to add it, install Prowess with the extra 'watch'" in done.stdout


def test_without_git_the_remedy_is_to_install_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    (found,) = look(home)["git"]
    assert (found.state, found.message) == ("problem", "git is not installed")


def test_a_git_that_does_not_run_is_a_problem(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "git").write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    (tmp_path / "bin" / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    assert look(home)["git"][0].state == "problem"


def test_broken_links_skills_that_do_not_load_and_agents_are_found(home: Path) -> None:
    (home / ".claude" / "skills" / "bad").mkdir(parents=True)
    (home / ".claude" / "skills" / "bad" / "SKILL.md").write_text("nothing", encoding="utf-8")
    (home / ".claude" / "skills" / "gone").symlink_to("nowhere")
    found = look(home)
    assert any("bad/SKILL.md:1: [no-frontmatter]" in one.message for one in found["skill"])
    assert any("gone leads to nowhere" in one.message for one in found["link"])
    assert any("Claude Code (claude-code)" in one.message for one in found["agent"])


def test_shadowed_copies_are_noted(home: Path) -> None:
    for folder in (home / "project" / ".agents" / "skills", home / ".agents" / "skills"):
        prowess.create_skill("one", folder)
    assert [one.state for one in look(home)["skill"]] == ["note"]


def test_damaged_grants_and_settings_are_problems(home: Path) -> None:
    own = home / ".config" / "prowess"
    own.mkdir(parents=True)
    (own / "trust.json").write_text("{", encoding="utf-8")
    (own / "trust.json").chmod(0o600)
    (home / "project" / "prowess.toml").write_text("[settings]\nnope = 1\n", encoding="utf-8")
    found = look(home)
    assert [one.state for one in found["trust"]] == ["problem"]
    assert found["settings"][-1].state == "problem"
    (home / "project" / "prowess.toml").write_text("[settings]\nbudget = 'x'\n", encoding="utf-8")
    assert "problem" in [one.state for one in look(home)["settings"]]


def test_a_manifest_that_makes_no_sense_is_a_problem_that_names_it(home: Path) -> None:
    (home / "project" / "prowess.toml").write_text("[skills]\na = 'x'\n", encoding="utf-8")
    (found,) = look(home)["manifest"]
    assert (found.state, str(home / "project") in found.message) == ("problem", True)
    (home / "project" / "prowess.toml").write_text("skills = []\n", encoding="utf-8")
    assert [one.state for one in look(home)["manifest"]] == ["ok"]
    (home / "project" / "prowess.toml").write_text("skills = ['./a']\n", encoding="utf-8")
    declared, unlocked = look(home)["manifest"]
    assert (declared.state, unlocked.state, unlocked.code) == ("ok", "problem", "lock-outdated")
    (home / "project" / "prowess.toml").write_text("skills = [", encoding="utf-8")
    assert all(str(home / "project") in one.message for one in look(home)["settings"])


def test_a_folder_that_the_settings_name_and_that_is_not_there_is_a_problem(home: Path) -> None:
    (home / "project" / "prowess.toml").write_text('[settings]\nfolders = ["gone"]\n', encoding="utf-8")
    (found,) = [one for one in look(home)["settings"] if one.state == "problem"]
    assert "gone is not there, and the setting 'folders' (" in found.message
    assert found.remedy == "check its path, create the folder, or leave it out"


def test_lock_files_are_compared_with_the_disk(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home / "project")
    source = prowess.create_skill("one", home / "source")
    made = prowess.Installer(home / ".config/prowess/skills", home / "project/.prowess/skills").install_local(
        source, project=True
    )
    assert [one.state for one in look(home)["lock"]] == ["ok"]
    (made / "SKILL.md").write_text("changed", encoding="utf-8")
    assert "problem" in [one.state for one in look(home)["lock"]]
    (home / "project" / "prowess.lock").write_text("nonsense", encoding="utf-8")
    assert "problem" in [one.state for one in look(home)["locks"]]


@pytest.fixture
def pair(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two skills of one source, installed for the project; where they lie."""
    monkeypatch.chdir(home / "project")
    for name in ("one", "two"):
        prowess.create_skill(name, home / "pair" / "skills", parts=["references"])
    installer = prowess.Installer(home / ".config/prowess/skills", home / "project/.prowess/skills")
    return installer.install_local(home / "pair", project=True)


def problems_of(home: Path) -> list[prowess.Diagnosis]:
    return [one for found in look(home).values() for one in found if one.state == "problem" and one.topic != "sandbox"]


def test_an_install_that_is_gone_is_one_problem_however_many_links_led_to_it(home: Path, pair: Path) -> None:
    shutil.rmtree(pair)
    (problem,) = problems_of(home)
    assert (problem.topic, problem.message) == ("lock", f"{pair}: local/pair is missing")
    assert problem.remedy == "run 'prowess sync --locked'"


def test_an_edited_install_is_one_problem_also_where_its_skills_no_longer_load(home: Path, pair: Path) -> None:
    (pair / "skills/one/SKILL.md").write_text("broken", encoding="utf-8")
    (pair / "skills/two/extra.txt").write_text("more", encoding="utf-8")
    (problem,) = problems_of(home)
    assert problem.message.startswith(f"{pair}: local/pair has 2 differences from the lock file: ")
    assert "skills/one/SKILL.md is not what the lock file says" in problem.message
    assert "skills/two/extra.txt is not in the lock file" in problem.message


def test_many_differences_are_counted_and_some_are_named(home: Path, pair: Path) -> None:
    for number in range(9):
        (pair / f"skills/one/extra-{number}.txt").write_text("more", encoding="utf-8")
    (problem,) = problems_of(home)
    assert "9 differences from the lock file: " in problem.message
    assert problem.message.endswith(" and 4 more")


def test_a_manifest_that_is_not_toml_is_one_problem(home: Path) -> None:
    (home / "project" / "prowess.toml").write_text("skills = [", encoding="utf-8")
    (problem,) = problems_of(home)
    assert "not TOML" in problem.message
    assert problem.path == str(home / "project" / "prowess.toml")


def test_a_link_that_no_lock_file_knows_is_a_problem_of_its_own(home: Path, pair: Path) -> None:
    (home / "project/.agents/skills/gone").symlink_to("nowhere")
    (pair / "skills/one/extra.txt").write_text("more", encoding="utf-8")
    assert sorted(problem.topic for problem in problems_of(home)) == ["link", "lock"]

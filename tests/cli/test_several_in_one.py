"""One install of several skills, linked for agents: each counts once, and each is judged by its own files."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

from tests.repositories import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command

NAMES = ("alpha", "beta", "gamma")


@pytest.fixture
def pack(command: Command, project: Path, tmp_path: Path) -> Path:
    """Where the three skills of one repository are installed."""
    made = Repository(tmp_path / "repositories" / "pack")
    for name in NAMES:
        made.skill(f"skills/{name}")
    made.commit()
    ran = command("install", made.address, "--project", "--agent", "claude-code", "--yes")
    assert ran.status == 0, ran.err
    return project / ".prowess/skills/local/pack"


def test_only_the_skill_that_was_changed_is_said_to_be(command: Command, pack: Path) -> None:
    with (pack / "skills/beta/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("More.\n")
    ran = command("list", "--json")
    said = {skill["name"]: skill["marks"] for skill in ran.data["skills"] if skill["name"] in NAMES}
    assert ["changed since installed" in said[name] for name in NAMES] == [False, True, False]
    assert ["verified" in said[name] for name in NAMES] == [True, False, True]
    assert "changed-since-locked] beta" in command("preview", "beta").err
    assert "changed-since-locked" not in command("preview", "alpha").err


def test_an_install_that_gives_up_a_skill_is_not_behind(command: Command, pack: Path, tmp_path: Path) -> None:
    address = str(tmp_path / "repositories" / "pack")
    assert command("install", f"{address}@alpha", "--project", "--replace", "--yes").status == 0
    assert command("verify").status == 0
    assert pack.is_dir()
    for words in (("outdated",), ("list", "--installed")):
        ran = command(*words)
        assert "another version" not in ran.out + ran.err, words
        assert "not synced" not in ran.out + ran.err, words


def test_a_skill_that_is_linked_for_two_agents_is_checked_once(command: Command, pack: Path) -> None:
    assert pack.is_dir()
    ran = command("check", ".agents/skills", ".claude/skills", "--json")
    found = [skill for skill in ran.data["skills"] if skill.rpartition("/skills/")[2].split("/")[0] in NAMES]
    assert len(found) == len(NAMES)
    assert [f for f in ran.data["findings"] if f["code"] in {"duplicate-name", "similar-name"}] == []


def test_in_a_project_with_only_installed_skills_the_check_says_so_and_finds_nothing(
    command: Command, project: Path, tmp_path: Path
) -> None:
    rmtree(project / ".agents")
    made = Repository(tmp_path / "repositories" / "odd")
    made.write("SKILL.md", "---\nname: odd\ndescription: Use: it\n---\nDo it.\n")
    made.commit()
    assert command("install", made.address, "--project", "--agent", "claude-code", "--yes").status == 0
    ran = command("check", "--strict")
    assert (ran.status, ran.out) == (0, "")
    assert "only installed skills (odd)" in ran.err
    assert command("check", "--json").data["findings"] == []
    assert command("check", ".claude/skills").status == 1


def test_links_of_agents_that_lead_out_of_their_folder_do_not_fail_a_check_of_the_project(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a repository nothing says that such a link stays in the project, so that it is not followed."""
    folder = tmp_path / "without-git"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert command("new", "report").status == 0
    assert command("install", "./report", "--project", "--yes").status == 0
    ran = command("check")
    assert (ran.status, ran.out) == (0, "")
    assert "only installed skills (report)" in ran.err
    rmtree(folder / ".prowess")
    ran = command("check")
    assert (ran.status, "only installed skills (report)" in ran.err) == (0, True)
    (folder / "prowess.lock").unlink()
    ran = command("check")
    assert (ran.status, "there is no skill where agents look" in ran.err) == (3, True)


def test_what_the_lock_file_owns_is_not_mended_in_place(command: Command, project: Path, tmp_path: Path) -> None:
    made = Repository(tmp_path / "repositories" / "odd")
    made.write("SKILL.md", "---\nname: odd\ndescription: Use: it\n---\nDo it.\n")
    made.commit()
    assert command("install", made.address, "--project", "--yes").status == 0
    mine = project / ".agents/skills/mine/SKILL.md"
    mine.parent.mkdir()
    mine.write_text("---\nname: mine\ndescription: Use: mine\n---\nDo it.\n", encoding="utf-8")
    ran = command("check", "--fix")
    assert "not fixed, since prowess.lock pins them: odd" in ran.err
    assert mine.read_text(encoding="utf-8").splitlines()[2] in {'description: "Use: mine"', "description: 'Use: mine'"}
    assert command("verify").status == 0


def test_a_list_says_from_where_an_installed_skill_came(command: Command, pack: Path) -> None:
    ran = command("list", "--json")
    sources = {skill["name"]: skill["source"] for skill in ran.data["skills"]}
    assert pack.name in sources["alpha"]
    assert sources["csv-report"] == ""
    assert f"from {sources['alpha']}" in command("list").out


def test_removing_an_install_says_which_skills_go_and_one_of_them_alone_is_refused(
    command: Command, pack: Path
) -> None:
    ran = command("remove", pack.name, "--dry-run")
    assert "with all 3 skills in it: alpha, beta, gamma" in ran.plan
    assert "error[part-of-install]" in command("remove", "beta", "gamma", "--yes").err
    assert pack.is_dir()


def test_an_update_takes_a_damaged_lock_file_for_no_empty_one(command: Command, project: Path) -> None:
    (project / "prowess.lock").write_text("version = 0\n", encoding="utf-8")
    ran = command("update")
    assert (ran.status, "error[bad-lock]" in ran.err) == (3, True)

"""``prowess diff``: an install as it is here, as the lock file has it, and as its source has it now."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

import prowess
from tests.cli.samples import installed
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Command


@pytest.fixture
def repository(tmp_path: Path, command: Command) -> Repository:  # noqa: ARG001 - its project is installed into
    """A repository with one skill, installed for the project from its main branch."""
    made = Repository(tmp_path / "repositories" / "alpha")
    made.skill("", body="One.\nTwo.\nThree.\n")
    made.commit()
    prowess.Installer().install(made.address, project=True)
    return made


def installed_file(project: Path, name: str = "SKILL.md") -> Path:
    return project / ".prowess/skills/local/alpha" / name


def test_what_differs_nowhere_is_said_so_with_status_0(command: Command, repository: Repository) -> None:
    assert repository.path.exists()
    ran = command("diff", "alpha")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "local/alpha is what prowess.lock says, and what its source has now.\n"


def test_without_a_name_every_install_is_compared(
    command: Command, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repository.path.exists()
    assert command("diff").out == command("diff", "alpha").out
    assert "--lock takes BASE" in command("diff", "--lock").err
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ".git").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    nothing = command("diff")
    assert (nothing.status, "no prowess.lock here" in nothing.err) == (0, True)


def test_mine_and_the_sources_are_each_shown_against_what_is_locked(
    command: Command, project: Path, repository: Repository
) -> None:
    installed_file(project).write_text(skill_text("alpha", "One.\nMine.\nThree.\n"), encoding="utf-8")
    installed_file(project, "mine.md").write_text("New here.\n", encoding="utf-8")
    repository.skill("", body="One.\nTwo.\nTheirs.\n")
    newest = repository.commit()
    ran = command("diff", "alpha")
    mine, _, upstream = ran.out.partition("What its source has now")
    assert ran.status == 1
    assert "-Two.\n" in mine.replace("  -", "-")
    assert "+Mine.\n" in mine.replace("  +", "+")
    assert "+New here.\n" in mine.replace("  +", "+")
    assert "+Theirs.\n" in upstream.replace("  +", "+")
    assert "Mine." not in upstream
    row = command("diff", "alpha", "--json").data["diffs"][0]
    assert (row["edited_files"], row["updated_files"]) == (["SKILL.md", "mine.md"], ["SKILL.md"])
    assert row["newest"] == newest
    assert prowess.Installer().diff("@local/alpha").updates == row["updates"]


def test_a_source_that_cannot_be_asked_is_said_and_mine_is_shown_all_the_same(
    command: Command, project: Path, repository: Repository
) -> None:
    shutil.rmtree(repository.path)
    ran = command("diff", "alpha")
    assert (ran.status, "its source could not be asked" in ran.err) == (3, True)
    assert "has now" not in ran.out
    installed_file(project).write_text(skill_text("alpha", "Mine.\n"), encoding="utf-8")
    ran = command("diff", "alpha")
    assert ran.status == 1
    assert "SKILL.md differs; what was locked is not at hand, so its lines are not shown" in ran.out
    assert "its source could not be asked" in ran.err
    ran = command("diff", "alpha", "--json")
    assert (ran.status, ran.data["diffs"][0]["newest"]) == (1, "")
    assert "there is no repository" in ran.data["diffs"][0]["why_unasked"]


def test_files_that_are_missing_binary_large_or_full_of_escapes_are_harmless(
    command: Command, project: Path, repository: Repository
) -> None:
    repository.write("gone.md", "To be deleted.\n")
    repository.commit()
    prowess.Installer().update("@local/alpha")
    installed_file(project, "gone.md").unlink()
    text = skill_text("alpha", "\x1b]0;owned\x07\u202eTwo.\n")
    installed_file(project).write_text(text, encoding="utf-8")
    installed_file(project, "picture.png").write_bytes(b"\x89PNG\0\1")
    installed_file(project, "long.md").write_text("x" * 70_000, encoding="utf-8")
    installed_file(project, "out").symlink_to("/etc/passwd")
    ran = command("diff", "alpha")
    assert ran.status == 1
    assert "\x1b" not in ran.out
    assert "\\x1b]0;owned" in ran.out
    assert "-To be deleted." in ran.out
    for name in ("picture.png", "long.md"):
        assert f"binary or large files /dev/null and b/{name} differ" in ran.out
    assert "out is a link, not a file" in ran.out
    assert "root:" not in ran.out


def test_a_link_in_the_place_of_a_file_that_its_source_changed_is_not_followed(
    command: Command, project: Path, repository: Repository
) -> None:
    repository.skill("", body="Newer.\n")
    repository.commit()
    secret = project / "secret.md"
    secret.write_text("Secret.\n", encoding="utf-8")
    installed_file(project).unlink()
    installed_file(project).symlink_to(secret)
    ran = command("diff", "alpha")
    assert (ran.status, "+Newer." in ran.out, "Secret." in ran.out) == (1, True, False)
    assert "SKILL.md is a link, not a file" in ran.out


def test_what_a_folder_had_is_shown_from_whichever_side_still_has_it(command: Command, project: Path) -> None:
    installed()
    source = project / "elsewhere/notes/SKILL.md"
    source.write_text(source.read_text(encoding="utf-8") + "More.\n", encoding="utf-8")
    ran = command("diff", "notes")
    assert (ran.status, "+More." in ran.out) == (1, True)
    assert "What is here" not in ran.out


def test_looking_at_differences_changes_nothing(command: Command, project: Path, repository: Repository) -> None:
    repository.skill("", body="Newer.\n")
    repository.commit()
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in project.rglob("*"))
    assert command("diff", "alpha").status == 1
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in project.rglob("*")) == before


def test_a_skill_without_a_source_is_compared_with_the_lock_file_alone(command: Command, project: Path) -> None:
    prowess.Installer().adopt("csv-report")
    ran = command("diff", "csv-report")
    assert (ran.status, "is what prowess.lock says; it has no source to compare it with" in ran.out) == (0, True)
    (project / ".agents/skills/csv-report/SKILL.md").unlink()
    assert command("diff", "csv-report").status == 1


def test_copies_where_agents_look_are_compared_each_by_its_own_path(
    command: Command, project: Path, tmp_path: Path
) -> None:
    made = Repository(tmp_path / "repositories" / "pair")
    for name in ("one", "two"):
        made.skill(f"skills/{name}", body="Before.\n")
    made.commit()
    prowess.Installer().install(made.address, project=True, copy=True, agents=["claude-code"])
    assert command("diff", "pair").status == 0
    copy = project / ".claude/skills/two/SKILL.md"
    copy.write_text(copy.read_text(encoding="utf-8").replace("Before.", "Mine."), encoding="utf-8")
    made.skill("skills/one", body="Theirs.\n")
    made.commit()
    shutil.move(made.path, made.path.with_name("away"))
    sides = prowess.Installer().diff("@local/pair")
    assert "-Before.\n+Mine.\n" in sides.edits  # the other copy has what was locked
    shutil.move(made.path.with_name("away"), made.path)
    sides = prowess.Installer().diff("@local/pair")
    assert sides.edited_files == (".claude/skills/two/SKILL.md",)
    assert [row for row in sides.edits.splitlines() if row in {"-Before.", "+Mine."}] == ["-Before.", "+Mine."]
    assert sides.updated_files == ("skills/one/SKILL.md",)
    assert [row for row in sides.updates.splitlines() if row in {"-Before.", "+Theirs."}] == ["-Before.", "+Theirs."]

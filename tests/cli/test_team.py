"""A project that several people work on: manifest, lock file and clones, from wherever in it a command is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from prowess.lockfile.read import read_lock
from tests.cli.conftest import COLOURS
from tests.repositories import Repository, skill_text

if TYPE_CHECKING:
    from tests.cli.conftest import Command, Terminal


@pytest.fixture
def alpha(tmp_path: Path) -> Repository:
    """A repository with one skill in three versions; the third is the second under another name."""
    made = Repository(tmp_path / "repositories" / "alpha")
    for tag in ("v1.0.0", "v1.1.0"):
        made.skill("", body=f"This is {tag}.\n")
        made.commit(tag=tag)
    made.git("tag", "v1.1.1")
    return made


def declare(project: Path, *entries: str) -> None:
    (project / "prowess.toml").write_text(f"skills = [{', '.join(entries)}]\n", encoding="utf-8")


def body(project: Path) -> str:
    return (project / ".agents/skills/alpha/SKILL.md").read_text(encoding="utf-8")


# -- the manifest and the lock file ------------------------------------------------------------------------------------


def test_a_version_that_is_updated_first_and_declared_then_stays(
    command: Command, project: Path, alpha: Repository
) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    assert command("sync", "--yes").status == 0
    (project / "prowess.toml").unlink()  # as while somebody edits it
    assert command("update", "alpha@v1.1.0", "--yes").status == 0
    declare(project, f'{{ source = "{alpha.address}", ref = "v1.1.0" }}')
    ran = command("sync", "--yes")
    assert ran.status == 0
    assert (ran.plan, ran.err) == ("Plan:\n  - record local/alpha as declared\n", "")
    assert "This is v1.1.0." in body(project)
    assert read_lock(str(project))["local/alpha"].declared == f"{alpha.address}#v1.1.0"
    assert command("sync", "--locked").out == "Nothing to do.\n"


def test_an_update_changes_the_version_that_the_manifest_declares(
    command: Command, project: Path, alpha: Repository
) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    command("sync", "--yes")
    ran = command("update", "alpha@v1.1.0", "--yes")
    assert (ran.status, "still-declared" in ran.err) == (0, False)
    assert (project / "prowess.toml").read_text(encoding="utf-8") == f'skills = ["{alpha.address}#v1.1.0"]\n'
    assert command("sync", "--locked").status == 0
    assert command("sync", "--yes").out == "Nothing to do.\n"
    assert "This is v1.1.0." in body(project)


def test_a_manifest_that_goes_back_to_an_earlier_version_is_followed_and_refused_when_locked(
    command: Command, project: Path, alpha: Repository
) -> None:
    declare(project, f'"{alpha.address}#v1.1.0"')
    command("sync", "--yes")
    declare(project, f'"{alpha.address}#v1.0.0"')
    ran = command("sync", "--locked")
    assert (ran.status, "error[lock-outdated]" in ran.err) == (3, True)
    assert "local/alpha is locked at v1.1.0" in ran.err
    assert command("sync", "--locked", "--dry-run").status == 3
    ran = command("sync", "--yes")
    assert "- update local/alpha v1.1.0 → v1.0.0, which the manifest declares\n" in ran.plan
    assert "This is v1.0.0." in body(project)


def test_an_install_is_declared_and_a_removal_takes_it_out_again(
    command: Command, project: Path, alpha: Repository
) -> None:
    declare(project)
    plan = command("install", alpha.address, "--project", "--yes", "--json").data["plan"]
    assert plan[-1] == "declare it in prowess.toml"
    assert f'"{alpha.address}"' in (project / "prowess.toml").read_text(encoding="utf-8")
    assert command("sync", "--locked").status == 0
    plan = command("remove", "alpha", "--yes", "--json").data["plan"]
    assert plan[-1] == "take it out of the manifest"
    assert alpha.address not in (project / "prowess.toml").read_text(encoding="utf-8")
    command("install", alpha.address, "--project", "--yes", "--no-save")
    assert alpha.address not in (project / "prowess.toml").read_text(encoding="utf-8")
    assert command("sync", "--remove", "--yes").out == "Nothing to do.\n"
    assert "This is v1.1.0." in body(project)


def test_a_skill_that_is_no_longer_declared_stays_unless_its_removal_is_asked_for_and_the_exit_status_says_so(
    command: Command, project: Path, alpha: Repository
) -> None:
    declare(project, f'"{alpha.address}"')
    command("sync", "--yes")
    unknown = project / ".prowess/skills/acme/tool"
    unknown.mkdir(parents=True)
    declare(project)
    assert command("sync", "--dry-run").status == 1
    for words in (("--yes",), ()):  # nobody is here to ask, so nothing is removed either
        ran = command("sync", *words)
        assert (ran.status, ran.out) == (1, "Nothing was changed.\n")
        assert "[declared-no-more] the manifest does not declare local/alpha any more" in ran.err
        assert "[not-in-lock] acme/tool is not in the lock file" in ran.err
        assert "prowess sync --remove" in ran.err
    assert ("This is v1.1.0." in body(project), unknown.is_dir()) == (True, True)
    data = command("sync", "--json").data
    assert [issue["code"] for issue in data["issues"]] == ["declared-no-more", "not-in-lock"]
    ran = command("sync", "--remove", "--yes")
    assert (ran.status, ran.report) == (0, "Removed local/alpha.\n")
    assert not (project / ".agents/skills/alpha").is_symlink()
    (backup,) = command("backups", "--json").data["backups"]
    assert (backup["skill"], backup["why"]) == ("acme/tool", "it was in no lock file")
    assert f"[backed-up] acme/tool is kept at {backup['path']}" in ran.err
    assert command("sync", "--locked").status == 0
    assert command("sync", "--remove", "--locked").status == 2


def test_a_yes_on_a_terminal_removes_and_a_no_leaves(
    command: Command, terminal: Terminal, project: Path, alpha: Repository
) -> None:
    declare(project, f'"{alpha.address}"')
    command("sync", "--yes")
    declare(project)
    ran = terminal("sync", typed="n\n", both=True)
    assert (ran.status, "the manifest does not declare local/alpha any more" in ran.out) == (1, True)
    assert (project / ".agents/skills/alpha").is_dir()
    ran = terminal("sync", typed="y\n", both=True)
    assert (ran.status, "Removed local/alpha" in COLOURS.sub("", ran.out)) == (0, True)
    assert not (project / ".agents/skills/alpha").is_symlink()


def commands_of(shown: str, *programs: str) -> list[str]:
    """The lines of an answer that are commands to paste."""
    return [row.strip() for row in shown.splitlines() if row.strip().split(" ")[0] in programs]


def test_what_backups_prints_takes_an_edit_over_and_keeps_an_update(command: Command, project: Path) -> None:
    """A colleague updated the skill meanwhile, and there is an older backup of the same skill."""
    source = Repository(project.parent / "repositories" / "tool")
    for version in ("1", "2"):
        source.skill("", "tool", body="This is the skill.\n")
        source.write("notes/a b.md", f"Notes {version}.\n")
        source.commit(tag=f"v{version}")
    command("install", f"{source.address}#v1", "--project", "--yes")
    file = project / ".prowess/skills/local/tool/SKILL.md"
    for edit in ("An old edit.", "My edit."):
        file.write_text(skill_text("tool", f"{edit}\n"), encoding="utf-8")
        assert command("sync", "--yes").status == 0
    file.write_text(skill_text("tool", "My last edit.\n"), encoding="utf-8")
    assert command("update", "tool@v2", "--force", "--yes").status == 0
    locked = (project / "prowess.lock").read_bytes()
    shown = command("backups").out
    assert [row.split()[0] for row in shown.splitlines()[1:4]] == ["local/tool"] * 3
    data = command("backups", "--json").data["backups"]
    assert [one["when"] for one in data] == sorted((one["when"] for one in data), reverse=True)
    assert {one["place"] for one in data} == {str(file.parent)}
    assert not commands_of(shown, "prowess")
    comparing, copying = commands_of(shown, "diff", "cp")
    compared = subprocess.run(["/bin/sh", "-c", comparing], cwd=project, capture_output=True, text=True, check=False)
    assert "> My last edit." in compared.stdout
    assert shown.index("an update has changed them") < shown.index(copying)
    subprocess.run(["/bin/sh", "-c", copying], cwd=project, check=True)
    assert "My last edit." in file.read_text(encoding="utf-8")
    assert (file.parent / "notes" / "a b.md").read_text(encoding="utf-8") == "Notes 2.\n"
    assert (project / "prowess.lock").read_bytes() == locked
    assert read_lock(str(project))["local/tool"].kind == "git"
    assert [one["field"] for one in command("verify", "--json").data["issues"]] == ["SKILL.md"]


def test_a_file_that_somebody_added_is_taken_over_from_a_backup(
    command: Command, project: Path, alpha: Repository
) -> None:
    command("install", alpha.address, "--project", "--yes")
    added = project / ".prowess/skills/local/alpha/mine.md"
    added.write_text("Mine.\n", encoding="utf-8")
    command("sync", "--yes")
    assert not added.exists()
    (copying,) = commands_of(command("backups").out, "cp")
    subprocess.run(["/bin/sh", "-c", copying], cwd=project, check=True)
    assert added.read_text(encoding="utf-8") == "Mine.\n"


def test_a_backup_of_a_removed_skill_becomes_a_skill_of_your_own(
    command: Command, project: Path, alpha: Repository
) -> None:
    assert command("backups").out == "There are no backups.\n"
    command("install", alpha.address, "--project", "--yes")
    (project / ".agents/skills/alpha/SKILL.md").write_text(skill_text("alpha", "Mine.\n"), encoding="utf-8")
    data = command("remove", "alpha", "--yes", "--json").data
    (backup,) = command("backups", "--json").data["backups"]
    assert [(issue["code"], issue["path"]) for issue in data["issues"]] == [("backed-up", backup["path"])]
    copying, using = commands_of(command("backups").out, "cp", "prowess")
    subprocess.run(copying.split(), check=True)
    assert command(*using.split()[1:], "--yes").status == 0
    assert "Mine." in body(project)


def test_names_of_backups_that_came_with_a_clone_hide_no_other_and_run_nothing(command: Command, project: Path) -> None:
    kept = project / ".prowess/skills/.backup"
    (kept / "x+edited+ffffffffffffff-000000000000").mkdir(parents=True)  # a year that no calendar has
    (kept / "$(touch ran); a+edited+0193fa5c1234-0123456789ab").mkdir()
    shown = command("backups")
    assert shown.status == 0
    copying, using = commands_of(shown.out, "cp", "prowess")
    subprocess.run(["/bin/sh", "-c", f"{copying}; : {using}"], check=True)
    assert not (project / "ran").exists()
    assert (project / "$(touch ran); a").is_dir()


def test_the_same_files_at_a_later_commit_are_recorded_so_that_they_are_not_named_for_ever(
    command: Command, tmp_path: Path
) -> None:
    pack = Repository(tmp_path / "pack")
    pack.skill("skills/one")
    pack.commit()
    command("install", pack.address, "--project", "--yes")
    pack.write("elsewhere.txt", "no part of the skill")
    pack.commit()
    assert command("outdated").status == 1
    ran = command("update")  # nobody is here to ask, and nothing needs asking
    assert (ran.status, "current local/pack" in ran.out) == (0, True)
    assert command("outdated").out == "Everything is current.\n"
    assert command("sync", "--locked").status == 0


def test_a_version_that_is_declared_anew_is_an_update(command: Command, project: Path, alpha: Repository) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    command("sync", "--yes")
    declare(project, f'{{ source = "{alpha.address}", ref = "v1.1.0" }}')
    ran = command("sync", "--yes")
    assert ran.plan == "Plan:\n  - update local/alpha v1.0.0 → v1.1.0, which the manifest declares\n"
    assert ran.report.startswith("Updated local/alpha for the project")
    assert "This is v1.1.0." in body(project)


def test_another_source_of_a_declared_name_replaces_it(
    command: Command, project: Path, alpha: Repository, tmp_path: Path
) -> None:
    other = Repository(tmp_path / "others" / "alpha")
    other.skill("", body="Another.\n")
    other.commit(tag="v9")
    declare(project, f'"{alpha.address}"')
    command("sync", "--yes")
    declare(project, f'"{other.address}"')
    ran = command("sync", "--yes")
    assert "replace local/alpha, which came from" in ran.plan
    assert "remove" not in ran.plan
    assert "Another." in body(project)


def test_a_table_of_the_manifest_is_shown_as_people_say_it(command: Command, project: Path, alpha: Repository) -> None:
    declare(project, f'{{ source = "{alpha.address}", ref = "v1.0.0", skills = ["alpha"] }}')
    ran = command("sync", "--dry-run")
    assert f"- install {alpha.address} at v1.0.0 (alpha), which the manifest declares\n" in ran.plan
    assert "{" not in ran.out
    assert command("sync", "--locked").out.count("{") == 0


def test_the_same_content_under_another_version_is_recorded(command: Command, project: Path, alpha: Repository) -> None:
    declare(project, f'"{alpha.address}#v1.1.0"')
    command("sync", "--yes")
    ran = command("update", "alpha@v1.1.1", "--yes")
    assert "available local/alpha: the same content, as v1.1.1\n" in ran.out
    assert read_lock(str(project))["local/alpha"].ref == "v1.1.1"
    assert f'"{alpha.address}#v1.1.1"' in (project / "prowess.toml").read_text(encoding="utf-8")
    assert command("sync").out == "Nothing to do.\n"


# -- the project's own skills ------------------------------------------------------------------------------------------


def own_skill(project: Path) -> Path:
    folder = project / ".claude/skills/handy"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("handy"), encoding="utf-8")
    return folder


def test_the_projects_own_skills_stay_in_its_repository(command: Command, project: Path) -> None:
    shutil.rmtree(project / ".agents")
    folder = own_skill(project)
    ran = command("adopt", "--dry-run")
    assert "- leave .claude/skills/handy, which has no recorded source: a clone could not get it" in ran.plan
    ran = command("adopt")  # nobody is asked where nothing is to be done
    assert (ran.status, ran.report, "[no-source]" in ran.err) == (0, "Nothing to adopt.\n", True)
    assert not folder.is_symlink()
    assert not (project / "prowess.lock").exists()


def test_what_would_be_adopted_is_named(command: Command, project: Path) -> None:
    folder = own_skill(project)
    ran = command("adopt", "handy", "--dry-run")
    assert "- take over .claude/skills/handy as local/handy, and record it in prowess.lock\n" in ran.plan
    assert "'git add --force .prowess/skills/local/handy', or clones cannot get it\n" in ran.plan
    assert (ran.status, folder.is_symlink()) == (0, False)
    shutil.rmtree(folder)
    shutil.rmtree(project / ".agents")
    assert command("adopt", "--dry-run").out == "Nothing to adopt.\n"


def test_an_entry_without_a_source_keeps_nobody_from_the_others(
    command: Command, project: Path, alpha: Repository
) -> None:
    own_skill(project)
    command("adopt", "handy", "--yes")
    command("install", alpha.address, "--project", "--yes")
    shutil.rmtree(project / ".prowess")
    ran = command("sync", "--locked")
    assert (ran.status, "error[no-source]" in ran.err, "local/handy is missing" in ran.err) == (3, True, True)
    assert "prowess remove NAME" in ran.err
    ran = command("sync", "--dry-run")
    assert "handy" not in ran.plan
    ran = command("sync", "--yes")
    assert (ran.status, ran.report.startswith("Installed local/alpha")) == (0, True)
    assert "[no-source] local/handy is missing" in ran.err
    ran = command("remove", "handy", "--yes")
    assert (ran.status, "drop local/handy and its links from prowess.lock" in ran.plan) == (0, True)
    assert not os.path.lexists(project / ".claude/skills/handy")
    assert command("sync", "--locked").out == "Nothing to do.\n"
    assert command("remove", "@local/handy", "--yes").status == 3


def test_an_adopted_skill_whose_folder_is_committed_is_there_after_a_clone(command: Command, project: Path) -> None:
    own_skill(project)
    command("adopt", "handy", "--yes")
    ran = command("adopt", "handy", "--yes")
    assert (ran.status, ran.report) == (0, "Nothing to adopt.\n")
    shutil.rmtree(project / ".prowess/skills/.backup")
    assert command("sync", "--locked").out == "Nothing to do.\n"


def test_a_version_that_is_not_installed_is_not_removed(command: Command, project: Path, alpha: Repository) -> None:
    command("install", f"{alpha.address}#v1.0.0", "--project", "--yes")
    ran = command("remove", "alpha@v9", "--dry-run")
    assert (ran.status, "local/alpha is installed at v1.0.0, not at v9" in ran.err) == (3, True)
    assert command("remove", "alpha@v1.0.0", "--yes").status == 0
    assert not (project / ".prowess/skills/local/alpha").exists()


# -- wherever in the project -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [".git", "prowess.lock"])
def test_a_subfolder_of_a_project_belongs_to_it(
    command: Command, project: Path, alpha: Repository, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    command("sync", "--yes")
    if mark != ".git":
        (project / ".git").rmdir()
    inner = project / "docs" / "deep"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert "alpha" in command("list").out
    assert command("verify").out == "1 skill installed, all as the lock files say.\n"
    assert command("link", "alpha", "--agent", "windsurf", "--yes").status == 0
    assert (project / ".windsurf/skills/alpha").is_symlink()
    assert command("update", "alpha@v1.1.0", "--yes").status == 0
    assert command("sync", "--locked").out == "Nothing to do.\n"
    assert (project / ".windsurf/skills/alpha").is_symlink()
    assert "v1.1.1" in command("outdated").out
    (project / ".agents/skills/alpha/SKILL.md").write_text("mine", encoding="utf-8")
    assert command("verify").status == 1
    assert command("remove", "alpha", "--yes").status == 0
    (inner / "other").mkdir()
    (inner / "other" / "SKILL.md").write_text(skill_text("other"), encoding="utf-8")
    assert command("install", "./other", "--project", "--yes").status == 0
    assert read_lock(str(project))["local/other"].source == "./docs/deep/other"
    assert [path.name for path in inner.iterdir()] == ["other"]


def test_a_project_in_a_project_is_its_own(
    command: Command, project: Path, alpha: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("install", alpha.address, "--project", "--yes")
    inner = project / "packages" / "one"
    inner.mkdir(parents=True)
    declare(inner, f'"{alpha.address}#v1.0.0"')
    monkeypatch.chdir(inner)
    assert command("sync", "--yes").status == 0
    assert (read_lock(str(inner))["local/alpha"].ref, read_lock(str(project))["local/alpha"].ref) == ("v1.0.0", "")


@pytest.mark.parametrize("words", [("verify",), ("sync",), ("sync", "--locked"), ("outdated",)])
def test_a_missing_lock_file_is_reported(
    command: Command, project: Path, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "docs").mkdir()
    monkeypatch.chdir(project / "docs")
    ran = command(*words)
    assert (ran.status, "no prowess.lock here: the project is ~/project" in ran.err) == (0, True)
    monkeypatch.chdir(project)
    assert "no prowess.lock here: the project is .\n" in command(*words).err


# -- sources on this machine -------------------------------------------------------------------------------------------


def clone(project: Path, to: Path) -> Path:
    """What a colleague gets: everything but .prowess, somewhere else."""
    shutil.copytree(project, to, symlinks=True, ignore=shutil.ignore_patterns(".prowess"))
    return to


def test_a_source_named_from_the_root_is_found_by_a_clone_at_another_depth(
    command: Command, project: Path, alpha: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    command("sync", "--yes")
    assert read_lock(str(project))["local/alpha"].source == str(alpha.path)
    monkeypatch.chdir(clone(project, project.parent / "a" / "b" / "project"))
    ran = command("sync", "--locked")
    assert (ran.status, ran.report.startswith("Installed local/alpha")) == (0, True)
    assert command("update", "alpha@v1.1.0", "--yes").status == 0
    assert read_lock(".")["local/alpha"].source == str(alpha.path)


@pytest.mark.parametrize(("written", "recorded"), [("./tools/notes", "./tools/notes"), ("~/notes", "~/notes")])
def test_a_source_named_otherwise_stays_as_it_was_named(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch, written: str, recorded: str
) -> None:
    folder = Path(written.replace("~", str(project.parent)))
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(skill_text("notes"), encoding="utf-8")
    declare(project, f'"{written}"')
    assert command("sync", "--yes").status == 0
    assert read_lock(str(project))["local/notes"].source == recorded
    monkeypatch.chdir(clone(project, project.parent / "a" / "project"))
    assert command("sync", "--locked").out.startswith("Installed local/notes")
    (folder / "more.md").write_text("more", encoding="utf-8")
    (Path("tools/notes") if written.startswith(".") else folder).joinpath("new.md").write_text("new", encoding="utf-8")
    assert command("update", "--yes").status == 0
    assert Path(".agents/skills/notes/new.md").is_file()
    assert read_lock(".")["local/notes"].source == recorded


def test_a_source_that_is_named_in_two_ways_is_one(command: Command, project: Path, alpha: Repository) -> None:
    command("install", f"{os.path.relpath(alpha.path, project)}#v1.0.0", "--project", "--yes")
    declare(project, f'"{alpha.address}#v1.0.0"')
    assert command("sync", "--yes").plan == "Plan:\n  - record local/alpha as declared\n"


def test_a_repository_that_is_not_on_this_machine_is_named(command: Command, project: Path, alpha: Repository) -> None:
    declare(project, f'"{alpha.address}#v1.0.0"')
    command("sync", "--yes")
    shutil.rmtree(project / ".prowess")
    shutil.rmtree(alpha.path)
    assert command("sync", "--locked", "--dry-run").status == 1
    ran = command("sync", "--locked")
    assert (ran.status, "error[no-repository]" in ran.err) == (3, True)
    assert f"there is no repository at {alpha.path}" in ran.err


def test_one_skill_that_is_installed_already_is_refused_before_any_plan(command: Command, tmp_path: Path) -> None:
    many = Repository(tmp_path / "repositories" / "many")
    many.skill("skills/charts")
    many.commit()
    command("install", f"{many.address}@charts", "--project", "--yes")
    ran = command("install", f"{many.address}@charts", "--project", "--yes")
    assert (ran.status, ran.out, "error[already-installed]" in ran.err) == (3, "", True)


# -- a fresh clone -----------------------------------------------------------------------------------------------------


def test_a_clone_says_what_brings_its_skills(
    command: Command, project: Path, alpha: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(project / ".agents")
    command("install", alpha.address, "--project", "--yes")
    monkeypatch.chdir(clone(project, project.parent / "clone"))
    said = "prowess.lock records 1 skill that is not here: prowess sync --locked"
    ran = command("list")
    assert (said in ran.out, "prowess new" in ran.out) == (True, False)
    assert said in command("list", "--json").err
    for words in (("preview", "alpha"), ("show", "alpha")):
        ran = command(*words)
        assert (ran.status, said in ran.err) == (3, True)
    assert said not in command("preview", "other").err
    problems = [one for one in command("doctor", "--json").data["diagnoses"] if one["code"] == "missing-skill"]
    assert [one["remedy"] for one in problems] == ["run 'prowess sync --locked'"]
    command("sync", "--locked")
    assert "records" not in command("list").out
    assert command("preview", "alpha").status == 0


# -- what goes wrong, and what is new ----------------------------------------------------------------------------------


def test_a_declaration_that_cannot_be_installed_is_named_with_what_was_done_before(
    command: Command, project: Path, alpha: Repository, tmp_path: Path
) -> None:
    beta = Repository(tmp_path / "repositories" / "beta")
    beta.skill("")
    beta.commit(tag="v1")
    declare(project, f'"{alpha.address}#v1.0.0"', f'"{beta.address}#v9"')
    ran = command("sync", "--yes")
    assert (ran.status, f"{beta.address}#v9: " in ran.err) == (3, True)
    assert "; installed all the same: local/alpha" in ran.err
    assert command("sync", "--yes").err.count("installed all the same") == 0


def test_what_cannot_be_restored_is_named_with_its_source(command: Command, project: Path, alpha: Repository) -> None:
    command("install", f"{alpha.address}#v1.0.0", "--project", "--yes")
    shutil.rmtree(project / ".prowess")
    shutil.rmtree(alpha.path)
    assert f"local/alpha from {alpha.path}: there is no repository" in command("sync", "--yes").err


def test_a_pinned_version_is_told_of_later_ones(command: Command, alpha: Repository) -> None:
    command("install", f"{alpha.address}#v1.0.0", "--project", "--yes")
    for tag in ("v1.10.0", "v2.0.0-rc1", "other-v9.0.0", "v1.9"):
        alpha.git("tag", tag)
    ran = command("outdated")
    assert (ran.status, ran.out.split()[-1]) == (1, "v1.10.0")
    (row,) = command("outdated", "--json").data["outdated"]
    assert (row["ref"], row["newer"], row["newest"] == row["current"]) == ("v1.0.0", "v1.10.0", True)
    command("update", "alpha@v1.10.0", "--yes")
    assert command("outdated").out == "Everything is current.\n"


def broken_skill(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: nodesc\n---\n# Title\n", encoding="utf-8")


def test_a_source_without_a_skill_that_can_be_loaded_is_refused(command: Command, project: Path) -> None:
    broken_skill(project / "nodesc")
    ran = command("install", "./nodesc", "--project", "--yes")
    assert (ran.status, "error[missing-description]" in ran.err) == (3, True)
    assert "./nodesc has no skill that can be loaded: SKILL.md: description is required" in ran.err
    assert not (project / "prowess.lock").exists()
    copied = command("install", "./nodesc", "--into", "vendor", "--yes")
    assert (copied.status, "error[missing-description]" in copied.err) == (3, True)
    assert not (project / "vendor").exists()


def test_one_skill_of_several_that_cannot_be_loaded_is_named(command: Command, project: Path) -> None:
    broken_skill(project / "pair/skills/nodesc")
    good = project / "pair/skills/good"
    good.mkdir()
    (good / "SKILL.md").write_text(skill_text("good"), encoding="utf-8")
    ran = command("install", "./pair", "--project", "--yes")
    assert ran.status == 0
    assert "[missing-description] skills/nodesc/SKILL.md: description is required" in ran.err


def test_a_version_in_which_no_skill_can_be_loaded_is_not_updated_to(
    command: Command, project: Path, alpha: Repository
) -> None:
    command("install", alpha.address, "--project", "--yes")
    alpha.write("SKILL.md", "---\nname: alpha\n---\n# Title\n")
    alpha.commit()
    ran = command("update", "--yes")
    assert (ran.status, "has no skill that can be loaded" in ran.out) == (1, True)
    assert "This is v1.1.0." in body(project)


def test_unlinking_leaves_no_folder_behind_that_linking_made(
    command: Command, project: Path, alpha: Repository
) -> None:
    command("install", alpha.address, "--project", "--yes")
    command("link", "alpha", "--agent", "windsurf", "--agent", "claude-code", "--yes")
    (project / ".claude/settings.json").write_text("{}", encoding="utf-8")
    command("unlink", "alpha", "--agent", "windsurf", "--agent", "claude-code", "--yes")
    assert not (project / ".windsurf").exists()
    assert [path.name for path in (project / ".claude").iterdir()] == ["settings.json"]
    assert command("verify").status == 0


# -- a source that cannot be asked -------------------------------------------------------------------------------------


def test_a_source_that_cannot_be_asked_is_named_and_never_passes_for_current(
    command: Command, project: Path, alpha: Repository, tmp_path: Path
) -> None:
    beta = Repository(tmp_path / "repositories" / "beta")
    beta.skill("", body="One.\n")
    beta.commit()
    for repository in (alpha, beta):
        command("install", repository.address, "--project", "--yes")
    alpha.path.rename(alpha.path.with_name("away"))
    ran = command("outdated")
    assert (ran.status, "current" in ran.out) == (3, False)
    assert "local/alpha" in ran.out
    assert "the source of local/alpha could not be asked: " in ran.err
    (row,) = command("outdated", "--json").data["outdated"]
    assert (row["name"], row["status"], row["newest"], alpha.path.name in row["why"]) == (
        "local/alpha",
        "failed",
        "",
        True,
    )
    beta.skill("", body="Two.\n")
    beta.commit()
    ran = command("outdated")
    assert (ran.status, ran.out.count("local/")) == (3, 2)
    ran = command("update", "--yes")
    assert (ran.status, "updated local/beta" in ran.out) == (1, True)
    assert "failed local/alpha" in ran.out
    assert "Two." in (project / ".agents/skills/beta/SKILL.md").read_text(encoding="utf-8")
    ran = command("update", "--yes", "--json")
    assert ran.status == 1
    assert {one["name"]: one["status"] for one in ran.data["updates"]}["local/alpha"] == "failed"

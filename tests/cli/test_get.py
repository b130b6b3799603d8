"""Getting skills: plans before they are applied, real repositories, interruptions that lose nothing."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import prowess
from prowess.addresses.source_grammar import SOURCE_FORMS
from prowess.lockfile.read import read_lock
from tests.cli.samples import another, edited, installed, linked
from tests.repositories import ENV, Repository, skill_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Command, Terminal

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A git repository with two skills."""
    made = Repository(tmp_path / "repositories" / "pair")
    for name in ("skills/alpha", "skills/beta"):
        made.skill(name)
    made.commit(tag="v1")
    return made


def listing(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_repository_is_installed_pinned_linked_and_listed(
    command: Command, project: Path, repository: Repository
) -> None:
    ran = command("install", repository.address, "--project", "--yes")
    assert ran.status == 0, ran.err
    assert "Plan:" in ran.plan
    assert "record it in prowess.lock" in ran.plan
    assert ran.report == "Installed local/pair for the project: .prowess/skills/local/pair\n"
    assert (project / ".agents/skills/alpha").is_symlink()
    assert "verified" in command("list").out
    assert command("verify").status == 0


def test_one_skill_of_a_repository_can_be_chosen(command: Command, project: Path, repository: Repository) -> None:
    command("install", repository.address, "--project", "--yes", "--skill", "beta", "--agent", "claude-code")
    assert (project / ".claude/skills/beta").is_symlink()
    assert not (project / ".agents/skills/alpha").exists()


def test_a_version_a_folder_and_skills_are_said_in_the_address_or_beside_it(
    command: Command, project: Path, repository: Repository
) -> None:
    repository.skill("skills/gamma")
    repository.skill("other/delta")
    first = repository.git("rev-parse", "HEAD")
    repository.commit()
    within = command("install", f"{repository.address}:skills@alpha,gamma", "--project", "--yes")
    assert within.status == 0, within.err
    assert sorted(read_lock(str(project))) == ["local/alpha", "local/gamma"]
    beside = command(
        "install", str(repository.path), "--ref", first[:8], "--path", "skills", "--into", "copies", "--yes"
    )
    assert beside.status == 0, beside.err
    assert listing(project / "copies") == [
        "pair",
        *(f"pair/{name}" for name in ("alpha", "alpha/SKILL.md", "beta", "beta/SKILL.md")),
    ]


@pytest.mark.parametrize(
    "words",
    [("acme/pair#v1", "--ref", "v2"), ("acme/pair:a", "--path", "b"), ("acme/pair@a", "--skill", "b")],
)
def test_an_option_that_contradicts_the_address_is_refused(
    command: Command, project: Path, words: tuple[str, ...]
) -> None:
    ran = command("install", *words, "--project", "--yes")
    assert ran.status == 3, ran.err
    assert "contradicting-source" in ran.err
    assert not (project / "prowess.lock").exists()


def test_a_folder_whose_name_holds_marks_is_installed_by_that_name(command: Command, project: Path) -> None:
    odd = project / "c#-tools@work"
    for name in ("alpha", "beta"):
        (odd / name).mkdir(parents=True)
        (odd / name / "SKILL.md").write_text(skill_text(name), encoding="utf-8")
    ran = command("install", "./c#-tools@work@beta", "--project", "--yes")
    assert ran.status == 0, ran.err
    assert sorted(read_lock(str(project))) == ["local/beta"]


def test_the_help_of_install_and_the_documentation_have_one_table_of_sources(command: Command) -> None:
    help_text = " ".join(command("install", "--help").out.split())
    page = (ROOT / "docs/how-to/addresses.md").read_text(encoding="utf-8")
    for form, meaning in SOURCE_FORMS:
        assert f"{form} {meaning}" in help_text
        assert f"| `{form}` | {meaning} |\n" in page


@pytest.mark.parametrize(
    ("source", "said", "remedy"),
    [
        ("./empty", "./empty does not contain a SKILL.md file", "begin a skill with 'prowess new NAME'"),
        ("../nope", "the source '../nope' is not a directory: nothing is there", "check the path, and name a folder"),
        ("./notes.txt", "the source './notes.txt' is not a directory: it is a file", "check the path"),
        ("./nope.zip", "nope.zip: there is no archive at this path", "check the path of the archive"),
        ("nope.zip", "'nope.zip'; there is no file with that name here", "a source is ./PATH (a folder or an archive)"),
        ("notes.txt", "'notes.txt'; something with that name is here: write ./notes.txt", "a source is ./PATH"),
    ],
)
def test_a_source_that_is_not_there_is_told_with_what_to_do(
    command: Command, project: Path, source: str, said: str, remedy: str
) -> None:
    (project / "empty").mkdir()
    (project / "notes.txt").write_text("x", encoding="utf-8")
    ran = command("install", source, "--project", "--yes")
    assert ran.status == 3
    message, hint = ran.err.splitlines()
    assert said in message
    assert remedy in hint


def test_environment_variables_of_other_installers_are_honoured(
    command: Command, project: Path, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GH_HOST", "ghe.example")
    plan = prowess.Installer().plan("https://ghe.example/acme/skills/tree/v1/pdf")
    assert "fetch https://ghe.example/acme/skills at v1, folder pdf\n" in str(plan)
    assert "https://github.com/acme/skills" in str(prowess.Installer().plan("acme/skills"))
    repository.skill("skills/inner", fields="metadata:\n  internal: true\n")
    repository.commit(tag="v2")
    command("install", repository.address, "--project", "--yes")
    assert not (project / ".agents/skills/inner").exists()
    monkeypatch.setenv("INSTALL_INTERNAL_SKILLS", "1")
    command("install", repository.address, "--project", "--yes", "--replace")
    assert (project / ".agents/skills/inner").is_symlink()


def test_a_plan_is_shown_and_nothing_done(command: Command, project: Path) -> None:
    another()
    before = listing(project)
    ran = command("install", "./elsewhere/notes", "--project", "--dry-run")
    assert (ran.status, ran.report) == (0, "")
    assert ".prowess/skills/local/notes" in ran.plan
    assert command("install", "./elsewhere/notes", "--project").status == 2
    assert command("install", "./elsewhere/notes", "--dry-run", "--json").data["installed"] == []
    assert listing(project) == before


def test_for_the_user_is_the_default(command: Command, project: Path) -> None:
    another()
    command("install", "./elsewhere/notes", "--yes")
    assert (project.parent / ".config/prowess/skills/local/notes").is_dir()
    assert (project.parent / ".agents/skills/notes").is_symlink()


def test_a_copy_into_a_folder_has_no_links_and_no_lock(command: Command, project: Path) -> None:
    another()
    assert command("install", "./elsewhere/notes", "--into", "vendor", "--dry-run").status == 0
    assert not (project / "vendor").exists()
    assert command("install", "./elsewhere/notes", "--into", "vendor", "--yes").status == 0
    assert (project / "vendor/notes/SKILL.md").is_file()
    assert not (project / "prowess.lock").exists()


def test_a_copy_into_a_folder_takes_no_option_that_it_would_pass_over(command: Command, project: Path) -> None:
    for option in ("--project", "--copy", "--replace", "--agent=codex"):
        ran = command("install", "./elsewhere/notes", "--into", "there", option, "--yes")
        assert (ran.status, "leave --project" in ran.err) == (2, True)
    assert not (project / "there").exists()


def test_a_place_that_is_taken_is_replaced_only_with_the_option_replace(command: Command) -> None:
    installed()
    words = ("install", "./elsewhere/notes", "--project", "--yes")
    ran = command(*words)
    assert (ran.status, "error[already-installed]" in ran.err) == (3, True)
    ran = command(*words, "--replace")
    assert (ran.status, "- replace what is there, which came from the same source\n" in ran.plan) == (0, True)


def test_a_skill_installed_already_as_part_of_its_source_is_told_so(command: Command, repository: Repository) -> None:
    command("install", repository.address, "--project", "--yes")
    ran = command("install", repository.address, "--skill", "beta", "--project", "--yes")
    assert (ran.status, "error[name-taken]" in ran.err) == (3, True)
    assert "the skill 'beta' is installed already, from the same source, as part of local/pair" in ran.err
    assert ran.err.partition("error[")[2].count(repository.address.removeprefix("file://")) == 0


@pytest.mark.parametrize("source", ["ext::sh -c touch% pwned", "--upload-pack=x", "http://host/x.git", "no such thing"])
def test_a_source_that_makes_no_sense_or_could_do_harm_is_refused(command: Command, project: Path, source: str) -> None:
    ran = command("install", "--yes", "--", source)
    assert ran.status == 3
    assert "error[" in ran.err
    assert not (project / "pwned").exists()


def test_the_cost_to_list_is_what_the_prompt_with_paths_that_is_named_counts(command: Command) -> None:
    another()
    shown = command("install", "./elsewhere/notes", "--list")
    assert "a line with its path (prowess prompt --style xml)" in shown.out
    (offered,) = command("install", "./elsewhere/notes", "--list", "--json").data["skills"]
    assert command("install", "./elsewhere/notes", "--project", "--yes").status == 0
    notes = prowess.scan(".agents/skills")["notes"]
    (cost,) = command("prompt", "notes", "--style", "xml", "--json").data["costs"]
    # Installed, its path is absolute: that is all that the two figures differ by.
    path = prowess.estimate_tokens(notes.location)
    assert 0 <= cost["tokens"] - offered["listing_tokens"] <= path


def test_a_source_is_shown_with_costs_and_what_could_run_and_not_installed(
    command: Command, project: Path, repository: Repository
) -> None:
    repository.skill("skills/beta", body="See !`git status`.\n")
    repository.write("skills/beta/scripts/run.sh", "#!/bin/sh\n")
    commit = repository.commit()
    before = listing(project)
    ran = command("install", repository.address, "--list")
    assert ran.status == 0
    head, *rows = ran.out.splitlines()
    assert f"commit {commit[:12]}, 20" in head
    assert "2 skills, 3 files" in head
    assert rows[0].startswith("  alpha  ")
    assert rows[0].endswith(" in its instructions")
    assert "    would run: git status" in rows
    assert "    could run: scripts/run.sh" in rows
    data = command("install", repository.address, "--list", "--skill", "beta", "--json").data
    assert ([skill["name"] for skill in data["skills"]], data["commit"]) == (["beta"], commit)
    assert listing(project) == before


def test_a_skill_that_is_full_of_findings_does_not_push_the_others_away(command: Command, project: Path) -> None:
    folder = project / "elsewhere" / "full"
    folder.mkdir(parents=True)
    keys = "".join(f"AKIA{number:016}\n".replace("00000", "0A0B0") for number in range(500))
    (folder / "SKILL.md").write_text(skill_text("full", keys), encoding="utf-8")
    ran = command("install", "./elsewhere", "--list")
    assert ran.out.count("[secret-in-skill]") == 10
    assert "and 490 more findings; --list --json has all of them\n" in ran.out
    (data,) = command("install", "./elsewhere", "--list", "--json").data["skills"]
    assert len([issue for issue in data["issues"] if issue["code"] == "secret-in-skill"]) == 500


@pytest.mark.parametrize("words", [("--dry-run",), ("--dry-run", "--into", "vendor"), ("--list",)])
def test_a_look_at_what_cannot_be_reached_fails(command: Command, project: Path, words: tuple[str, ...]) -> None:
    ran = command("install", f"file://{project}/nowhere", *words)
    assert (ran.status, ran.out, "error[no-repository]" in ran.err) == (3, "", True)


def test_a_dry_run_for_a_skill_that_the_source_has_not_fails(command: Command, repository: Repository) -> None:
    ran = command("install", repository.address, "--skill", "gamma", "--dry-run")
    assert (ran.status, "error[unknown-skill]" in ran.err) == (3, True)


def test_a_folder_named_without_its_dot_is_suggested_and_not_taken(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing of the network is asked
    prowess.create_skill("notes")
    ran = command("install", "notes", "--yes")
    assert ran.status == 3
    assert "this names no source of skills: 'notes'; something with that name is here: write ./notes" in ran.err
    another()
    ran = command("install", "elsewhere/notes", "--dry-run")
    assert "elsewhere/notes means https://github.com/elsewhere/notes" in ran.err
    assert "for the folder with that name here, write ./elsewhere/notes" in ran.err
    assert "means" not in command("install", "./elsewhere/notes", "--dry-run").err
    assert not (project / ".prowess").exists()


@pytest.mark.parametrize("name", ["notes", "local/notes", "@local/notes"])
def test_an_install_is_removed_by_any_of_its_names(command: Command, project: Path, name: str) -> None:
    installed()
    assert command("remove", name, "--dry-run").status == 0
    assert (project / ".prowess/skills/local/notes").exists()
    assert command("remove", name, "--yes").status == 0
    assert not (project / ".prowess/skills/local/notes").exists()
    ran = command("remove", name, "--yes")
    assert (ran.status, "error[not-installed]" in ran.err) == (3, True)


def test_a_skill_names_the_install_that_holds_it(command: Command, repository: Repository) -> None:
    command("install", repository.address, "--project", "--yes")
    assert command("verify").status == 0
    assert "local/pair" in command("diff", "alpha").out


def test_one_skill_of_several_is_not_removed_with_the_others(command: Command, repository: Repository) -> None:
    command("install", repository.address, "--project", "--yes")
    ran = command("remove", "alpha", "--yes")
    assert (ran.status, "error[part-of-install]" in ran.err) == (3, True)
    assert "alpha is installed with 1 other skill from one source (beta): '@local/pair' removes all of them" in ran.err
    assert "--skill" in ran.err
    assert "alpha" in command("list").out
    assert command("remove", "alpha", "beta", "--yes").report == "Removed @local/pair.\n"
    command("install", repository.address, "--project", "--yes")
    assert command("remove", "pair", "--yes").report == "Removed @local/pair.\n"


def test_sync_restores_what_changed_after_showing_it(command: Command, project: Path) -> None:
    installed()
    assert command("sync").out == "Nothing to do.\n"
    file = project / ".prowess/skills/local/notes/SKILL.md"
    text = file.read_bytes()
    file.write_bytes(text + b"tampered\n")
    found = command("verify")
    assert found.status == 1
    assert "changed-file" in found.out
    assert command("sync", "--dry-run").status == 1
    assert command("sync", "--locked").status == 3
    assert file.read_bytes() != text
    ran = command("sync", "--yes")
    assert (ran.status, ran.report.startswith("Restored local/notes for the project: ")) == (0, True)
    assert file.read_bytes() == text
    assert command("sync", "--user").status == 0


def _edit(project: Path) -> None:
    with (project / ".prowess/skills/local/notes/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("tampered\n")


def _declare_another(project: Path) -> None:
    (project / "prowess.toml").write_text('skills = ["./elsewhere/other"]\n', encoding="utf-8")


def _add_unrecorded(project: Path) -> None:
    shutil.copytree(project / ".prowess/skills/local/notes", project / ".prowess/skills/local/stray")


def _change_the_source_of_what_is_missing(project: Path) -> None:
    shutil.rmtree(project / ".prowess/skills/local/notes")
    with (project / "elsewhere/notes/SKILL.md").open("a", encoding="utf-8") as file:
        file.write("other\n")


DIFFERENCES = (
    (_edit, "lock-mismatch"),
    (_declare_another, "lock-outdated"),
    (_add_unrecorded, "not-in-lock"),
    (_change_the_source_of_what_is_missing, "lock-mismatch"),
)


@pytest.mark.parametrize(("differ", "code"), DIFFERENCES)
def test_a_locked_sync_refuses_any_difference_without_a_plan_or_a_question(
    command: Command, project: Path, differ: Callable[[Path], None], code: str
) -> None:
    installed()
    differ(project)
    lock = (project / "prowess.lock").read_bytes()
    for words in ((), ("--yes",)):
        ran = command("sync", "--locked", *words)
        assert (ran.status, ran.out) == (3, "")
        assert code in ran.err
        assert "Plan:" not in ran.out
        assert "restore:" not in ran.err
        assert "Do this?" not in ran.err
    assert command("sync", "--locked", "--json").status == 3
    looked = command("sync", "--locked", "--dry-run")
    if differ is _change_the_source_of_what_is_missing:  # only fetching tells
        assert (looked.status, "- restore local/notes as the lock file records it: it is missing" in looked.plan) == (
            1,
            True,
        )
    else:
        assert (looked.status, code in looked.err, "Plan:" in looked.out) == (3, True, False)
    assert (project / "prowess.lock").read_bytes() == lock


def test_a_locked_sync_brings_what_is_missing_and_else_says_that_nothing_is_to_be_done(
    command: Command, terminal: Terminal, project: Path
) -> None:
    installed()
    lock = (project / "prowess.lock").read_bytes()
    ran = command("sync", "--locked")
    assert (ran.status, ran.out, ran.err) == (0, "Nothing to do.\n", "")
    assert terminal("sync", "--locked").status == 0
    assert command("sync", "--locked", "--dry-run").out == "Nothing to do.\n"
    (project / ".agents/skills/notes").unlink()
    looked = command("sync", "--locked", "--dry-run", "--json")
    assert (looked.status, looked.data["plan"]) == (
        1,
        ["restore local/notes as the lock file records it: a link to it is missing or leads elsewhere"],
    )
    shutil.rmtree(project / ".prowess/skills/local/notes")
    assert command("sync", "--locked", "--dry-run").status == 1
    assert not (project / ".prowess/skills/local/notes").exists()
    ran = command("sync", "--locked")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("Restored local/notes for the project")
    data = command("sync", "--locked", "--json").data
    assert (data["plan"], data["installed"]) == ([], [])
    assert (project / "prowess.lock").read_bytes() == lock


def test_sync_installs_what_the_manifest_declares(command: Command, project: Path) -> None:
    another()
    (project / "prowess.toml").write_text(
        'skills = ["./elsewhere/notes"]\n[settings]\nstrict = true\n', encoding="utf-8"
    )
    ran = command("sync", "--yes")
    assert (ran.status, "install ./elsewhere/notes" in ran.plan) == (0, True)
    assert ran.report.startswith("Installed local/notes for the project: ")
    assert "notes" in command("list").out
    (project / "prowess.toml").write_text("skills = []\n", encoding="utf-8")
    assert "does not declare local/notes any more" in command("sync", "--dry-run").err
    assert command("sync", "--remove", "--yes").status == 0
    assert not (project / ".prowess/skills/local/notes").exists()


def test_a_clone_gets_the_same_bytes_from_what_the_pages_say_to_commit(
    command: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], check=True, capture_output=True, text=True, env={**os.environ, **ENV}
        ).stdout

    (project / ".git").rmdir()
    git("init", "--quiet")
    another()
    (project / "prowess.toml").write_text('skills = ["./elsewhere/notes"]\n', encoding="utf-8")
    command("sync", "--yes")
    page = (ROOT / "docs" / "how-to" / "team.md").read_text(encoding="utf-8")
    ignored = page.partition("# .gitignore\n")[2].partition("```")[0]
    (project / ".gitignore").write_text(ignored, encoding="utf-8")
    git("add", "--all")
    assert ".prowess" not in git("ls-files")
    git("commit", "--quiet", "--message", "x")
    git("clone", "--quiet", str(project), str(project.parent / "clone"))
    monkeypatch.chdir(project.parent / "clone")
    assert command("read", "notes").status == 3
    assert command("sync", "--locked").out.startswith("Installed local/notes for the project")
    assert (command("verify").status, git("status", "--porcelain")) == (0, "")
    assert command("read", "notes").status == 0


def test_update_shows_the_difference_and_takes_it(command: Command) -> None:
    edited()
    assert command("outdated").status == 1
    looked = command("update", "--dry-run")
    assert (looked.status, looked.err) == (0, "")
    assert "+One more line." in looked.out
    assert "lines with - are what is here; lines with + are what its source has" in looked.out
    assert command("outdated").status == 1
    assert command("update").status == 2
    assert "\nupdated local/notes" in command("update", "notes", "--yes").out
    assert (command("outdated").status, command("update", "--yes").status) == (0, 0)


def test_what_was_changed_by_hand_is_kept_unless_forced(command: Command, project: Path) -> None:
    edited()
    file = project / ".prowess/skills/local/notes/SKILL.md"
    file.write_text(file.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    ran = command("update", "--yes")
    assert ran.status == 1
    rows = ran.out.splitlines()
    sides = "  lines with - are what is here, with the changes made by hand; lines with + are what its source has"
    assert rows.index(sides) < rows.index("  -mine")
    assert "mine" in file.read_text(encoding="utf-8")
    ran = command("update", "--force", "--yes")
    assert (ran.status, "changed by hand, which is overwritten: a backup is kept" in ran.out) == (0, True)
    assert "unless --force" not in ran.out
    assert "mine" not in file.read_text(encoding="utf-8")


def test_sync_says_before_and_after_that_a_change_by_hand_is_kept_as_a_backup(command: Command, project: Path) -> None:
    installed()
    file = project / ".prowess/skills/local/notes/SKILL.md"
    file.write_text(file.read_text(encoding="utf-8") + "mine\n", encoding="utf-8")
    (file.parent / "extra.md").write_text("also mine", encoding="utf-8")
    assert "a backup is kept" in command("verify").out
    assert "'prowess sync' undoes edits and keeps a backup" in command("sync", "--locked").err
    ran = command("sync", "--yes")
    assert "restore: SKILL.md is not what the lock file says" in ran.plan
    assert "SKILL.md); a backup is kept" in ran.plan
    assert "remove: extra.md is not in the lock file" in ran.plan
    assert "extra.md); a backup is kept" in ran.plan
    assert not (file.parent / "extra.md").exists()
    assert "mine" not in file.read_text(encoding="utf-8")
    (backup,) = command("backups", "--json").data["backups"]
    assert "mine" in (Path(backup["path"]) / "SKILL.md").read_text(encoding="utf-8")
    assert (Path(backup["path"]) / "extra.md").read_text(encoding="utf-8") == "also mine"


def test_links_are_made_and_taken_away(command: Command, project: Path) -> None:
    installed()
    link = project / ".claude/skills/notes"
    assert command("link", "notes", "--agent", "claude-code", "--dry-run").status == 0
    assert not link.exists()
    assert command("link", "notes", "--agent", "claude-code", "--yes").report == "Linked .claude/skills/notes\n"
    assert link.is_symlink()
    again = command("link", "notes", "--agent", "claude-code", "--yes")
    assert again.report.startswith("Nothing to do: every link for Claude Code is recorded already.")
    assert command("verify").status == 0
    assert command("unlink", "notes", "--agent", "claude-code", "--yes").report == "Unlinked .claude/skills/notes\n"
    assert not link.exists()
    assert (project / ".agents/skills/notes").is_symlink()
    assert command("verify").status == 0
    assert command("link", "notes", "--agent", "nobody", "--yes").status == 3


def test_an_agent_that_does_not_exist_is_refused_before_anything_is_planned(command: Command) -> None:
    for words in (("link", "alpha"), ("install", "./alpha")):
        ran = command(*words, "--agent", "claude", "--yes")
        assert (ran.status, ran.out) == (3, "")
        assert "unknown agent 'claude'; did you mean claude-code?" in ran.err


def test_a_link_never_replaces_a_folder_that_is_there(command: Command, project: Path) -> None:
    installed()
    taken = project / ".claude/skills/notes"
    taken.mkdir(parents=True)
    ran = command("link", "notes", "--agent", "claude-code", "--yes")
    assert (ran.status, "error[name-taken]" in ran.err) == (3, True)
    assert taken.is_dir()
    assert not taken.is_symlink()
    assert command("verify").status == 0


def test_removing_takes_every_link_along(command: Command, project: Path) -> None:
    linked()
    command("remove", "notes", "--yes")
    assert not (project / ".claude/skills/notes").exists()


def test_skills_that_lie_here_are_adopted_as_they_are(command: Command, project: Path) -> None:
    before = prowess.read_metadata(project / ".agents/skills/csv-report").digest()
    assert command("adopt", "csv-report", "--dry-run").status == 0
    assert command("adopt", "csv-report", "--yes").status == 0
    assert (project / ".agents/skills/csv-report").is_symlink()
    assert prowess.discover()["csv-report"].digest() == before
    assert command("verify").status == 0


def test_an_interrupt_in_the_middle_of_an_install_loses_nothing(
    command: Command, project: Path, repository: Repository, tmp_path: Path
) -> None:
    """Git is a program that never answers; the interrupt comes when it has been started."""
    installed()
    before, locked = listing(project), (project / "prowess.lock").read_bytes()
    tell = tmp_path / "started"
    os.mkfifo(tell)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\necho > {tell}\nexec sleep 100\n", encoding="utf-8")
    (programs / "git").chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-m", "prowess", "install", repository.address, "--project", "--yes"],
        env={**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    with tell.open("rb") as told:
        told.read(1)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert err.endswith(b"interrupted\n")
    assert (listing(project), (project / "prowess.lock").read_bytes()) == (before, locked)
    assert command("verify").status == 0
    assert command("install", repository.address, "--project", "--yes").status == 0


def test_an_update_does_not_follow_a_branch_that_went_back_unless_it_is_told_to(
    command: Command, project: Path, repository: Repository
) -> None:
    repository.skill("skills/alpha", body="Two.\n")
    repository.commit()
    command("install", repository.address, "--project", "--yes")
    repository.git("reset", "--hard", "--quiet", "HEAD~1")
    file = project / ".prowess/skills/local/pair/skills/alpha/SKILL.md"
    ran = command("update", "--yes")
    assert (ran.status, ran.out) == (1, "current local/pair: its source went back, and is not followed\n")
    assert ran.err.count("[rolled-back]") == 1
    assert "say 'prowess update --allow-rollback'" in ran.err
    ran = command("update", "--yes", "--json")
    assert (ran.status, [issue["code"] for issue in ran.data["issues"]]) == (1, ["rolled-back"])
    ran = command("outdated", "--json")
    assert (ran.status, ran.data["outdated"], [issue["code"] for issue in ran.data["issues"]]) == (
        1,
        [],
        ["rolled-back"],
    )
    ran = command("outdated")
    assert (ran.status, ran.out) == (1, "Nothing newer was found; see the warnings.\n")
    assert "say 'prowess update --allow-rollback'" in ran.err
    assert "Two." in file.read_text(encoding="utf-8")
    ran = command("update", "--yes", "--allow-rollback")
    assert (ran.status, "updated local/pair" in ran.out, "rolled-back" in ran.err) == (0, True, False)
    assert "Two." not in file.read_text(encoding="utf-8")


def test_a_version_that_a_repository_has_not_is_named_without_the_words_of_git(
    command: Command, repository: Repository
) -> None:
    ran = command("install", f"{repository.address}#v99", "--project", "--yes")
    assert (ran.status, "has no tag, branch or commit 'v99'" in ran.err) == (3, True)
    assert "hint: 'git ls-remote ADDRESS' lists the versions of a repository" in ran.err
